"""Handle MCP requests, old and new protocol, and notify clients when the tools or the documents change."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bunko import __version__
from bunko.errors import BunkoError
from bunko.interfaces.mcp.progress import ProgressReports
from bunko.interfaces.mcp.stdio_streams import claim_stdio
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply
from bunko.interfaces.worker_threads import Workers
from bunko.types import Tool
from bunko.types.access import Caller

_log = logging.getLogger("bunko.mcp")

_POLL_SECONDS = 1.0  # how soon a tool or document that another process added appears
_MAX_SESSIONS = 256
_ANNOUNCE_SECONDS = 5.0  # a client that does not read must not keep the others waiting
# Calls that run at once, those that were cancelled but hang included. More wait a moment, then get an error.
_MAX_CALLS = 100
_MAX_LISTINGS = 20
_MAX_WAIT_SECONDS = 10.0
_END_SECONDS = 3.0

RequestContext = ServerRequestContext[Any, Any]
_replies: ContextVar[list[ToolReply]] = ContextVar("replies")  # of the call that is being answered


class BunkoServer(Server[None]):
    """An MCP server over a tool registry."""

    def __init__(self, registry: ToolRegistry, *, is_local: bool = True, keeps_sessions: bool = True) -> None:
        """Serve whoever started this process, else only callers that a `TokenGuard` has checked."""
        self._registry, self._is_local, self._keeps_sessions = registry, is_local, keeps_sessions
        self._bus = InMemorySubscriptionBus()
        self._sessions: dict[str, ServerSession] = {}
        self._known_generation: int | None = None  # what clients know, or have been told to ask for
        self._calls = Workers("calls", max_threads=_MAX_CALLS, max_wait_seconds=_MAX_WAIT_SECONDS)
        # On their own, so that clients can still list tools while all calls hang.
        self._listings = Workers("listings", max_threads=_MAX_LISTINGS, max_wait_seconds=_MAX_WAIT_SECONDS)
        self._changes = Workers("waits for changes", max_threads=1, max_wait_seconds=_MAX_WAIT_SECONDS)
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
        self.middleware += [self._track_session, self._convert_errors, self._add_reply]

    def wait_for_calls(self, seconds: float) -> None:
        """Wait at most this long for calls that were told to stop: one that imports has processes to end."""
        self._calls.join(seconds)

    def get_capabilities(
        self, *arguments: Any, protocol_version: str | None = None, **options: Any
    ) -> types.ServerCapabilities:
        """Declare only real capabilities: the SDK assumes that a server with subscriptions reports every change."""
        capabilities = super().get_capabilities(*arguments, protocol_version=protocol_version, **options)
        # Newer clients open a stream for changes, which needs no session. Older ones are told in their session.
        can_notify = self._keeps_sessions or protocol_version in MODERN_PROTOCOL_VERSIONS
        if capabilities.resources is not None:
            capabilities.resources = types.ResourcesCapability(subscribe=False, list_changed=True)
        if capabilities.tools is not None:
            capabilities.tools = types.ToolsCapability(list_changed=can_notify and self._registry.tools_can_change)
        return capabilities

    @asynccontextmanager
    async def _run_lifespan(self, _: Server[None]) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_library)
            try:
                yield None
            finally:
                tasks.cancel_scope.cancel()
                self._registry.jobs.stop_all()

    async def _track_session(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Remember the session of each client, so that it can be notified between its requests."""
        headers = getattr(ctx.request, "headers", None)
        client_id = headers.get("mcp-session-id", "") if headers is not None else "stdio"
        if client_id:
            self._sessions.pop(client_id, None)
            self._sessions[client_id] = ctx.session
            while len(self._sessions) > _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return await call_next(ctx)

    async def _convert_errors(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Report errors the user can act on as MCP errors, also for requests other than tool calls."""
        try:
            return await call_next(ctx)
        except BunkoError as error:
            raise MCPError(types.INTERNAL_ERROR, error_text(error)) from error

    async def _add_reply(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Put the reply of a tool into its result, which the SDK has checked and copied without it."""
        if ctx.method != "tools/call":
            return await call_next(ctx)
        replies: list[ToolReply] = []
        _replies.set(replies)
        result = await call_next(ctx)
        if replies and isinstance(result, dict):
            result["content"], result["structuredContent"] = _content_of(replies[0]), replies[0].structured
        return result

    async def _watch_library(self) -> None:
        previous: list[tuple[str, str]] | None = None
        next_announcement = 0.0
        while True:
            await self._wait_for_change()
            if not self._registry.is_open:
                continue
            try:
                tools, generation = await self._listings.run(self._read_state)
            except BunkoError as error:
                _log.warning("%s", error_text(error))
                continue
            current = [(tool.name, tool.description) for tool in tools]
            if self._registry.tools_can_change:
                if current != (self._registry.initial_tools if previous is None else previous):
                    await self._announce(ToolsListChanged())
                previous = current
            if self._known_generation is None:
                self._known_generation = generation
            # An import commits several times a second; the next look announces what this one leaves out.
            elif generation != self._known_generation and anyio.current_time() >= next_announcement:
                self._known_generation = generation
                next_announcement = anyio.current_time() + _POLL_SECONDS
                await self._announce(ResourcesListChanged())

    def _read_state(self) -> tuple[list[Tool], int]:
        return self._registry.active_tools(), self._registry.library().store.generation()

    async def _wait_for_change(self) -> None:
        """Wait until the library announces a change, but only for a moment: not every store does."""
        if self._registry.is_open:
            store = self._registry.library().store
            if store.announces_changes:
                await self._changes.run(store.wait_for_change, _POLL_SECONDS)
                return
        await anyio.sleep(_POLL_SECONDS)

    async def _announce(self, change: ToolsListChanged | ResourcesListChanged) -> None:
        await self._bus.publish(change)
        async with anyio.create_task_group() as tasks:
            for client_id, session in list(self._sessions.items()):
                tasks.start_soon(self._announce_to_session, client_id, session, change)

    async def _announce_to_session(
        self, client_id: str, session: ServerSession, change: ToolsListChanged | ResourcesListChanged
    ) -> None:
        try:
            with anyio.fail_after(_ANNOUNCE_SECONDS):
                if isinstance(change, ToolsListChanged):
                    await session.send_tool_list_changed()
                else:
                    await session.send_resource_list_changed()
        except Exception:  # a client that has disconnected or does not read must not stop the notification of others
            self._sessions.pop(client_id, None)

    def _caller(self, ctx: RequestContext) -> Caller:
        from bunko.interfaces.http.authorization import caller_of

        return caller_of(ctx.request, is_local=self._is_local)

    async def _list_tools(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = await self._listings.run(self._registry.tools, self._caller(ctx))
        return types.ListToolsResult(tools=[tool_to_mcp(tool) for tool in tools])

    async def _call_tool(self, ctx: RequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._caller(ctx)
        progress = ProgressReports(ctx.session.report_progress)
        try:
            result = await self._run_tool(params, progress, caller)
            await progress.send_waiting()
        except BaseException:
            progress.stop()
            raise
        return result

    async def _run_tool(
        self, params: types.CallToolRequestParams, progress: ProgressReports, caller: Caller
    ) -> types.CallToolResult:
        stop = threading.Event()

        def work() -> ToolReply:
            library = self._registry.access(caller)  # first: its settings determine the tools' defaults
            tool = self._registry.find_tool(params.name, caller)
            if tool is None:
                names = ", ".join(tool.name for tool in self._registry.tools(caller))
                raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}. Known: {names}.")
            return self._registry.call(tool, params.arguments or {}, ToolCall(library, {}, progress.report, stop))

        try:
            reply = await self._calls.run(work)
        except anyio.get_cancelled_exc_class():
            stop.set()  # the thread ends after the current batch; the library stays consistent
            raise
        except BunkoError as error:
            return _error_result(error_text(error))
        except MCPError:
            raise
        except Exception as error:
            _log.exception("%s failed", params.name)
            return _error_result(
                f"{params.name} failed with an internal error ({type(error).__name__}). See the server's log."
            )
        _replies.get().append(reply)
        return types.CallToolResult(content=[], structured_content={})

    async def _list_resources(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        from bunko.interfaces.mcp import resources

        cursor, caller = params.cursor if params else None, self._caller(ctx)
        if self._known_generation is None:
            self._known_generation = await self._listings.run(lambda: self._registry.library().store.generation())
        return await self._listings.run(lambda: resources.list_resources(self._registry.access(caller), cursor))

    async def _list_templates(
        self, ctx: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        from bunko.interfaces.mcp import resources

        return resources.list_resource_templates()

    async def _read_resource(
        self, ctx: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        from bunko.interfaces.mcp import resources

        address, version, caller = str(params.uri), ctx.protocol_version, self._caller(ctx)
        return await self._calls.run(lambda: resources.read_resource(self._registry.access(caller), address, version))


def tool_to_mcp(tool: ToolDefinition) -> types.Tool:
    """Return a tool definition in MCP's form."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            # They mean nothing for a tool that only reads.
            destructive_hint=None if tool.read_only else tool.destructive,
            idempotent_hint=None if tool.read_only else tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _content_of(reply: ToolReply) -> list[dict[str, str]]:
    """Return the content of a reply as the SDK would write it."""
    content = [{"text": reply.text, "type": "text"}]
    for link in reply.links:
        title = {"title": link.title} if link.title else {}
        content.append({"name": link.name, **title, "type": "resource_link", "uri": link.address})
    return content


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


async def serve_stdio(registry: ToolRegistry) -> None:
    """Serve one client over stdin and stdout until it disconnects."""
    server = BunkoServer(registry)
    try:
        with claim_stdio() as streams:
            reader, writer = cast("tuple[Any, Any]", streams or (None, None))
            async with stdio_server(reader, writer) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
    except* BrokenPipeError:
        _log.info("The client disconnected during a reply")
    server.wait_for_calls(_END_SECONDS)
