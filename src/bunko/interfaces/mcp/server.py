"""The protocol: requests of both eras in, the desk's answers out, and a word to clients when the tools change."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError

from bunko import __version__
from bunko.errors import BunkoError
from bunko.interfaces.tools.params import schema
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply

_log = logging.getLogger("bunko.mcp")

_POLL_SECONDS = 1.0  # how soon a tool that another process added appears
_PROGRESS_SECONDS = 0.2
_MAX_SESSIONS = 256

RequestContext = ServerRequestContext[Any, Any]


class BunkoServer(Server[None]):
    """One MCP server over one desk."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        super().__init__(
            "bunko",
            version=__version__,
            title="bunko",
            instructions=registry.instructions(),
            lifespan=self._run_lifespan,
            cache_hints={"tools/list": CacheHint(ttl_ms=5_000)},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.middleware += [self._track_session, self._convert_errors]

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:
        """Claim only what happens: the SDK takes a server that can be listened to for one that tells of everything."""
        found = super().get_capabilities(*arguments, **options)
        if found.resources is not None:
            found.resources = types.ResourcesCapability(subscribe=False, list_changed=False)
        if found.tools is not None:
            found.tools = types.ToolsCapability(list_changed=self._registry.tools_can_change)
        return found

    @asynccontextmanager
    async def _run_lifespan(self, _: Server[None]) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            if self._registry.tools_can_change:
                tasks.start_soon(self._watch_tools)
            try:
                yield None
            finally:
                tasks.cancel_scope.cancel()
                self._registry.jobs.stop_all()

    async def _track_session(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Keep a way to each client, so that it can be told of changes between its requests."""
        headers = getattr(ctx.request, "headers", None)
        client = headers.get("mcp-session-id", "") if headers is not None else "stdio"
        if client:
            self._sessions.pop(client, None)
            self._sessions[client] = ctx.session
            while len(self._sessions) > _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return await call_next(ctx)

    async def _convert_errors(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Let what the user can act on arrive as a sentence, where a list or a document was asked for, too."""
        try:
            return await call_next(ctx)
        except BunkoError as error:
            raise MCPError(types.INTERNAL_ERROR, error_text(error)) from error

    async def _watch_tools(self) -> None:
        before: list[tuple[str, str]] | None = None
        while True:
            await anyio.sleep(_POLL_SECONDS)
            if not self._registry.is_open:
                continue
            try:
                known = await anyio.to_thread.run_sync(self._registry.active_tools)
            except BunkoError as error:
                _log.warning("%s", error_text(error))
                continue
            now = [(tool.name, tool.description) for tool in known]
            if now != (self._registry.initial_tools if before is None else before):
                await self._announce_tool_changes()
            before = now

    async def _announce_tool_changes(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for client, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception:  # a client that has gone is no reason to stop telling the others
                self._sessions.pop(client, None)

    async def _list_tools(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        found = await anyio.to_thread.run_sync(self._registry.tools)
        return types.ListToolsResult(tools=[tool_to_mcp(tool) for tool in found])

    async def _call_tool(self, ctx: RequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        stop = threading.Event()

        def work() -> ToolReply:
            library = self._registry.library()  # first: its settings decide the defaults of the tools
            tools = {tool.name: tool for tool in self._registry.tools()}
            if params.name not in tools:
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}. Known: {', '.join(tools)}.")
            return self._registry.call(tools[params.name], params.arguments or {}, ToolCall(library, {}, report, stop))

        told = 0.0

        def report(done: float, total: float, message: str) -> None:
            nonlocal told
            now = time.monotonic()
            if not stop.is_set() and (now - told >= _PROGRESS_SECONDS or done == total):
                told = now
                anyio.from_thread.run(ctx.session.report_progress, done, total, message)

        try:
            reply = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            stop.set()  # the thread ends after the documents in hand; the library stays whole
            raise
        except BunkoError as error:
            return _error_result(error_text(error))
        except MCPError:
            raise
        except Exception as error:
            _log.exception("%s failed", params.name)
            return _error_result(
                f"{params.name} failed inside bunko ({type(error).__name__}). The server's log says more."
            )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)], structured_content=reply.structured
        )

    async def _list_resources(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        from bunko.interfaces.mcp import resources

        cursor = params.cursor if params else None
        return await anyio.to_thread.run_sync(resources.list_resources, self._registry, cursor)

    async def _list_templates(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        from bunko.interfaces.mcp import resources

        return resources.list_resource_templates()

    async def _read_resource(
        self, ctx: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        from bunko.interfaces.mcp import resources

        return await anyio.to_thread.run_sync(
            resources.read_resource, self._registry, str(params.uri), ctx.protocol_version
        )


def tool_to_mcp(tool: ToolDefinition) -> types.Tool:
    """Return a tool as clients see it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema(tool.params),
        output_schema=dict(tool.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def serve_stdio(registry: ToolRegistry) -> None:
    """Serve one client over this process's own streams until it goes."""
    server = BunkoServer(registry)
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:
        _log.info("The client has gone in the middle of an answer")
