"""The list of MCP servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.interfaces.chat.server_config import ServerConfigs, load_server_configs


def load(tmp_path: Path, servers: Any, environment: dict[str, str] | None = None) -> ServerConfigs:
    """Return what a file with these servers contains."""
    path = tmp_path / "mcp_servers.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return load_server_configs(path, environment or {})


def test_a_server_without_a_transport_is_a_command(tmp_path: Path) -> None:
    servers = load(tmp_path, {"rag": {"command": "python", "args": ["server.py"], "env": {"A": "1"}}}).servers
    assert [(server.name, server.transport, server.command, server.args, server.env) for server in servers] == [
        ("rag", "stdio", "python", ("server.py",), {"A": "1"})
    ]


@pytest.mark.parametrize("form", [{"transport": "http"}, {"type": "streamable-http"}, {}])
def test_a_server_with_a_url_is_reached_over_http(tmp_path: Path, form: dict[str, str]) -> None:
    entry = {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${KEY}"}, **form}
    (server,) = load(tmp_path, {"remote": entry}, {"KEY": "secret"}).servers
    assert (server.transport, server.headers) == ("http", {"Authorization": "Bearer secret"})
    assert "secret" not in repr(server)


def test_a_disabled_server_is_left_out(tmp_path: Path) -> None:
    servers = {"off": {"command": "x", "disabled": True}, "also-off": {"command": "x", "enabled": False}}
    assert load(tmp_path, servers) == ServerConfigs(())


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("python", "its entry is not an object"),
        ({"args": ["x"]}, "it has neither a command nor a url"),
        ({"command": ["python"]}, "command is not a text"),
        ({"command": "python", "args": "x"}, "args is not a list of texts"),
        ({"command": "python", "env": {"A": 1}}, "env is not an object of texts"),
        ({"command": "python", "env": {"A": "${B}"}}, "the environment variable B is not set"),
        ({"command": "python", "transport": "carrier-pigeon"}, "transport is 'carrier-pigeon'"),
        ({"url": "file:///etc/passwd"}, "url is not an http or https address"),
        ({"command": "python", "cwd": 1}, "cwd is not a text"),
        ({"command": "python", "disabled": "yes"}, "disabled is neither true nor false"),
    ],
)
def test_a_wrong_entry_is_reported_and_the_others_are_used(tmp_path: Path, entry: Any, reason: str) -> None:
    configs = load(tmp_path, {"wrong": entry, "right": {"command": "x"}})
    assert [server.name for server in configs.servers] == ["right"]
    (problem,) = configs.problems
    assert problem.startswith("The MCP server wrong is not used: ")
    assert reason in problem


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "is not JSON"),
        (b"[]", "has no mcpServers"),
        (b'{"mcpServers": []}', "has no mcpServers"),
        (b"\xff", "not JSON"),
    ],
)
def test_a_broken_file_is_an_error_with_an_example(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "mcp_servers.json"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=reason) as raised:
        load_server_configs(path)
    assert "mcpServers" in raised.value.hint


def test_a_missing_file_names_the_variable_that_moves_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Cannot read the list of MCP servers") as raised:
        load_server_configs(tmp_path / "missing.json")
    assert "MCP_SERVERS_CONFIG" in raised.value.hint
