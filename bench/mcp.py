"""Measure the MCP server against a server of the SDK: until its first replies, and per search.

Both are CPU time of the server, read from outside, beside an empty server or an empty tool in the same run.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import queries
from bench.clock import environment
from bench.libraries import VECTORS, Libraries, open_docs
from bench.table import Result, Table, check, number

CHUNKS = 22_000
ROUNDS = 15
CALLS = 200  # in a row
CALL_ROUNDS = 7
SDK_TOOL = "an empty tool of the SDK"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
EMPTY = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult

async def list_tools(context, params):
    return ListToolsResult(tools=[])

async def call_tool(context, params):
    return CallToolResult(content=[], structured_content={})

async def main():
    server = Server("empty", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""


def run(libraries: Libraries) -> Result:
    docs = libraries.docs(CHUNKS)
    serve = ["-m", "bunko", "serve", "--docs-dir", str(docs)]
    ours, of_sdk = _measure_first_replies([serve, ["-c", EMPTY]])
    first_search = _measure_first_search(serve)
    call_seconds = _measure_calls(docs)
    table = Table(("what", "ms CPU of the server", "× the SDK"))
    for name, seconds, sdk_seconds in zip(("`initialize`", "`initialize` and `tools/list`"), ours, of_sdk, strict=True):
        table.rows += [
            (f"{name}, an empty server of the SDK", number(sdk_seconds * 1e3), "1"),
            (f"{name}, `bunko serve --docs-dir`", number(seconds * 1e3), number(seconds / sdk_seconds)),
        ]
    table.rows.append(("`initialize`, `tools/list` and a first `search`", number(first_search * 1e3), ""))
    table.rows += [
        (f"a call, {name}", number(seconds * 1e3), number(seconds / call_seconds[SDK_TOOL]))
        for name, seconds in call_seconds.items()
    ]
    search_seconds, sdk_seconds = call_seconds["`search`"], call_seconds[SDK_TOOL]
    return Result(
        {"mcp": table},
        [
            check("`initialize` and `tools/list`, cold", ours[1], 0.35, "CPU-s"),
            check("`initialize`, `tools/list` and a first `search`, cold", first_search, 0.35, "CPU-s"),
            check("of it without the search ÷ an empty server of the SDK", ours[1] / of_sdk[1], 1, "×"),
            check(f"a search over MCP, {CHUNKS:,} chunks", search_seconds * 1e3, 2.5, "ms CPU"),
            check("of it beyond an empty tool of the SDK", (search_seconds - sdk_seconds) * 1e3, 1.2, "ms CPU"),
            check("our empty tool ÷ one of the SDK", call_seconds["an empty tool"] / sdk_seconds, 1, "×"),
        ],
    )


class Server:
    """A server in a separate process, spoken to in JSON lines."""

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
        """Call a tool, and fail on an error, which would be fast but prove nothing."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        if "result" not in answer or answer["result"].get("isError"):
            raise SystemExit(f"{tool} failed: {answer}")

    def ready(self) -> None:
        """Send the notification that calls may follow."""
        self._send({"method": "notifications/initialized"})

    def cpu(self) -> float:
        """Return the CPU seconds that the server has used so far."""
        return time.clock_gettime(_cpu_clock(self._process.pid))

    def close(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def _cpu_clock(pid: int) -> int:
    """Return the number of the clock that counts the CPU time of a process, as Linux makes it of the process id."""
    return (~pid << 3) | 2


def _measure_first_replies(commands: Sequence[Sequence[str]]) -> list[tuple[float, float]]:
    """Return for each command the CPU seconds until `initialize` and until `tools/list` is answered."""
    seconds_by_command: list[list[tuple[float, float]]] = [[] for _ in commands]
    for round_index in range(ROUNDS + 1):
        for command, seconds in zip(commands, seconds_by_command, strict=True):
            server = Server(command)
            first_reply = server.cpu()
            server.ready()
            server.ask("tools/list")
            if round_index:  # the first round writes the bytecode and loads the files into memory
                seconds.append((first_reply, server.cpu()))
            server.close()
    # Noise only adds, so the slower half is left out.
    fastest = ROUNDS // 2 + 1
    return [
        (statistics.mean(sorted(first)[:fastest]), statistics.mean(sorted(both)[:fastest]))
        for first, both in (zip(*seconds, strict=True) for seconds in seconds_by_command)
    ]


def _measure_first_search(command: Sequence[str]) -> float:
    """Return the CPU seconds until a server has answered its first search."""
    seconds = []
    for _ in range(ROUNDS):
        server = Server(command)
        server.ready()
        server.ask("tools/list")
        server.call("search", query=queries.all_queries()[0])
        seconds.append(server.cpu())
        server.close()
    return statistics.mean(sorted(seconds)[: ROUNDS // 2 + 1])


def _measure_calls(docs: Path) -> dict[str, float]:
    """Return the CPU seconds of one call of each kind; the kinds take turns."""
    all_queries = queries.all_queries()
    servers = {"bunko": Server(["-m", "bench.mcp", str(docs)]), "sdk": Server(["-c", EMPTY])}
    kinds: dict[str, tuple[Server, str, dict[str, Any]]] = {
        SDK_TOOL: (servers["sdk"], "empty", {}),
        "an empty tool": (servers["bunko"], "empty", {}),
        "`search`": (servers["bunko"], "search", {}),
        "`search`, detailed": (servers["bunko"], "search", {"response_format": "detailed"}),
    }
    for server in servers.values():
        server.ready()
    seconds_by_kind: dict[str, list[float]] = {name: [] for name in kinds}
    for round_index in range(CALL_ROUNDS + 1):
        for name, (server, tool, options) in kinds.items():
            before = server.cpu()
            for index in range(CALLS):
                query = {"query": all_queries[index % len(all_queries)]} if tool == "search" else {}
                server.call(tool, **query, **options)
            if round_index:
                seconds_by_kind[name].append((server.cpu() - before) / CALLS)
    for server in servers.values():
        server.close()
    return {name: min(seconds) for name, seconds in seconds_by_kind.items()}  # noise only adds


def main() -> None:
    """Serve a folder like bunko, with an additional tool that does nothing."""
    from bunko.interfaces.mcp.stdio import serve_stdio
    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.interfaces.tools.tool import ToolDefinition, ToolReply, object_schema
    from bunko.types.access import Caller

    empty = ToolDefinition(
        "empty", "Nothing", "Does nothing", (), object_schema({}), lambda _: ToolReply("", {}), right="read"
    )

    class RegistryWithEmptyTool(ToolRegistry):
        def tools(self, caller: Caller | None = None) -> list[ToolDefinition]:
            return sorted([*super().tools(caller), empty], key=lambda tool: tool.name)

    docs = Path(sys.argv[1])
    asyncio.run(serve_stdio(RegistryWithEmptyTool(lambda: open_docs(docs), folder=str(docs))))


if __name__ == "__main__":
    main()
