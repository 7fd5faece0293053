"""`bunko find` at a real terminal: Japanese text in pieces, an editor, and a pipe for the citation."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.processes import subprocess_environment

pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")

pytestmark = pytest.mark.slow

MOST_SECONDS = 60.0
ENTER, ESCAPE, CTRL_Y = b"\r", b"\x1b", b"\x19"


class Terminal:
    """A terminal with `bunko find` in it."""

    def __init__(self, folder: Path, *, env: dict[str, str], stdout: int | None = None, columns: int = 80) -> None:
        import fcntl
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "bunko", "find", "--docs-dir", str(folder)]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs, env=env,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.written = b""

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: str) -> None:
        """Read what is drawn until a text is among what was drawn since the last wait."""
        deadline, seen = time.monotonic() + MOST_SECONDS, len(self.written)
        while text.encode() not in self.written[seen:]:
            assert time.monotonic() < deadline, self.written[seen:].decode(errors="replace")
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.written += os.read(self._ours, 65536)
                except OSError as error:
                    raise AssertionError(self.written.decode(errors="replace")) from error

    def close(self) -> int:
        """Wait for the end, reading what is still drawn, and return the exit code."""
        while select.select([self._ours], [], [], 0.1)[0] or self.process.poll() is None:
            try:
                if not (piece := os.read(self._ours, 65536)):
                    break
            except OSError:  # Linux tells the end of a terminal so
                break
            self.written += piece
        os.close(self._ours)
        return self.process.wait(MOST_SECONDS)


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
    terminal = Terminal(notes, env=environment, columns=columns)
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
    terminal = Terminal(notes, env=environment, stdout=writer)
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
