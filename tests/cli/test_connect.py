"""Telling an assistant about bunko: the configuration it reads, printed or merged into its file."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.cli.commands.connect import ASSISTANTS, launch_command, parse_commented_json
from bunko.interfaces.cli.main import EXIT_CODES, main

ROOTS = {"vscode": "servers", "zed": "context_servers", "opencode": "mcp", "codex": "mcp_servers"}
CLIENTS = tuple(ASSISTANTS)
JSON_CLIENTS = tuple(name for name in CLIENTS if name != "codex")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's real configuration is in reach."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("BUNKO_LIBRARY", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)


def connect(*arguments: object) -> None:
    main(["connect", *map(str, arguments)])


def refused(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        connect(*arguments)
    return int(caught.value.code or 0)


def parsed(client: str, text: str) -> dict[str, Any]:
    """Return a configuration, and ignore what is printed before it."""
    if client == "codex":
        return tomllib.loads(text[text.index("[mcp_servers") :])
    return dict(json.loads(text[text.index("{\n") :]))


def command_of(client: str, entry: dict[str, Any]) -> list[str]:
    """Return the command that an entry starts, with its arguments."""
    command: list[str] = entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]
    return command


def usual(client: str, tmp_path: Path) -> Path:
    if sys.platform == "darwin":
        desktop = tmp_path / "home/Library/Application Support/Claude/claude_desktop_config.json"
    else:
        desktop = tmp_path / "home/.config/Claude/claude_desktop_config.json"
    return {
        "claude-code": tmp_path / "project/.mcp.json",
        "claude-desktop": desktop,
        "codex": tmp_path / "home/.codex/config.toml",
        "cursor": tmp_path / "home/.cursor/mcp.json",
        "gemini": tmp_path / "home/.gemini/settings.json",
        "lm-studio": tmp_path / "home/.lmstudio/mcp.json",
        "opencode": tmp_path / "home/.config/opencode/opencode.json",
        "vscode": tmp_path / "project/.vscode/mcp.json",
        "windsurf": tmp_path / "home/.codeium/windsurf/mcp_config.json",
        "zed": tmp_path / "home/.config/zed/settings.json",
    }[client]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_starts_this_bunko_on_this_folder(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(client, "--docs-dir", docs)
    out = capsys.readouterr().out
    assert str(usual(client, tmp_path)) in out
    entry = parsed(client, out)[ROOTS.get(client, "mcpServers")]["bunko"]
    command = command_of(client, entry)
    assert Path(command[0]).is_absolute()
    assert command[-3:] == ["serve", "--docs-dir", str(docs)]
    types = {"vscode": "stdio", "claude-code": "stdio", "opencode": "local"}
    assert entry.get("type") == types.get(client)
    assert not usual(client, tmp_path).exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_written_configuration_is_the_printed_one(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(client, "--docs-dir", docs)
    expected = parsed(client, capsys.readouterr().out)
    connect(client, "--docs-dir", docs, "--write")
    told = capsys.readouterr()
    assert parsed(client, usual(client, tmp_path).read_text(encoding="utf-8")) == expected
    assert told.out == ""
    assert str(usual(client, tmp_path)) in told.err


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_what_else_is_in_the_file_stays_and_the_old_file_is_kept_beside_it(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual(client, tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    root = ROOTS.get(client, "mcpServers")
    before: dict[str, Any] = {
        "theme": "暗い",
        "inputs": [1, 2],
        root: {"other": {"command": "x"}, "bunko": {"command": "old"}},
    }
    path.write_text(json.dumps(before, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o600)
    original = path.read_bytes()
    connect(client, "--docs-dir", docs, "--write")
    after = json.loads(path.read_text(encoding="utf-8"))
    assert command_of(client, after[root].pop("bunko"))[-1] == str(docs)
    assert before[root].pop("bunko")
    assert after == before
    [backup] = path.parent.glob(f"{path.name}.*.backup")
    assert backup.read_bytes() == original
    assert str(backup) in capsys.readouterr().err
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(path.parent.iterdir()) == sorted([path, backup])


def test_every_write_keeps_a_backup_of_its_own(docs: Path, tmp_path: Path) -> None:
    path = usual("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    for name in ("one", "two", "three"):
        connect("cursor", "--docs-dir", docs, "--name", name, "--write")
    assert len(list(path.parent.glob("*.backup"))) == 3
    assert list(json.loads(path.read_text())["mcpServers"]) == ["one", "two", "three"]


def test_nothing_is_written_twice_and_no_content_is_backed_up_twice(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    connect("cursor", "--docs-dir", docs, "--write")
    written = path.read_bytes()
    capsys.readouterr()
    connect("cursor", "--docs-dir", docs, "--write")
    assert path.read_bytes() == written
    assert capsys.readouterr().err == f"{path} has this server already.\n"
    for _ in range(3):
        path.write_text("{}")
        connect("cursor", "--docs-dir", docs, "--write")
    [backup] = path.parent.glob("*.backup")
    assert backup.read_text() == "{}"
    assert str(backup) in capsys.readouterr().err


TOML = """\
# my settings
model = "o4"   # the best

