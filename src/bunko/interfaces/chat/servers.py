"""Describe what a server of tools offers to a chat, and be one for the tools of the library in this process."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.rights.audit import local_caller
from bunko.types.access import Caller

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


_log = logging.getLogger("bunko.chat")

# On whose behalf the current task calls tools, if that is not the one who runs the process.
CURRENT_CALLER: ContextVar[Caller | None] = ContextVar("CURRENT_CALLER", default=None)


class BuiltinServer:
    """The tools of a registry, run in threads."""

    def __init__(self, registry: ToolRegistry, name: str = "bunko", caller: Caller | None = None) -> None:
        self.name, self._registry, self._caller = name, registry, caller or local_caller("chat")

    async def tools(self) -> list[ServerTool]:
        """Return the current tools of the registry that the caller may know."""
        caller = CURRENT_CALLER.get() or self._caller
        definitions = await anyio.to_thread.run_sync(lambda: self._registry.tools(caller), abandon_on_cancel=True)
        return [ServerTool(tool.name, tool.description, tool.input_schema, tool.read_only) for tool in definitions]

    async def call(self, tool: ServerTool, arguments: Mapping[str, Any], timeout: float) -> ToolOutput:
        """Call a tool; one that is cancelled or takes too long ends after its current batch."""
        stop, caller = threading.Event(), CURRENT_CALLER.get() or self._caller

        def work() -> ToolReply:
            definition = self._registry.find_tool(tool.name, caller)
            if definition is None:
                raise MCPServerError(f"The library no longer has the tool {tool.name}", hint="Search the others.")
            call = ToolCall(self._registry.access(caller), {}, stop=stop)
            return self._registry.call(definition, dict(arguments), call)

        try:
            with anyio.fail_after(timeout):
                reply = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            raise MCPServerError(f"{tool.name} did not finish within {timeout:g} s", hint=TIMEOUT_HINT) from None
        except MCPServerError:
            raise
        except BunkoError as error:
            return ToolOutput(error_text(error), is_error=True)
        finally:
            stop.set()
        return ToolOutput(reply.text, reply.structured)
