"""A folder in, a real `bunko serve` over it out: by its pipes, one line at a time, or over HTTP with a token."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.slow import corpus

TOKEN = "a token of these tests alone"
_ADDRESS = re.compile(r"http://\S+/mcp")
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


def command(docs: Path, *options: str) -> list[str]:
    """Return how our server is started."""
    return [sys.executable, "-m", "bunko", "serve", "--docs-dir", str(docs), *options]


class Piped:
    """A server over stdio, spoken to in plain lines: what a client sends and sees, with nothing in between."""

    def __init__(self, docs: Path, *options: str, **environ: str) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # a pipe that nobody reads would fill up
        self.process = subprocess.Popen(
            command(docs, *options),
            env=corpus.environment(**environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )
        self._number = 0
        self.ask("initialize", **_HELLO)
        self._write({"method": "notifications/initialized"})

    def __enter__(self) -> Piped:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._log):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def logged(self) -> str:
        """Return what the server wrote to stderr so far."""
        self._log.seek(0)
        return self._log.read().decode()

    def send(self, method: str, **params: Any) -> int:
        """Send a request and return its number."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        return self._number

    def read(self) -> dict[str, Any]:
        """Return the next message."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server ended"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        number = self.send(method, **params)
        while (answer := self.read()).get("id") != number:
            pass
        return answer

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a tool answers."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        result: dict[str, Any] = answer["result"]
        return result

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


@dataclass(frozen=True)
class Listening:
    """A server over HTTP."""

    address: str
    pid: int


@contextmanager
def over_http(docs: Path, *options: str) -> Iterator[Listening]:
    """Serve a folder over HTTP for as long as the block runs."""
    whole = [*command(docs, *options), "--http", "--port", "0"]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(whole, env=corpus.environment(BUNKO_TOKEN=TOKEN), stderr=log)
        told = Path(log.name)
        try:
            corpus.wait_until(lambda: _ADDRESS.search(told.read_text()) is not None, "bunko serve --http listens")
            yield Listening(_ADDRESS.findall(told.read_text())[0], process.pid)
            assert process.poll() is None, told.read_text()
        finally:
            process.kill()
            process.wait()
