"""Helpers of the tests that watch a library."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library, paths_for_folder
from tests.cli.processes import subprocess_environment

PATIENCE = 60.0
linux = pytest.mark.skipif(sys.platform != "linux", reason="folders are watched one by one only where inotify is")


def wait_until(is_true: Callable[[], bool], condition: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline, f"waited in vain: {condition}"
        time.sleep(0.02)


class WatchProcess:
    """A `bunko watch --json` in a process of its own, and the lines it printed."""

    def __init__(self, command: list[str], tmp_path: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env=subprocess_environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def wait_for(self, event: str, *, times: int = 1) -> dict[str, Any]:
        def matching_lines() -> list[dict[str, Any]]:
            return [line for line in self.lines if line["event"] == event]

        wait_until(
            lambda: len(matching_lines()) >= times or self.process.poll() is not None, f"{event} in {self.lines}"
        )
        assert len(matching_lines()) >= times, self.lines
        return matching_lines()[-1]

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Send a signal and return the exit code and what went to stderr."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def __enter__(self) -> WatchProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


def open_at(place: Path, docs: Path | None = None, *, create: bool = True) -> Library:
    paths = locate_library(docs_dir=docs, environ={}) if docs else paths_for_folder(place)
    return open_library(paths, environ={}, create=create)


def add_tool(place: Path, name: str, folder: Path, **options: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open_at(place) as library:
        library.tools.add(name, f"About {name}", folder, **options)  # type: ignore[arg-type]


def uris(place: Path, name: str) -> set[str]:
    with open_at(place) as library:
        tools = [tool.id for tool in library.tools() if tool.name == name]
        return set(library.store.documents.fingerprints(tools[0])) if tools else set()


def save_by_rename(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp~")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def start_watching(docs: Path, tmp_path: Path, *flags: str) -> WatchProcess:
    return WatchProcess([sys.executable, "-m", "bunko", "watch", "--docs-dir", str(docs), *flags], tmp_path)
