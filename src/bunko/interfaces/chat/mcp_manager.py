"""Offer the tools of several servers under one roof, and call them by name."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from bunko.errors import BunkoError
from bunko.interfaces.chat.private_files import write_private
from bunko.interfaces.chat.servers import MCPServerError, MCPToolNotFoundError, ServerTool, ToolOutput, ToolServer

_log = logging.getLogger("bunko.chat")

_NAME_SEPARATOR = "__"
_MAX_NAME_LENGTH = 64  # of a function, for OpenAI's models and those that follow them


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a server, under the name by which a model calls it."""

    name: str
    server: str
    tool: ServerTool
    has_changed: bool = False  # since it was offered last, unannounced


class MCPManager:
    """The tools of all servers; a server that is away costs its own tools only."""

    def __init__(
        self,
        servers: Sequence[ToolServer],
        *,
        call_timeout: float = 60.0,
        max_output_chars: int = 100_000,
        digests_path: Path | None = None,  # remembers what the tools looked like when they were last offered
        own_servers: Collection[str] = (),  # whose tools may change without being announced
    ) -> None:
        self._servers, self._call_timeout, self._max_output_chars = servers, call_timeout, max_output_chars
        self._digests_path, self._own_servers = digests_path, own_servers
        self._digests = _read_digests(digests_path)
        self._unannounced: dict[tuple[str, str], str] = {}  # changed tools and their new digests
        self._offered: list[OfferedTool] = []
        self.problems: dict[str, str] = {}  # of servers that are away, by their names

    async def tools(self) -> list[OfferedTool]:
        """Return the tools of all servers that can be reached; `problems` tells about the others."""
        listed: dict[str, list[ServerTool]] = {}
        self.problems = {}

        async def list_tools(server: ToolServer) -> None:
            try:
                listed[server.name] = await server.tools()
            except BunkoError as error:
                self.problems[server.name] = error.message

        async with anyio.create_task_group() as tasks:
            for server in self._servers:
                tasks.start_soon(list_tools, server)
        offered: dict[str, OfferedTool] = {}
        for server in self._servers:  # in the order of the file, so that names do not depend on who answers first
            for tool in listed.get(server.name, []):
                name = _function_name(tool.name)
                if name in offered:
                    name = _function_name(f"{server.name}{_NAME_SEPARATOR}{tool.name}")
                self._compare(server.name, tool)
                has_changed = (server.name, tool.name) in self._unannounced
                offered.setdefault(name, OfferedTool(name, server.name, tool, has_changed))
        self._write_digests()
        self._offered = list(offered.values())
        return self._offered

    def has_server(self, name: str) -> bool:
        """Return whether a server has listed tools."""
        return any(tool.server == name for tool in self._offered)

    def find_tool(self, server: str, name: str) -> OfferedTool | None:
        """Return a tool of a server by the name that the server calls it."""
        return next((tool for tool in self._offered if (tool.server, tool.tool.name) == (server, name)), None)

    def announcements(self) -> list[str]:
        """Return a sentence about each tool that has changed; those who call this show them, and the tools are free."""
        changed = list(self._unannounced)
        for (server, tool), digest in self._unannounced.items():
            self._digests.setdefault(server, {})[tool] = digest
        self._unannounced.clear()
        self._write_digests()
        return [
            f"The tool {tool} of the MCP server {server} has another description or other parameters than before."
            for server, tool in changed
        ]

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> ToolOutput:
        """Call a tool; raise MCPToolNotFoundError if no server has it, MCPServerError if its server fails."""
        match = _find(self._offered, name) or _find(await self.tools(), name)
        if match is None:
            away = "".join(f" {server} is not available: {problem}." for server, problem in self.problems.items())
            raise MCPToolNotFoundError(
                f"No MCP server offers the tool {name[:80]}",
                hint=f"Add its server to the list of MCP servers.{away}",
            )
        server = next(server for server in self._servers if server.name == match.server)
        for tool in await server.tools():
            self._compare(server.name, tool)
        if (match.server, match.tool.name) in self._unannounced:
            raise MCPServerError(
                f"The tool {match.tool.name} of the MCP server {match.server} has changed since it was last offered",
                hint="It can be used after its change has been shown.",
            )
        output = await server.call(match.tool, arguments or {}, self._call_timeout if timeout is None else timeout)
        if len(output.text) > self._max_output_chars:
            left_out = len(output.text) - self._max_output_chars
            text = f"{output.text[: self._max_output_chars]}\n[{left_out:,} more characters were left out]"
            output = replace(output, text=text, structured=None)
        return output

    def _compare(self, server: str, tool: ServerTool) -> None:
        """Note a tool that looks different from the last time; one that is new is remembered as it is."""
        if server in self._own_servers:
            return
        digests, digest = self._digests.setdefault(server, {}), tool.digest()
        if digests.setdefault(tool.name, digest) == digest:
            self._unannounced.pop((server, tool.name), None)
        else:
            self._unannounced[server, tool.name] = digest

    def _write_digests(self) -> None:
        if self._digests_path is None or _read_digests(self._digests_path) == self._digests:
            return
        try:
            write_private(self._digests_path, json.dumps(self._digests, indent=1, sort_keys=True))
        except OSError as error:
            _log.warning("What the tools of MCP servers look like was not stored: %s", error)


def _read_digests(path: Path | None) -> dict[str, dict[str, str]]:
    if path is not None:
        with suppress(OSError, ValueError, AttributeError, TypeError):
            return {server: dict(tools) for server, tools in json.loads(path.read_text("utf-8")).items()}
    return {}


def _find(offered: Sequence[OfferedTool], name: str) -> OfferedTool | None:
    """Return the tool that a model knows under a name, else the first one that its server calls so."""
    for tool in offered:
        if tool.name == name:
            return tool
    return next((tool for tool in offered if tool.tool.name == name), None)


def _function_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_MAX_NAME_LENGTH] or "_"
