"""Describe what a server of tools offers to a chat."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bunko.errors import BunkoError

# Of a call that took too long.
TIMEOUT_HINT = "If calls need more time, set mcp.call_timeout."


class MCPToolNotFoundError(BunkoError):
    """No server offers a tool of that name."""

    code = "unknown"


class MCPServerError(BunkoError):
    """A server cannot be started, does not answer in time, or has ended."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server describes it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool = False  # as the server says; what it does not say may change something

    def digest(self) -> str:
        """Return a hash of everything that a model is told about the tool."""
        parts = [self.name, self.description, self.input_schema, self.read_only]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call returned: its text, which is data from elsewhere, and its structured content if there is any."""

    text: str
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


class ToolServer(Protocol):
    """A server of tools: in this process, or another one."""

    name: str

    async def tools(self) -> list[ServerTool]:
        """Return its tools, or raise MCPServerError."""

    async def call(self, tool: ServerTool, arguments: Mapping[str, Any], timeout: float) -> ToolOutput:
        """Call one of its tools, or raise MCPServerError."""
