"""Fixtures for a docs folder, its library and the command line."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bunko.interfaces.cli.main import main
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library

if TYPE_CHECKING:
    from tests.scale.postgres_server import PostgresServer

# A process started in the background ignores Ctrl-C, and so would the child processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

Opener = Callable[..., Library]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, object]:
        """Return the object it printed."""
        parsed = json.loads(self.out)
        assert isinstance(parsed, dict)
        assert self.code == (1 if parsed.get("results") == [] else 0), self.err
        return parsed


Run = Callable[..., Ran]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """An empty folder for documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for the tests marked `scale`; each library gets a schema of its own."""
    from tests.scale.postgres_server import PostgresServer

    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def open_docs(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Open the library of the folder; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    opened: list[Library] = []

    def opener(*, read_only: bool = False, **environ: str) -> Library:
        paths = locate_library(docs_dir=docs, environ=environ)
        environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
        opened.append(open_library(paths, environ=environ, read_only=read_only))
        return opened[-1]

    yield opener
    for library in opened:
        library.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run a command line in this process, with a home of its own."""
    for name in [name for name in os.environ if name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))]:
        monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    log = logging.getLogger("bunko")
    level, propagate = log.level, log.propagate

    def runner(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        log.handlers.clear()  # another test may have left one, which writes to its own stderr
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        log.handlers.clear()  # it writes to the stderr of this run
        return Ran(code, *capsys.readouterr())

    yield runner
    log.setLevel(level)
    log.propagate = propagate
    logging.getLogger("bunko.retrieve").setLevel(logging.NOTSET)
