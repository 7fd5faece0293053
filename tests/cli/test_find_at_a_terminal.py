"""`bunko find` at a real terminal: Japanese text in pieces, an editor, and a pipe for the citation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import TerminalProcess, subprocess_environment

pytestmark = pytest.mark.slow

ENTER, ESCAPE, CTRL_C, CTRL_Y = b"\r", b"\x1b", b"\x03", b"\x19"


def find(folder: Path, *, env: dict[str, str], stdout: int | None = None, columns: int = 80) -> TerminalProcess:
    """Run `bunko find` in a terminal."""
    return TerminalProcess("find", "--docs-dir", folder, env=env, stdout=stdout, columns=columns)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose editor records its arguments."""
    editor = tmp_path / "nvim"
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path / "arguments"}"\n')
    editor.chmod(0o755)
    environ = subprocess_environment(tmp_path, TERM="xterm-256color", EDITOR=str(editor))
    environ.pop("VISUAL", None)
    return environ


@pytest.mark.parametrize("columns", [80, 120])
def test_japanese_is_typed_and_enter_opens_the_file_at_the_line(
    columns: int, notes: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    terminal = find(notes, env=environment, columns=columns)
    terminal.wait_for("Type to search.")
    typed = "インストール手順".encode()
    for start in range(0, len(typed), 4):  # in the middle of characters, as a slow connection delivers them
        terminal.type(typed[start : start + 4])
    terminal.wait_for("guide/setup.md:L")
    terminal.type(ENTER)
    terminal.wait_for("Opened guide/setup.md:L")
    terminal.type(ESCAPE)
    assert terminal.close() == 0
    line, file = (tmp_path / "arguments").read_text(encoding="utf-8").split()
    assert (file, line[0]) == (str(notes / "guide" / "setup.md"), "+")
    assert terminal.written.rstrip().endswith(b"\x1b[?25h") or b"\x1b[?1049l" in terminal.written, "the screen is left"


def test_ctrl_y_prints_the_citation_into_a_pipe(notes: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    reader, writer = os.pipe()
    terminal = find(notes, env=environment, stdout=writer)
    os.close(writer)
    terminal.wait_for("Type to search.")
    terminal.type("京都の寺".encode())
    terminal.wait_for("temple.md:L")
    terminal.type(CTRL_Y)
    assert terminal.close() == 0
    with os.fdopen(reader, encoding="utf-8") as pipe:
        citation = pipe.read()
    assert citation.startswith("temple.md:L")
    assert citation.endswith("\n")
    command = [sys.executable, "-m", "bunko", "get", citation.strip(), "--docs-dir", str(notes)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, env=environment)
    assert "京都" in done.stdout


@pytest.mark.parametrize("command", ["find", "ui"])
def test_ctrl_c_while_a_command_starts_just_ends_it(
    command: str, notes: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = tmp_path / "pipe.toml"
    os.mkfifo(config)
    terminal = TerminalProcess(command, "--docs-dir", notes, "--config", config, env=environment)
    with config.open("wb"):  # waits until the command reads its settings, which then waits for what is in the pipe
        terminal.type(CTRL_C)
        assert terminal.close() == 0
    assert terminal.written.decode().replace("^C", "").split() == ["Stopped."]
