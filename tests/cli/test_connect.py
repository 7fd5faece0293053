"""Telling an assistant about bunko: the configuration it reads, printed or merged into its file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.cli.connect import CLIENTS
from bunko.interfaces.cli.main import EXIT_CODES, main

ROOTS = {"claude-code": "mcpServers", "claude-desktop": "mcpServers", "cursor": "mcpServers", "vscode": "servers"}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's real configuration is in reach."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.delenv("BUNKO_LIBRARY", raising=False)
    monkeypatch.chdir(project)


def connect(*arguments: object) -> None:
    main(["connect", *map(str, arguments)])


def refused(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        connect(*arguments)
    return int(caught.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    out = capsys.readouterr().out
    return dict(json.loads(out[out.index("{") :]))


def usual(client: str, tmp_path: Path) -> Path:
    if sys.platform == "darwin":
        desktop = tmp_path / "home/Library/Application Support/Claude/claude_desktop_config.json"
    else:
        desktop = tmp_path / "home/.config/Claude/claude_desktop_config.json"
    return {
        "claude-code": tmp_path / "project/.mcp.json",
        "claude-desktop": desktop,
        "cursor": tmp_path / "home/.cursor/mcp.json",
        "vscode": tmp_path / "project/.vscode/mcp.json",
    }[client]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_printed_configuration_starts_this_bunko_on_this_folder(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(client, "--docs-dir", docs)
    out = capsys.readouterr().out
    assert str(usual(client, tmp_path)) in out
    entry = json.loads(out[out.index("{") :])[ROOTS[client]]["bunko"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-3:] == ["serve", "--docs-dir", str(docs)]
    assert entry.get("type") == ("stdio" if client in ("vscode", "claude-code") else None)
    assert not usual(client, tmp_path).exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_written_configuration_is_the_printed_one(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connect(client, "--docs-dir", docs)
    expected = printed(capsys)
    connect(client, "--docs-dir", docs, "--write")
    told = capsys.readouterr()
    assert json.loads(usual(client, tmp_path).read_text(encoding="utf-8")) == expected
    assert told.out == ""
    assert str(usual(client, tmp_path)) in told.err


@pytest.mark.parametrize("client", CLIENTS)
def test_what_else_is_in_the_file_stays_and_the_old_file_is_kept_beside_it(
    client: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual(client, tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = {
        "theme": "暗い",
        "inputs": [1, 2],
        ROOTS[client]: {"other": {"command": "x"}, "bunko": {"command": "old"}},
    }
    path.write_text(json.dumps(before, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o600)
    original = path.read_bytes()
    connect(client, "--docs-dir", docs, "--write")
    after = json.loads(path.read_text(encoding="utf-8"))
    assert after[ROOTS[client]].pop("bunko")["args"][-1] == str(docs)
    assert before[ROOTS[client]].pop("bunko")
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


@pytest.mark.parametrize(
    "content", ["{", '{"mcpServers": {}} // comment', "[]", '{"mcpServers": []}', '{"mcpServers": null}', "\ufeff{}x"]
)
def test_a_file_that_is_not_plain_json_is_refused_and_not_touched(
    content: str, docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = usual("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(content, encoding="utf-8")
    assert refused("cursor", "--docs-dir", docs, "--write") == EXIT_CODES["settings"]
    assert "by hand" in capsys.readouterr().err
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
