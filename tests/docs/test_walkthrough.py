"""Follow the walk-through of the docs at a real terminal and compare what it prints with the page."""

from __future__ import annotations

import os
import re
import select
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.outputs import check_output
from tests.docs.test_docs import GUIDE, ROOT, shown

pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")

# No table is folded, however long the path of a temporary folder is.
ROWS, COLUMNS = 50, 400
MOST_SECONDS = 60.0

_PIECE = re.compile(r"\x1b\[\??[\d;]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\|[\r\n]|[^\x1b\r\n]+")


class Terminal:
    """Run commands at a terminal and return everything that was written to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        home, programs = folder / "home", folder / "bin"
        home.mkdir()
        programs.mkdir()
        (programs / "bunko").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bunko "$@"\n')
        (programs / "bunko").chmod(0o755)
        self._environ = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "PYTHONUTF8": "1",
            "TERM": "xterm-256color",
        }

    def run(self, command: str, *answers: tuple[str, Callable[[], str]]) -> str:
        """Run a command to its end; when a text appears, type the answer to it."""
        ours, theirs = pty.openpty()
        _resize(theirs)
        # Opened by its name in a session of its own, it is the terminal whose Ctrl-C the command gets.
        line = f'exec <"$0" >"$0" 2>&1; {"exec " if command.startswith("bunko ") else ""}{command}'
        arguments = ["sh", "-c", line, os.ttyname(theirs)]
        with subprocess.Popen(arguments, cwd=self._folder, env=self._environ, start_new_session=True) as process:
            try:
                written = _read(ours, theirs, process, list(answers))
            finally:
                process.kill()
                os.close(ours)
                os.close(theirs)
        assert process.returncode == 0, f"{command} ended with {process.returncode}:\n{screen(written)}"
        return written


def _resize(terminal: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))


def _read(
    ours: int, theirs: int, process: subprocess.Popen[bytes], answers: list[tuple[str, Callable[[], str]]]
) -> str:
    written, seen = b"", 0
    deadline = time.monotonic() + MOST_SECONDS
    while True:
        ended = process.poll() is not None  # asked before the last look, so that nothing is missed
        if select.select([ours], [], [], 0.02)[0]:
            written += os.read(ours, 65536)
        elif ended:
            return written.decode()
        text = written.decode(errors="ignore")
        if answers and answers[0][0] in text[seen:]:
            seen = len(text)
            os.write(ours, answers.pop(0)[1]().encode())
        if time.monotonic() > deadline:
            raise AssertionError(f"still running after {MOST_SECONDS} s:\n{screen(text)}")


def screen(written: str) -> str:
    """Return what a person sees: without colours and without text that was overwritten."""
    lines, at, column = [""], 0, 0
    for piece in _PIECE.findall(written):
        if piece == "\n":
            at += 1
            lines += [""] * (at == len(lines))
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[2K":
            lines[at] = ""
        elif moved := re.fullmatch(r"\x1b\[(\d+)A", piece):
            at -= int(moved[1])
        elif not piece.startswith("\x1b"):
            lines[at] = lines[at][:column].ljust(column) + piece + lines[at][column + len(piece) :]
            column += len(piece)
    return "\n".join(lines)


@pytest.mark.slow
def test_the_walk_through_prints_what_the_pages_show(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "library", tmp_path / ".demo")
    terminal = Terminal(tmp_path)
    saved = tmp_path / ".demo" / "handbook" / "oncall.md"

    def save() -> str:
        saved.write_text(saved.read_text(encoding="utf-8") + "\nBring a torch.\n", encoding="utf-8")
        return ""

    answers = {
        "bunko tool delete -n copy": [("[y/N]: ", lambda: "y\n")],
        "bunko watch": [("Press Ctrl-C to stop.", save), (" updated", lambda: "\x03")],
    }
    walk = [*shown("docs/tools.md", at_a_terminal=True), *shown("docs/memos.md", at_a_terminal=True)]
    assert answers.keys() <= dict(walk).keys()
    for command, expected in walk:
        written = terminal.run(command, *answers.get(command, ()))
        check_output(
            [ROOT / "docs" / "tools.md", ROOT / "docs" / "memos.md", ROOT / GUIDE],
            command,
            expected,
            screen(written),
            is_table=True,
        )
        if command.startswith("bunko import "):
            # The bar is drawn and, at the end, wiped away.
            assert re.search(r"Importing \x1b\[[\d;]+m━", written)
            assert "Importing" not in screen(written)
    assert screen(terminal.run("bunko tool ls")).split() == ["handbook", "memos", "project"]
    assert "tool=project\n" in screen(terminal.run("bunko search サーバー -k 1 | cat"))
    assert "tool=" not in screen(terminal.run("bunko search サーバー -n project -k 1 | cat"))


@pytest.mark.slow
def test_a_watch_over_no_tools_says_what_it_waits_for(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.run("bunko init")
    seen = screen(terminal.run("bunko watch", ("waiting for bunko tool add", lambda: "\x03")))
    assert "Watching 0 tools: none yet" in seen
    assert "Stopped" in seen
