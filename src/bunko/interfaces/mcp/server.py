"""What bunko answers over the Model Context Protocol: its tools and documents, and what has changed about them."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

from bunko.errors import BunkoError
from bunko.interfaces import mcp
from bunko.interfaces.mcp.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Message,
    ProtocolError,
    object_param,
    optional_object_param,
    optional_text_param,
    text_param,
)
from bunko.interfaces.mcp.protocol import (
    LISTEN_METHOD,
    STATELESS_VERSIONS,
    SUBSCRIPTION_KEY,
    ClientCall,
    Handler,
    progress_token,
)
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.tools.tool import ReportProgress, ToolCall, ToolDefinition, ToolReply, ignore_progress
from bunko.interfaces.worker_threads import Workers
from bunko.runtime.package_errors import find_package_error
from bunko.types import Tool
from bunko.types.access import Caller
from bunko.version import __version__


class Listener:
    """The notifications that one client wants and has not got yet."""

    def __init__(self, methods: Collection[str]) -> None:
        self._methods = frozenset(methods)
        self._waiting: dict[str, None] = {}  # in the order in which they came
        self._is_filled = asyncio.Event()

    def note(self, method: str) -> None:
        """Remember a notification, unless it waits already: it only says that something is to be listed again."""
        if method in self._methods:
            self._waiting[method] = None
            self._is_filled.set()

    async def next(self) -> str:
        """Return the next notification, waiting for it if necessary."""
        while not self._waiting:
            self._is_filled.clear()
            await self._is_filled.wait()
        method = next(iter(self._waiting))
        del self._waiting[method]
        return method


class Announcements:
    """All clients that listen to a server."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._listeners)

    @contextmanager
    def listen(self, methods: Collection[str]) -> Iterator[Listener]:
        """Listen as long as the block runs."""
        listener = Listener(methods)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def announce(self, method: str) -> None:
        """Let all know who want to."""
        for listener in self._listeners:
            listener.note(method)


MIN_SECONDS = 0.2  # between two reports
_MAX_WAITING_REPORTS = 16  # more are dropped: the client reads slowly


class ProgressReports:
    """The reports of one call, from its thread to its client; most calls have none, so the first starts the sending."""

    def __init__(self, send: Callable[[float, float, str], Awaitable[None]]) -> None:
        self._send, self._loop, self._last_report, self._last_done = send, asyncio.get_running_loop(), 0.0, -1.0
        self._waiting: deque[tuple[float, float, str]] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._is_closed = False

    def report(self, done: float, total: float, message: str) -> None:
        """Report from the thread of the call; it never waits. MCP allows only numbers that grow."""
        now = time.monotonic()
        if done > self._last_done and (now - self._last_report >= MIN_SECONDS or done == total):
            self._last_report, self._last_done = now, done
            with suppress(RuntimeError):  # the server has ended
                self._loop.call_soon_threadsafe(self._put, (done, total, message))

    def _put(self, report: tuple[float, float, str]) -> None:
        if self._is_closed or len(self._waiting) >= _MAX_WAITING_REPORTS:
            return
        self._waiting.append(report)
        if self._sender is None or self._sender.done():
            self._sender = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        while self._waiting:
            try:
                await self._send(*self._waiting.popleft())
            except Exception:  # the client has gone; the call ends by itself
                _log.debug("A progress report was not sent", exc_info=True)

    async def send_waiting(self) -> None:
        """Take no more reports, and send those that wait."""
        self._is_closed = True
        if self._sender is not None:
            await self._sender

    def stop(self) -> None:
        """Send nothing more: the call was cancelled."""
        self._is_closed = True
        if self._sender is not None:
            self._sender.cancel()


_log = logging.getLogger("bunko.mcp")

TOOLS_CHANGED, RESOURCES_CHANGED = "notifications/tools/list_changed", "notifications/resources/list_changed"

POLL_SECONDS = 1.0  # how soon a tool or document that another process added appears
_MAX_LISTENERS = 1024
# Calls that run at once, those that were cancelled but hang included. More wait a moment, then get an error.
MAX_CALLS = 100
_MAX_LISTINGS = 20
MAX_WAIT_SECONDS = 10.0


