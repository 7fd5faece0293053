"""Run command lines in this process, and record what they print."""

from __future__ import annotations

import io
import logging
import os
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.recordings.recording import Recording

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


class Shell:
    """The program `bunko`, found as an installer finds it."""

    def __init__(self, recording: Recording) -> None:
        scripts = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["scripts"]
        module, _, name = scripts["bunko"].partition(":")
        self._main = getattr(import_module(module), name)
        self._recording = recording

    def record(self, *arguments: str, door: str = "cli", **environ: str) -> None:
        """Run a command and record its exit code and what it printed."""
        asked = [f"{name}={value}" for name, value in environ.items()] + list(arguments)
        self._recording.add(door, asked, self.run(list(arguments), environ))

    def run(self, arguments: list[str], environ: dict[str, str]) -> dict[str, Any]:
        """Run a command; further environment variables are only for it."""
        before, stdin = dict(os.environ), sys.stdin
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        code: object = 0
        try:
            os.environ.update(environ)
            sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
            with redirect_stdout(out), redirect_stderr(err):
                self._main(arguments)
        except SystemExit as end:
            code = end.code
        except Exception as error:  # a bug, which must stay the same or be told
            code = f"{type(error).__name__}: {error}"
        finally:
            sys.stdin = stdin
            os.environ.clear()
            os.environ.update(before)
            logging.getLogger("bunko").handlers.clear()  # they write to the stderr of this run
        return {"code": code, "out": _text(out), "err": _text(err)}


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "backslashreplace")
