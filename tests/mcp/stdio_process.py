"""A server in a process of its own that speaks the protocol on stdin and stdout."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

PATIENCE = 60.0


def environment(tmp_path: Path) -> dict[str, str]:
    """A user who has set nothing."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT")}
    return {**kept, "HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home/.config")}


class Process:
    """A server in a process of its own, spoken to line by line."""

    def __init__(
        self,
        tmp_path: Path,
        *arguments: object,
        python: tuple[str, ...] = (),
        module: str = "bunko",
        command: tuple[str, ...] = ("serve",),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.lines: list[str] = []  # all that came on stdout
        self._coming: queue.Queue[str | None] = queue.Queue()
        self._answers: dict[object, dict[str, Any]] = {}
        self._log = tmp_path / "stderr.txt"
        self._number = 0
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *python, "-m", module, *command, *map(str, arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env=environment(tmp_path) | dict(environ or {}),
            )  # fmt: skip
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            self._coming.put(line.decode())
        self._coming.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stderr(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def write(self, line: str | bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n" if isinstance(line, str) else line + b"\n")
        self._process.stdin.flush()

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request and return its number."""
        self._number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}))
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """Wait for the answer to a request."""
        while number not in self._answers:
            line = self._coming.get(timeout=PATIENCE)
            assert line is not None, f"The server has gone: {self.stderr()}"
            self.lines.append(line)
            message = json.loads(line)
            self._answers[message.get("id")] = message
        return self._answers.pop(number)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.answer(self.send(method, params or {}))
        assert "error" not in answer, answer
        return dict(answer["result"])

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}})

    def shake_hands(self) -> dict[str, Any]:
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        met = self.ask("initialize", client)
        self.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return met

    def wait_for(self, word: str) -> None:
        """Wait for a line with some word in it."""
        while not self.lines or word not in self.lines[-1]:
            line = self._coming.get(timeout=PATIENCE)
            assert line is not None, f"The server has gone: {self.stderr()}"
            self.lines.append(line)

    def kill(self) -> None:
        """End it, if it still runs."""
        self._process.kill()
        self._process.wait(timeout=PATIENCE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._reader.join(timeout=PATIENCE)
        self._process.stdin.close()
        self._process.stdout.close()

    def wait(self) -> int:
        """Wait until it ends by itself and return its exit code."""
        try:
            return self._process.wait(timeout=PATIENCE)
        finally:
            self.kill()

    def end(self) -> int:
        """Close its stdin and return its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            return self._process.wait(timeout=PATIENCE)
        finally:
            self._process.kill()
            self._reader.join(timeout=PATIENCE)
            self._process.stdout.close()
            while not self._coming.empty():
                self.lines += [line for line in [self._coming.get()] if line]