class BunkoServer:
    """Answers requests from a tool registry, over any transport."""

    def __init__(self, registry: ToolRegistry, *, keeps_sessions: bool = True) -> None:
        """Without sessions, clients of the older era cannot be notified."""
        self._registry, self._keeps_sessions = registry, keeps_sessions
        self.info = {"name": "bunko", "title": "bunko", "version": __version__}
        self.instructions = registry.instructions()
        self.announcements = Announcements()
        # What clients of the newer era can listen to, and the notification of each.
        self.announced = {"toolsListChanged": TOOLS_CHANGED, "resourcesListChanged": RESOURCES_CHANGED}
        self._known_generation: int | None = None  # what clients know, or have been told to ask for
        self._calls = Workers("calls", max_threads=MAX_CALLS, max_wait_seconds=MAX_WAIT_SECONDS)
        # On their own, so that clients can still list tools while all calls hang.
        self._listings = Workers("listings", max_threads=_MAX_LISTINGS, max_wait_seconds=MAX_WAIT_SECONDS)
        self._changes = Workers("waits for changes", max_threads=1, max_wait_seconds=MAX_WAIT_SECONDS)
        self.handlers: dict[str, Handler] = {
            "ping": self._ping,
            "server/discover": self._discover,
            LISTEN_METHOD: self._listen,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Watch the library as long as the block runs, and stop all jobs at its end."""
        watching = asyncio.create_task(self._watch_library())
        try:
            yield
        finally:
            watching.cancel()
            self._registry.jobs.stop_all()

    def wait_for_calls(self, seconds: float) -> None:
        """Wait at most this long for calls that were told to stop: one that imports has processes to end."""
        self._calls.join(seconds)

    def capabilities(self, version: str) -> dict[str, object]:
        """Return what clients of a version of the protocol may ask for."""
        # Newer clients open a stream for changes, which needs no session. Older ones are told in their session.
        can_notify = self._keeps_sessions or version in STATELESS_VERSIONS
        return {
            "resources": {"listChanged": True, "subscribe": False},
            "tools": {"listChanged": can_notify and self._registry.tools_can_change},
        }

    def receive_response(self, message: Message) -> None:
        """Drop it: bunko asks its clients nothing."""

    def listen_to_all(self) -> AbstractContextManager[Listener]:
        """Listen to everything that changes, for a client of the older era, which cannot choose."""
        return self.announcements.listen(self.announced.values())

    async def _ping(self, call: ClientCall) -> dict[str, object]:
        return {}

    async def _discover(self, call: ClientCall) -> dict[str, object]:
        return {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": self.capabilities(call.version),
            "instructions": self.instructions,
        }

    async def _listen(self, call: ClientCall) -> dict[str, object]:
        """Notify a client of changes until it goes."""
        filters = object_param(call.params, "notifications")
        if len(self.announcements) >= _MAX_LISTENERS:
            raise ProtocolError(INTERNAL_ERROR, f"{_MAX_LISTENERS:,} clients listen already. Try again later.")
        methods = {name: method for name, method in self.announced.items() if filters.get(name) is True}
        meta = {SUBSCRIPTION_KEY: call.request.id}
        with self.announcements.listen(methods.values()) as listener:
            accepted = {"notifications": dict.fromkeys(methods, True), "_meta": meta}
            await call.notify("notifications/subscriptions/acknowledged", accepted)
            while True:
                await call.notify(await listener.next(), {"_meta": meta})

    async def _watch_library(self) -> None:
        previous: list[tuple[str, str]] | None = None
        next_announcement = 0.0
        loop = asyncio.get_running_loop()
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
                    self.announcements.announce(TOOLS_CHANGED)
                previous = current
            if self._known_generation is None:
                self._known_generation = generation
            # An import commits several times a second; the next look announces what this one leaves out.
            elif generation != self._known_generation and loop.time() >= next_announcement:
                self._known_generation = generation
                next_announcement = loop.time() + POLL_SECONDS
                self.announcements.announce(RESOURCES_CHANGED)

    def _read_state(self) -> tuple[list[Tool], int]:
        return self._registry.active_tools(), self._registry.library().storage.generation()

    async def _wait_for_change(self) -> None:
        """Wait until the library announces a change, but only for a moment: not every store does."""
        if self._registry.is_open:
            storage = self._registry.library().storage
            if storage.announces_changes:
                await self._changes.run(storage.wait_for_change, POLL_SECONDS)
                return
        await asyncio.sleep(POLL_SECONDS)

    async def _list_tools(self, call: ClientCall) -> dict[str, list[dict[str, Any]]]:
        optional_text_param(call.params, "cursor")  # all tools are on the first page
        tools = await self._listings.run(self._registry.tools, call.caller)
        return {"tools": [describe_tool(tool) for tool in tools]}

    async def _call_tool(self, call: ClientCall) -> dict[str, object]:
        name, arguments = text_param(call.params, "name"), optional_object_param(call.params, "arguments")
        token = progress_token(call)
        if token is None:
            return await self._run_tool(name, arguments, call.caller)

        async def send_progress(done: float, total: float, message: str) -> None:
            content: dict[str, object] = {"progressToken": token, "progress": done, "total": total, "message": message}
            await call.notify("notifications/progress", content)

        progress = ProgressReports(send_progress)
        try:
            result = await self._run_tool(name, arguments, call.caller, progress.report)
            await progress.send_waiting()
        except BaseException:
            progress.stop()
            raise
        return result

    async def _run_tool(
        self, name: str, arguments: dict[str, object], caller: Caller, report_progress: ReportProgress = ignore_progress
    ) -> dict[str, object]:
        stop = threading.Event()

        def work() -> ToolReply:
            library = self._registry.access(caller)  # first: its settings determine the tools' defaults
            tool = self._registry.find_tool(name, caller)
            if tool is None:
                names = ", ".join(tool.name for tool in self._registry.tools(caller))
                raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name[:80]}. Known: {names}.")
            return self._registry.call(tool, arguments, ToolCall(library, {}, report_progress, stop))

        try:
            return describe_reply(await self._calls.run(work))
        except asyncio.CancelledError:
            stop.set()  # the thread ends after the current batch; the library stays consistent
            raise
        except BunkoError as error:
            return _describe_error(error_text(error))
        except ProtocolError:
            raise
        except Exception as error:
            package_error = find_package_error(error)
            _log.log(logging.DEBUG if package_error else logging.ERROR, "%s failed", name, exc_info=True)
            if package_error:
                return _describe_error(error_text(package_error))
            return _describe_error(
                f"{name} failed with an internal error ({type(error).__name__}). See the server's log."
            )

    async def _list_resources(self, call: ClientCall) -> dict[str, object]:
        cursor = optional_text_param(call.params, "cursor")
        if self._known_generation is None:
            self._known_generation = await self._listings.run(lambda: self._registry.library().storage.generation())
        return await self._listings.run(
            lambda: mcp.resources.list_resources(self._registry.access(call.caller), cursor)
        )

    async def _list_templates(self, call: ClientCall) -> dict[str, object]:
        return mcp.resources.list_resource_templates()

    async def _read_resource(self, call: ClientCall) -> dict[str, object]:
        address, is_stateless = text_param(call.params, "uri"), call.is_stateless
        return await self._calls.run(
            lambda: mcp.resources.read_resource(self._registry.access(call.caller), address, is_stateless=is_stateless)
        )


def describe_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return a tool definition in MCP's form."""
    hints = {"readOnlyHint": tool.read_only, "openWorldHint": tool.open_world}
    if not tool.read_only:  # they mean nothing for a tool that only reads
        hints |= {"destructiveHint": tool.destructive, "idempotentHint": tool.idempotent}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        "outputSchema": dict(tool.output_schema),
        "annotations": hints,
    }


def describe_reply(reply: ToolReply) -> dict[str, Any]:
    """Return a reply in MCP's form: the text and the links, and the same as structured content."""
    content = [{"type": "text", "text": reply.text}]
    for link in reply.links:
        title = {"title": link.title} if link.title else {}
        content.append({"type": "resource_link", "uri": link.address, "name": link.name, **title})
    return {"content": content, "structuredContent": reply.structured, "isError": False}


def _describe_error(text: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": True}
