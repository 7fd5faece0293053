"""Start real index servers on loopback, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from bunko.indexes.options import ChromaOptions, EngineOptions, MilvusOptions

# The engines that are not part of bunko: Chroma in files and on a server; Milvus in a file and on a server.
ENGINES = ("chroma", "chroma-server", "milvus", "milvus-server")
# The address and token of a Milvus server to test with, instead of starting one.
MILVUS_URI, MILVUS_TOKEN = "BUNKO_TEST_MILVUS_URI", "BUNKO_TEST_MILVUS_TOKEN"
_START_SECONDS = 60


def free_port() -> int:
    """Return a port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_chroma() -> Path:
    """Return the command of Chroma, or skip the test."""
    command = Path(sys.executable).with_name("chroma")
    if find_spec("chromadb") is None or not command.exists():
        pytest.skip("chromadb is not installed here: make test-scale installs it")
    return command


class Server:
    """A server process that can be killed and started again on the same port with the same data."""

    def __init__(self, command: Sequence[str], port: int, log: Path, *, health_url: str = "", **environ: str) -> None:
        self._command, self.port, self._log, self._health_url = command, port, log, health_url
        self._environ = {**os.environ, **environ}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environ)
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{self._command[0]} did not start: {self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with suppress(OSError):
            if self._health_url:
                with urllib.request.urlopen(self._health_url, timeout=5) as response:
                    return bool(response.status == 200)
            with socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return True
        return False


@contextmanager
def chroma_server(folder: Path) -> Iterator[Server]:
    """Run `chroma run` with its data in a folder."""
    command, port = require_chroma(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    arguments = [str(command), "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(folder / "data")]
    server = Server(arguments, port, folder / "chroma.log", health_url=f"http://127.0.0.1:{port}/api/v2/heartbeat")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def require_milvus() -> None:
    """Skip the test if pymilvus or the Milvus Lite core is missing."""
    if find_spec("pymilvus") is None or find_spec("milvus_lite") is None:
        pytest.skip("pymilvus and milvus-lite are not installed here: make test-scale installs them")


@contextmanager
def milvus_server(folder: Path) -> Iterator[Server]:
    """Run `milvus-lite server` of the environment that the Makefile makes for it, with its data in a folder."""
    command = Path(__file__).parents[2] / ".venv-milvus" / "bin" / "milvus-lite"
    if find_spec("pymilvus") is None or not command.exists():
        pytest.skip("there is no Milvus server in .venv-milvus: make test-scale installs it")
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    arguments = [str(command), "server", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(folder / "data")]
    # It indexes the rows that it has not written to files yet anew for each search: a second for a thousand of them.
    server = Server(arguments, port, folder / "milvus.log", MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES="100000")
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def start_engine(name: str, folder: Path) -> Iterator[EngineOptions]:
    """Start one of `ENGINES` with its data in a folder, and yield the options of an index in it.

    A busy machine must not make a search fall back to what is left on it.
    """
    if name == "chroma":
        require_chroma()
        yield EngineOptions(chroma=ChromaOptions(folder=folder / "chroma", timeout=60.0))
    elif name == "chroma-server":
        with chroma_server(folder) as server:
            yield EngineOptions(chroma=ChromaOptions(url=f"http://127.0.0.1:{server.port}", timeout=60.0))
    elif name == "milvus":
        require_milvus()
        yield EngineOptions(milvus=MilvusOptions(uri=str(folder / "milvus.db"), timeout=60.0))
    elif uri := os.environ.get(MILVUS_URI):
        yield EngineOptions(milvus=MilvusOptions(uri=uri, token=os.environ.get(MILVUS_TOKEN, ""), timeout=60.0))
    else:
        with milvus_server(folder) as server:
            yield EngineOptions(milvus=MilvusOptions(uri=f"http://127.0.0.1:{server.port}", timeout=60.0))
