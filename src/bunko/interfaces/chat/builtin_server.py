"""Call the tools of the library in this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread

from bunko.errors import BunkoError
from bunko.interfaces.chat.servers import TIMEOUT_HINT, MCPServerError, ServerTool, ToolOutput
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.rights.audit import local_caller
from bunko.types.access import Caller

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
