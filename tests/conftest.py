"""Fixtures for a docs folder, its library and the command line."""

from __future__ import annotations

import json
import logging
import os
import platform
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from bunko.interfaces.cli.main import main
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.messages import set_language
from tests.loopback import Loopback

# On a busy machine, any example may take long.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# What is imported of this repository is not looked up in its own history: a test would depend on how it was cloned.
os.environ["GIT_CEILING_DIRECTORIES"] = str(Path(__file__).parents[1])

# The SDK of OpenAI and others ask for it once in a process, which starts `uname`.
platform.processor()

if TYPE_CHECKING:
    from tests.scale.postgres_server import PostgresServer

# A process started in the background ignores Ctrl-C, and so would the child processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Commands speak the language of the system; what tests expect is English wherever they run, programs that they start
# included.
for name in ("LC_ALL", "LC_MESSAGES", "LANGUAGE"):
    os.environ.pop(name, None)
os.environ["LANG"] = "C.UTF-8"

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


@pytest.fixture(autouse=True)
def reset_output() -> None:
    """Undo how a command of another test speaks, and how it logs: to the stderr of that test and nothing else."""
    set_language(None)
    log = logging.getLogger("bunko")
    log.handlers.clear()
    log.propagate = True
    for logger in (log, logging.getLogger("bunko.retrieve")):
        logger.setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def refuse_programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only slow tests start programs: on a busy machine, nobody knows when they run, and they cost most."""
    if any(request.node.get_closest_marker(name) for name in ("slow", "models", "scale")):
        return
    start = subprocess.Popen.__init__

    def start_helper(self: Any, arguments: Any, *rest: Any, **options: Any) -> None:
        if "-P" not in arguments:  # bunko's own process for PDF files, which each test process has once
            pytest.fail("This test starts a program: mark it as slow.")
        start(self, arguments, *rest, **options)

    def refuse(_: BaseProcess) -> None:
        pytest.fail("This test starts a process: mark it as slow.")

    monkeypatch.setattr(subprocess.Popen, "__init__", start_helper)
    monkeypatch.setattr(BaseProcess, "start", refuse)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """An empty folder for documents."""
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


@pytest.fixture
def service() -> Iterator[Loopback]:
    """A service on loopback that computes vectors of 768 numbers, as models of the settings do."""
    loopback = Loopback(768)
    yield loopback
    loopback.close()


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
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
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
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in this process, with a home of its own."""
    for name in [name for name in os.environ if name.startswith(("BUNKO_", "RAG_", "EMBEDDING_"))]:
        monkeypatch.delenv(name)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))

    def runner(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        logging.getLogger("bunko").handlers.clear()  # it writes to the stderr of this run
        return Ran(code, *capsys.readouterr())

    return runner