[mcp_servers.other]
command = "x"

[mcp_servers.bunko]   # the old one
command = "old"
args = ["a", "b"]

[mcp_servers.bunko.env]
KEY = "value"

[profiles.fast]
model = "mini"
"""


def test_a_toml_file_keeps_its_comments_and_all_other_tables(docs: Path, tmp_path: Path) -> None:
    path = usual("codex", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(TOML, encoding="utf-8")
    connect("codex", "--docs-dir", docs, "--write")
    text = path.read_text(encoding="utf-8")
    expected = tomllib.loads(TOML)
    entry = tomllib.loads(text)["mcp_servers"]["bunko"]
    assert entry["args"][-3:] == ["serve", "--docs-dir", str(docs)]
    expected["mcp_servers"]["bunko"] = entry
    assert tomllib.loads(text) == expected
    assert text.startswith('# my settings\nmodel = "o4"   # the best\n\n[mcp_servers.other]\ncommand = "x"\n')
    [backup] = path.parent.glob("*.backup")
    assert backup.read_text(encoding="utf-8") == TOML
    connect("codex", "--docs-dir", docs, "--name", "my notes", "--write")
    assert list(tomllib.loads(path.read_text(encoding="utf-8"))["mcp_servers"]) == ["other", "bunko", "my notes"]


@pytest.mark.parametrize("content", ["= 1", "mcp_servers = 5", 'mcp_servers = { bunko = { command = "x" } }'])
def test_a_toml_file_that_cannot_be_changed_safely_is_refused_and_not_touched(
    content: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual("codex", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    assert refused("codex", "--docs-dir", docs, "--write") == EXIT_CODES["settings"]
    assert "by hand" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == content
    assert list(path.parent.iterdir()) == [path]


def test_toolsets_and_read_only_reach_the_server(docs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    connect("cursor", "--json", "--docs-dir", docs, "--toolsets", "all", "--read-only")
    args = json.loads(capsys.readouterr().out)["mcpServers"]["bunko"]["args"]
    assert args[args.index("serve") :] == ["serve", "--docs-dir", str(docs), "--toolsets", "all", "--read-only"]
    assert refused("cursor", "--docs-dir", docs, "--toolsets", "foldr") == EXIT_CODES["settings"]
    assert "Unknown toolset 'foldr'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prefix", "programs", "command"),
    [
        ("/home/a/.cache/uv/archive-v0/tL3x/", {"uvx"}, ["/bin/uvx", "bunko"]),
        ("C:\\Users\\a\\AppData\\Local\\uv\\cache\\archive-v0\\tL3x\\", {"uvx"}, ["/bin/uvx", "bunko"]),
        ("/home/a/.cache/uv/environments-v2/bunko-1/", set(), ["uvx", "bunko"]),
        ("/home/a/.local/pipx/.cache/3f/", {"pipx"}, ["/bin/pipx", "run", "bunko"]),
        ("/home/a/.local/pipx/.cache/3f/", {"pipx", "uvx"}, ["/bin/uvx", "bunko"]),
    ],
)
def test_a_bunko_from_a_cache_is_started_by_the_program_that_put_it_there(
    prefix: str, programs: set[str], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in programs else None)
    assert launch_command() == command


def test_a_bunko_that_is_installed_to_stay_is_started_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/a/.local/share/uv/tools/bunko")
    assert Path(launch_command()[0]).is_absolute()


SKILLS = {name for name, assistant in ASSISTANTS.items() if assistant.skills_folder}


def test_the_skill_is_installed_where_the_assistant_reads_it(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect("claude-code", "--docs-dir", docs, "--write", "--skill")
    path = tmp_path / "project/.claude/skills/bunko/SKILL.md"
    assert str(path) in capsys.readouterr().err
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    lines = dict(line.split(": ", 1) for line in head.splitlines())
    assert lines["name"] == "bunko"
    assert 50 < len(lines["description"]) <= 1024
    for tool in ("search", "read", "list", "verify"):
        assert f"`{tool}`" in body


@pytest.mark.parametrize("client", CLIENTS)
def test_an_assistant_that_reads_no_skills_is_told_before_anything_is_written(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if client in SKILLS:
        connect(client, "--docs-dir", docs, "--skill")
        written = [*tmp_path.rglob("bunko/SKILL.md")]
        assert len(written) == 1
        return
    assert refused(client, "--docs-dir", docs, "--write", "--skill") == EXIT_CODES["settings"]
    assert "claude-code" in capsys.readouterr().err
    assert not usual(client, tmp_path).exists()


@pytest.mark.parametrize(
    "content", ["{", '{"mcpServers": {}} / comment', "[]", '{"mcpServers": []}', '{"mcpServers": null}', "\ufeff{}x"]
)
def test_a_file_that_is_not_json_is_refused_and_not_touched(
    content: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    assert refused("cursor", "--docs-dir", docs, "--write") == EXIT_CODES["settings"]
    printed = capsys.readouterr()
    assert "by hand" in printed.err
    assert '"bunko": {' in printed.out, "the lines to add"
    assert path.read_text(encoding="utf-8") == content
    assert list(path.parent.iterdir()) == [path]


def test_an_empty_file_is_as_good_as_none(docs: Path, tmp_path: Path) -> None:
    path = usual("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    path.touch()
    connect("cursor", "--docs-dir", docs, "--write")
    assert "bunko" in json.loads(path.read_text())["mcpServers"]


def test_a_file_reached_through_a_link_is_written_where_it_lies(docs: Path, tmp_path: Path) -> None:
    path, real = usual("cursor", tmp_path), tmp_path / "dotfiles" / "mcp.json"
    path.parent.mkdir(parents=True)
    real.parent.mkdir()
    real.write_text("{}")
    path.symlink_to(real)
    connect("cursor", "--docs-dir", docs, "--write")
    assert path.is_symlink()
    assert "bunko" in json.loads(real.read_text())["mcpServers"]


def test_another_file_can_be_named(docs: Path, tmp_path: Path) -> None:
    connect("vscode", "--docs-dir", docs, "--file", tmp_path / "new" / "mcp.json", "--write")
    assert "bunko" in json.loads((tmp_path / "new" / "mcp.json").read_text())["servers"]
    assert not usual("vscode", tmp_path).exists()


def test_the_command_for_a_shell_survives_spaces_and_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = tmp_path / "it's $HOME の 資料"
    docs.mkdir()
    connect("claude-code", "--docs-dir", docs, "--name", "my notes; rm -rf")
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.strip().startswith("claude mcp add"))
    words = shlex.split(line)
    assert words[:5] == ["claude", "mcp", "add", "my notes; rm -rf", "--"]
    assert words[-3:] == ["serve", "--docs-dir", str(docs)]
    assert json.loads(out[out.index("{\n") :])["mcpServers"]["my notes; rm -rf"]["args"][-1] == str(docs)


def test_every_way_to_name_a_library_reaches_the_server(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def place(*arguments: object) -> list[str]:
        connect("cursor", "--json", *arguments)
        args: list[str] = json.loads(capsys.readouterr().out)["mcpServers"]["bunko"]["args"]
        return args[args.index("serve") + 1 :]

    project = tmp_path / "project"
    assert place("--library", "my library") == ["--library", str(project / "my library")]
    assert place("--database", "my.db") == ["--database", str(project / "my.db")]
    assert place("--docs-dir", docs, "--data-dir", "data") == [
        "--docs-dir", str(docs), "--data-dir", str(project / "data"),
    ]  # fmt: skip
    assert place("--library", "lib", "--config", "bunko.toml")[2:] == ["--config", str(project / "bunko.toml")]


def test_a_folder_that_is_not_there_is_told_before_anything_is_written(tmp_path: Path) -> None:
    assert refused("cursor", "--docs-dir", tmp_path / "nowhere", "--write") == EXIT_CODES["source"]
    assert not usual("cursor", tmp_path).exists()


def test_an_unknown_assistant_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused("emacs") == 2
    assert "vscode" in capsys.readouterr().err


ZED = """\
// Zed settings
//
// For information on how to configure Zed, see its documentation.
{
  "ui_font_size": 16, /* of the "menus", too */
  "theme": "One // Dark",
}
"""
ZED_WITH_SERVER = """\
{
  "context_servers": {
    // my own server
    "other": {"command": "x"},
    "bunko": {"command": "old", "args": []}, // to be replaced
  },
}
"""


@pytest.mark.parametrize("content", [ZED, ZED_WITH_SERVER])
def test_comments_in_a_json_file_are_kept(content: str, docs: Path, tmp_path: Path) -> None:
    path = usual("zed", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    connect("zed", "--docs-dir", docs, "--write")
    text = path.read_text(encoding="utf-8")
    comments = [line for line in content.splitlines() if "//" in line and '"bunko"' not in line]
    assert [line for line in text.splitlines() if line in comments] == comments
    entry = parse_commented_json(text)["context_servers"]["bunko"]
    assert entry["args"][:1] == ["serve"]
    expected = parse_commented_json(content)
    expected["context_servers"] = expected.get("context_servers", {}) | {"bunko": entry}
    assert parse_commented_json(text) == expected
    [backup] = path.parent.glob("*.backup")
    assert backup.read_text(encoding="utf-8") == content
    connect("zed", "--docs-dir", docs, "--write")
    assert path.read_text(encoding="utf-8") == text
    assert len(list(path.parent.iterdir())) == 2
