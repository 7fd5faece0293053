"""Build and serve a library for the page: many chunks, a large document, and pages that are imported meanwhile."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from bench import corpus
from bench.clock import environment

TOKEN = "a token of this benchmark alone"
LARGE_BYTES = 10_000_000
LARGE_NAME = "ten-megabytes.md"
PAGES_PER_IMPORT = 400  # about 3,200 chunks: enough for progress to be seen
_START_SECONDS = 120.0


class PageLibrary:
    """A library with three tools: one to search, one with a large document, and one that is imported meanwhile."""

    def __init__(self, folder: Path, chunks: int) -> None:
        self.folder, self.chunks = folder, chunks
        self.library, self.changing = folder / "library", folder / "changing"
        self.environ = environment(
            EMBEDDING_PROVIDER="static", BUNKO_TOKEN=TOKEN, XDG_CONFIG_HOME=str(folder / "config")
        )

    def build(self) -> None:
        """Write the documents and import them, unless an earlier run did."""
        built = self.folder / "built"
        if built.exists():
            return
        corpus.write(self.folder / "still", self.chunks)
        (self.folder / "large").mkdir(parents=True, exist_ok=True)
        (self.folder / "large" / LARGE_NAME).write_text(_large_document(), encoding="utf-8")
        self.write_changes(0)
        self._run("init")
        for name in ("still", "large", "changing"):
            self._run("tool", "add", "--name", name, "--description", name, "--source", str(self.folder / name))
            self._run("import", "-n", name)
        built.touch()

    def write_changes(self, round_index: int) -> None:
        """Write other texts into the pages of the tool that is imported meanwhile."""
        for name, text in corpus.pages(PAGES_PER_IMPORT, seed=1000 + round_index):
            path = self.changing / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve the library; yield the address."""
        log = self.folder / "server.log"
        command = [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--library", str(self.library)]
        with open(log, "wb") as file:
            process = subprocess.Popen(command, env=self.environ, stderr=file)
        try:
            yield _wait_for_address(process, log)
        finally:
            process.terminate()
            process.wait()

    def _run(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "bunko", *arguments, "--library", str(self.library)]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"bunko {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")


def session_cookie(address: str) -> tuple[str, str]:
    """Sign in with the token of the server; return the name and the value of the cookie."""
    response = httpx2.post(f"{address}/login", data={"token": TOKEN}, headers={"Origin": address})
    if response.status_code != 303:
        raise SystemExit(f"The server did not accept its token: {response.status_code}")
    name, _, value = response.headers["set-cookie"].partition(";")[0].partition("=")
    return name, value


@contextmanager
def listen(address: str, count: int) -> Iterator[None]:
    """Read the events of the server on this many connections while the block runs."""
    url = urlsplit(address)
    request = f"GET /api/v1/events HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection((url.hostname, url.port)))
            connection.sendall(request.encode())
            if not (head := connection.recv(4096)).startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"The server sent no events: {head[:100]!r}")
            reader = threading.Thread(target=_read_all, args=(connection,))
            reader.start()
            stack.callback(reader.join)
            stack.callback(connection.shutdown, socket.SHUT_RDWR)  # a read that waits keeps a closed socket open
        yield


def _read_all(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(65_536):
            pass


def _large_document() -> str:
    """Return a document without any word of the other pages: searches should find those, not this one."""
    parts = ["# Ten megabytes\n\n"]
    size = len(parts[0])
    while size < LARGE_BYTES:
        number = len(parts)
        words = " ".join(f"zq{number * 31 % 9973}x{word}" for word in range(60))
        parts.append(f"## Zq {number}\n\n{words}\n\n")
        size += len(parts[-1])
    return "".join(parts)


def _wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if found := re.search(r"http://[\w.:\[\]]+", log.read_text(encoding="utf-8")):
            try:
                if httpx2.get(f"{found[0]}/readyz", timeout=_START_SECONDS).status_code == 200:
                    return found[0]
            except httpx2.HTTPError:
                pass
        time.sleep(0.05)
    raise SystemExit(f"The server did not start: {log.read_text(encoding='utf-8')}")
