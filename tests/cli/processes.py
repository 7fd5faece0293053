"""Run bunko in a process of its own, at a terminal if a test needs one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ESCAPE = "\x1b"


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
