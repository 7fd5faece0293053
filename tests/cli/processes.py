"""Run bunko in a process of its own, at a terminal if a test needs one."""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

ESCAPE = "\x1b"
MOST_SECONDS = 60.0
_WHERE_IS_THE_CURSOR = b"\x1b[6n"  # asked by programs that draw below what is there


def subprocess_environment(tmp_path: Path, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BUNKO_", "RAG_"))}
    return {**plain, "XDG_CONFIG_HOME": str(tmp_path / "config"), "PYTHONUTF8": "1", **more}


def at_a_terminal(*arguments: str | Path, env: dict[str, str]) -> str:
    """Run a command with a terminal for its output, and return all that was written to it."""
    pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        written = _read_all(ours)
    os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def type_at_a_terminal(typed: str, *arguments: str | Path, env: dict[str, str]) -> str:
    """Run a command at a terminal with this typed into it, and return all that was written to it, however it ended."""
    pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "bunko", *map(str, arguments)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        written = _read_all(ours)
        process.wait()
    os.close(ours)
    return written.decode()


def _read_all(descriptor: int) -> bytes:
    written = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux tells the end of a terminal so
            return written
        if not piece:
            return written
        written += piece


class TerminalProcess:
    """A terminal with a command of bunko in it."""

    def __init__(
        self,
        *arguments: str | Path,
        env: dict[str, str],
        stdout: int | None = None,
        columns: int = 80,
        cwd: Path | None = None,
    ) -> None:
        pty = pytest.importorskip("pty", reason="there are no terminals to open on this system")
        import fcntl
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "bunko", *map(str, arguments)]
        env = {name: value for name, value in env.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs, env=env,
            start_new_session=True, cwd=cwd, preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(theirs)
        self.written, self._position = b"", 0

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def wait_for(self, text: str) -> None:
        """Read what is drawn until a text comes after the one that was waited for last."""
        deadline = time.monotonic() + MOST_SECONDS
        while (position := self.written.find(text.encode(), self._position)) < 0:
            if not self._read() or time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise AssertionError(self.written[self._position :].decode(errors="replace"))
        self._position = position + len(text.encode())

    def close(self) -> int:
        """Wait for the end, reading what is still drawn, and return the exit code."""
        deadline = time.monotonic() + MOST_SECONDS
        while self._read():
            if time.monotonic() > deadline:
                self.process.kill()
        os.close(self._ours)
        return self.process.wait(MOST_SECONDS)

    def _read(self) -> bool:
        """Read what has been drawn meanwhile; return whether more may come."""
        if not select.select([self._ours], [], [], 0.1)[0]:
            return self.process.poll() is None
        try:
            piece = os.read(self._ours, 65536)
        except OSError:  # Linux tells the end of a terminal so
            return False
        self.written += piece
        if _WHERE_IS_THE_CURSOR in piece:
            self.type(b"\x1b[1;1R")
        return bool(piece)


def _take_terminal() -> None:
    """Make the terminal that of the process, so that Ctrl-C there interrupts it."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
