"""Somebody with an empty home who types commands, writes files and connects an assistant."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import Ran
from tests.loopback import Loopback

PATIENCE = 60.0


class Person:
    """A user with a home, a current folder and the programs `bunko` and `python`; what is set is in `environ`."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.current = self.home / "work"
        self.current.mkdir(parents=True)
        programs = folder / "bin"
        programs.mkdir()
        for name, arguments in (("python", ""), ("bunko", "-m bunko ")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        self.environ = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONUTF8": "1",
        }
        self._log = folder / "server.log"

    def path(self, name: str) -> Path:
        """Return the path of a file, as a shell reads it."""
        return self.home / name[2:] if name.startswith("~/") else self.current / name

    def write(self, name: str, text: str) -> Path:
        """Write a file, with its folders."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, line: str, *, typed: str = "", **environ: str) -> Ran:
        """Type a line into a shell, and `typed` when it asks."""
        done = subprocess.run(
            ["sh", "-c", line], cwd=self.current, env={**self.environ, **environ}, input=typed,
            capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def connect(self, server: Mapping[str, Any], do: Callable[[Assistant], Awaitable[None]]) -> str:
        """Start an MCP server as an assistant does that reads this entry, use it, and return what it logged."""
        parameters = StdioServerParameters(
            command=server["command"],
            args=server["args"],
            env=self.environ | server.get("env", {}),
            cwd=server.get("cwd", self.current),
        )
        failure: list[BaseException] = []

        async def main() -> None:
            with self._log.open("w", encoding="utf-8") as log, anyio.fail_after(PATIENCE):
                async with Client(stdio_client(parameters, errlog=log)) as client:
                    try:
                        await do(Assistant(client))
                    except BaseException as error:  # outside, it is wrapped in a group of the client's tasks
                        failure.append(error)

        anyio.run(main)
        logged = self._log.read_text(encoding="utf-8")
        if failure:
            failure[0].add_note(f"The server logged:\n{logged}")
            raise failure[0]
        assert "Traceback" not in logged, logged
        return logged


class Assistant:
    """What an assistant does with a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tool_names(self) -> list[str]:
        return sorted(tool.name for tool in (await self._client.list_tools()).tools)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured answer."""
        result = await self._call(name, arguments)
        assert not result.is_error, result
        assert result.structured_content is not None
        return dict(result.structured_content)

    async def read(self, name: str, **arguments: Any) -> str:
        """Call a tool and return the text of its answer, or of its error."""
        result = await self._call(name, arguments)
        return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))

    async def _call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        result = await self._client.call_tool(name, arguments)
        assert isinstance(result, types.CallToolResult)
        return result


class CharacterPairs(Loopback):
    """An embedding service in which texts are near that have pairs of characters in common."""

    def numbers(self, text: str, size: int) -> list[float]:
        text = re.sub("^search_(document|query): ", "", text)
        numbers = [0.01] * size
        for pair in map("".join, pairwise(text)):
            numbers[int.from_bytes(hashlib.sha256(pair.encode()).digest()[:4], "big") % size] += 1
        return numbers


@contextmanager
def embedding_service(size: int) -> Iterator[CharacterPairs]:
    """Run an embedding service that answers with this many numbers."""
    service = CharacterPairs(size)
    try:
        yield service
    finally:
        service.close()
