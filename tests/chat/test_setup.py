"""A conversation set up from the settings: which servers, which model, which limits."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import anyio
import pytest

from bunko.errors import SettingsError
from bunko.interfaces.chat.consent import Approve, describe_server, refuse
from bunko.interfaces.chat.server_config import ServerConfig, load_server_configs
from bunko.interfaces.chat.servers import MCPToolNotFoundError
from bunko.interfaces.chat.setup import (
    ChatTools,
    build_chat_server,
    chat_limits,
    crawl_timeout,
    list_folders,
    open_chat_tools,
)
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.runtime.remote import RemoteFailure
from bunko.settings import load_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and a home of its own."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = tmp_path / "current"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_list(path: Path, servers: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")


def with_tools(tmp_path: Path, check: Callable[[ChatTools], object], **environ: str) -> None:
    """Open the tools of an empty library with these settings, and check them."""
    library = open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ, create=True)

    async def run() -> None:
        async with open_chat_tools(library, environment={}) as tools:
            result = check(tools)
            if hasattr(result, "__await__"):
                await result

    with library:
        anyio.run(run)


def test_without_a_list_the_tools_are_those_of_the_library(tmp_path: Path, home: Path) -> None:
    async def check(tools: ChatTools) -> None:
        assert tools.manager is not None
        assert "総チャンク数: 0" in (await tools.manager.call_tool("rag_stats")).text

    with_tools(tmp_path, check)


def test_a_list_without_bunko_offers_none_of_its_tools(tmp_path: Path, home: Path) -> None:
    write_list(home / "config" / "mcp_servers.json", {"wrong": {}})

    async def check(tools: ChatTools) -> None:
        assert tools.manager is not None
        assert "The MCP server wrong is not used" in tools.problems[0]
        with pytest.raises(MCPToolNotFoundError):
            await tools.manager.call_tool("rag_stats")

    with_tools(tmp_path, check)


def test_an_entry_of_the_list_can_be_the_library_in_this_process(tmp_path: Path, home: Path) -> None:
    write_list(tmp_path / "library" / "servers.json", {"rag": {"transport": "builtin"}})

    async def check(tools: ChatTools) -> None:
        assert tools.manager is not None
        assert {tool.server for tool in await tools.manager.tools()} == {"rag"}

    with_tools(tmp_path, check, MCP_SERVERS_CONFIG="servers.json")


@pytest.mark.parametrize("package", [None, ModuleType("mcp")], ids=["missing", "version 1, which has no such client"])
def test_without_the_package_for_other_servers_a_sentence_says_so_and_bunko_itself_is_there(
    package: ModuleType | None, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", package)
    servers: dict[str, object] = {
        "rag": {"transport": "builtin"},
        "calendar": {"command": "calendar-mcp"},
        "team": {"url": "https://a.b/"},
    }
    write_list(tmp_path / "library" / "servers.json", servers)

    async def check(tools: ChatTools) -> None:
        [problem] = tools.problems
        assert "the package mcp is missing or older than version 2: calendar, team." in problem
        assert 'pip install "bunko[chat]"' in problem
        assert tools.manager is not None
        assert {tool.server for tool in await tools.manager.tools()} == {"rag"}

    with_tools(tmp_path, check, MCP_SERVERS_CONFIG="servers.json")


def test_a_list_that_is_named_must_be_there(tmp_path: Path, home: Path) -> None:
    with pytest.raises(SettingsError, match="Cannot read the list of MCP servers"):
        with_tools(tmp_path, lambda tools: None, MCP_SERVERS_CONFIG="missing.json")


def test_tools_can_be_switched_off(tmp_path: Path, home: Path) -> None:
    write_list(home / "config" / "mcp_servers.json", {"rag": {"transport": "builtin"}})
    seen: list[object] = []
    with_tools(tmp_path, lambda tools: seen.append(tools.manager), MCP_ENABLED="false")
    assert seen == [None]


def test_a_list_among_documents_is_not_read(tmp_path: Path, home: Path) -> None:
    paths = locate_library(docs_dir=home, environ={})
    assert home not in list_folders(paths)
    assert home / ".rag-index" not in list_folders(paths)
    assert home in list_folders(locate_library(library=tmp_path / "library", environ={}))


def test_the_model_and_its_limits_are_those_of_the_settings() -> None:
    environ = {
        "BUNKO_CHAT_PROVIDER": "openrouter",
        "BUNKO_CHAT_MODEL": "m",
        "BUNKO_CHAT_BASE_URL": "http://127.0.0.1:1/v1/",
        "BUNKO_CHAT_DATA_COLLECTION": "deny",
        "OPENROUTER_API_KEY": "not for another address",
        "BUNKO_CHAT_MAX_ROUNDS": "2",
    }
    settings = load_settings(environ=environ).settings
    server = build_chat_server(settings)
    assert server is not None
    assert (server.label, server.address, server.secret) == ("openrouter:m", "http://127.0.0.1:1/v1", "")
    assert server._request_options == {
        "model": "m", "max_tokens": 2000, "extra_body": {"provider": {"data_collection": "deny"}},
    }  # fmt: skip
    assert chat_limits(settings).rounds == 2
    assert build_chat_server(load_settings(environ={}).settings) is None


def test_a_crawl_may_take_as_long_as_its_pages() -> None:
    environ = {"RAG_MAX_CRAWL_PAGES": "10", "RAG_CRAWL_DELAY_SEC": "2", "BUNKO_CRAWL_TIMEOUT_SECONDS": "30"}
    assert crawl_timeout(load_settings(environ=environ).settings) == 320.0


def write_command(folder: Path, marker: Path) -> Path:
    """Write a list whose only server leaves a file behind when it is started."""
    path = folder / "config" / "mcp_servers.json"
    write_list(path, {"theirs": {"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"]}})
    return path


def open_tools(tmp_path: Path, approve: Approve = refuse, **environ: str) -> ChatTools:
    """Open the tools of an empty library, wait until all servers have been tried, and return what was opened."""
    library = open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ, create=True)

    async def run() -> ChatTools:
        async with open_chat_tools(library, environment=environ, approve=approve, with_library=True) as tools:
            assert tools.manager is not None
            await tools.manager.tools()
            return tools

    with library:
        return anyio.run(run)


def test_a_list_in_the_current_folder_starts_nothing_without_consent(tmp_path: Path, home: Path) -> None:
    marker = tmp_path / "started"
    path = write_command(home, marker)
    tools = open_tools(tmp_path)
    assert not marker.exists()
    assert f"{path} is not used" in tools.problems[0]
    assert tools.library_servers == {"bunko"}


@pytest.mark.slow
def test_consent_is_remembered_until_the_list_changes(tmp_path: Path, home: Path) -> None:
    marker, asked = tmp_path / "started", []

    def approve(path: Path, servers: Sequence[ServerConfig]) -> bool:
        asked.append([describe_server(server) for server in servers])
        return True

    write_command(home, marker)
    open_tools(tmp_path, approve)
    assert marker.exists()
    assert asked == [[[f"{sys.executable} -c open({str(marker)!r}, 'w')"]]]
    open_tools(tmp_path, approve)
    assert len(asked) == 1
    allowed = tmp_path / "XDG_DATA_HOME" / "bunko" / "mcp-lists.json"
    assert allowed.stat().st_mode & 0o077 == 0
    write_command(home, tmp_path / "another")
    assert "is not used" in open_tools(tmp_path).problems[0]
    assert not (tmp_path / "another").exists()


@pytest.mark.slow
def test_a_list_that_the_user_names_or_owns_needs_no_further_consent(tmp_path: Path, home: Path) -> None:
    marker = tmp_path / "started"
    path = write_command(home, marker)
    open_tools(tmp_path, MCP_SERVERS_CONFIG=str(path))
    assert marker.exists()
    path.unlink()
    marker.unlink()
    write_command(tmp_path / "XDG_CONFIG_HOME" / "bunko", marker)
    assert open_tools(tmp_path).problems == ()
    assert marker.exists()


@pytest.mark.slow
def test_a_list_that_a_settings_file_names_by_a_relative_path_needs_consent_in_the_current_folder(
    tmp_path: Path, home: Path
) -> None:
    marker = tmp_path / "started"
    path = write_command(home, marker)
    settings = tmp_path / "XDG_CONFIG_HOME" / "bunko" / "bunko.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[mcp]\nservers_config = "config/mcp_servers.json"\n', "utf-8")
    assert f"{path} is not used" in open_tools(tmp_path).problems[0]
    assert not marker.exists()
    open_tools(tmp_path, MCP_SERVERS_CONFIG="config/mcp_servers.json")
    assert marker.exists()
    marker.unlink()
    write_command(settings.parent, marker)  # the user's own list, which the same path names
    open_tools(tmp_path)
    assert marker.exists()


def test_what_a_server_is_given_is_shown_before_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    write_list(
        path,
        {
            "git": {"command": "git", "args": ["${SECRET}"], "cwd": "/tmp", "env": {"LD_PRELOAD": "/tmp/theirs.so"}},
            "web": {
                "url": "https://user:pw@evil.example/mcp?k=${SECRET}",
                "headers": {"X": "Bearer ${OPENAI_API_KEY}"},
            },
        },
    )
    environment = {"SECRET": "hidden value", "OPENAI_API_KEY": "sk-1"}
    described = [describe_server(server) for server in load_server_configs(path, environment).servers]
    assert described == [
        ["git ${SECRET}", "in the folder /tmp", "with its own values of LD_PRELOAD", "it is given your SECRET"],
        ["https://evil.example/mcp", "it is given your OPENAI_API_KEY, SECRET"],
    ]


@pytest.mark.slow
def test_the_library_is_offered_beside_other_servers_but_not_twice(tmp_path: Path, home: Path) -> None:
    path = home / "servers.json"
    write_list(path, {"bunko": {"command": "no-such-command", "args": []}})
    assert open_tools(tmp_path, MCP_SERVERS_CONFIG=str(path)).library_servers == {"library"}
    write_list(path, {"rag": {"command": "no-such-command", "args": ["-m", "bunko", "serve"]}})
    assert open_tools(tmp_path, MCP_SERVERS_CONFIG=str(path)).library_servers == frozenset()


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"BUNKO_CHAT_PROVIDER": "openai"}, "there is no key"),
        ({"BUNKO_CHAT_PROVIDER": "lmstudio"}, "no model is set"),
        ({"BUNKO_CHAT_PROVIDER": "openai", "OPENAI_API_KEY": "ключ"}, "a character that is not allowed"),
    ],
)
def test_a_model_that_is_not_set_up_says_so_before_anything_is_sent(environ: dict[str, str], message: str) -> None:
    server = build_chat_server(load_settings(environ=environ).settings)
    assert server is not None
    with pytest.raises(RemoteFailure, match=message):
        anyio.run(server.turn, [{"role": "user", "content": "?"}])
