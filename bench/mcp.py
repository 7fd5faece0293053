"""A library in, what its MCP server adds to the SDK it is built on out: until the first reply, and for each search.

Both are the server's own CPU time, read from outside, beside an empty server or an empty tool in the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import queries
from bench.clock import environment
from bench.libraries import MEDIUM, VECTORS, Libraries, open_docs
from bench.table import Result, Table, check, number

ROUNDS = 15
CALLS = 200  # in a row, so that the kernel's hundredths of a second are fine enough
TURNS = 7
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
EMPTY = """
import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

async def main():
    server = Server("empty")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""


def run(libraries: Libraries) -> Result:
    docs = libraries.docs(MEDIUM)
    ours, empty = _first_replies([["-m", "bunko", "serve", "--docs-dir", str(docs)], ["-c", EMPTY]])
    found = _calls(docs)
    table = Table(("what", "ms CPU of the server"))
    table.rows += [
        ("first reply, an empty server of the SDK", number(empty * 1e3)),
        ("first reply, `bunko serve --docs-dir`", number(ours * 1e3)),
        *((f"a call, {name}", number(seconds * 1e3)) for name, seconds in found.items()),
    ]
    added = max(seconds for name, seconds in found.items() if name != "an empty tool") - found["an empty tool"]
    return Result(
        {"mcp": table},
        [
            check("the MCP server's first reply", ours, 1.5, "CPU-s"),
            check("of it beyond an empty server of the SDK", (ours - empty) * 1e3, 100, "ms CPU"),
            check(f"a search over MCP beyond an empty tool, {MEDIUM:,} chunks", added * 1e3, 2, "ms CPU"),
        ],
    )


class Server:
    """A server in a process of its own, spoken to in lines."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *arguments], env=environment(**VECTORS), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0
        self.ask("initialize", **HELLO)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"The server ended without an answer to {method}")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                return answer

    def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool; an error would be quick and prove nothing."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        if "result" not in answer or answer["result"].get("isError"):
            raise SystemExit(f"{tool} failed: {answer}")

    def ready(self) -> None:
        """Say that calls may follow."""
        self._send({"method": "notifications/initialized"})

    def cpu(self) -> float:
        """Return the CPU seconds that the server has used so far."""
        # The second field is a name in brackets and may hold anything; after it fields are separated by spaces.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def _first_replies(commands: Sequence[Sequence[str]]) -> list[float]:
    spent: list[list[float]] = [[] for _ in commands]
    for turn in range(ROUNDS + 1):
        for command, seconds in zip(commands, spent, strict=True):
            server = Server(command)
            if turn:  # the first one writes the bytecode and brings the files into memory
                seconds.append(server.cpu())
            server.close()
    # The mean, since the kernel counts in hundredths; noise only adds, so the slower half is left out.
    return [statistics.mean(sorted(seconds)[: ROUNDS // 2 + 1]) for seconds in spent]


def _calls(docs: Path) -> dict[str, float]:
    """Return the CPU seconds of one call of each kind; they take turns."""
    asked = [one for kind in (queries.one_word() | queries.questions()).values() for one in kind]
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "an empty tool": ("empty", {}),
        "`search`": ("search", {}),
        "`search`, concise": ("search", {"response_format": "concise"}),
    }
    server = Server(["-m", "bench.mcp", str(docs)])
    server.ready()
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for turn in range(TURNS + 1):
        for name, (tool, options) in kinds.items():
            before = server.cpu()
            for one in range(CALLS):
                query = {"query": asked[one % len(asked)]} if tool == "search" else {}
                server.call(tool, **query, **options)
            if turn:
                spent[name].append((server.cpu() - before) / CALLS)
    server.close()
    return {name: min(seconds) for name, seconds in spent.items()}  # noise only adds


def main() -> None:
    """Serve a folder as bunko does, with one more tool that does nothing."""
    import anyio

    from bunko.interfaces.mcp.server import serve_stdio
    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.interfaces.tools.tool import ToolDefinition, ToolReply, object_schema

    empty = ToolDefinition("empty", "Nothing", "Does nothing", (), object_schema({}), lambda _: ToolReply("", {}))

    class Beside(ToolRegistry):
        def tools(self) -> list[ToolDefinition]:
            return sorted([*super().tools(), empty], key=lambda tool: tool.name)

    docs = Path(sys.argv[1])
    anyio.run(serve_stdio, Beside(lambda: open_docs(docs), folder=str(docs)))


if __name__ == "__main__":
    main()
