"""Keep one MCP server connected: start it, call it, and start it again if it ends.

The client of the SDK, which this module needs, also speaks over standard input and output, but keeps what a server
writes before the next line break without a limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import mcp_types as types
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from bunko.interfaces.chat.server_config import ServerConfig
from bunko.interfaces.chat.server_connection import SERVERS_LOG
from bunko.interfaces.chat.servers import TIMEOUT_HINT, MCPServerError, ServerTool, ToolOutput
from bunko.interfaces.text import single_line

_Outgoing = MemoryObjectReceiveStream[SessionMessage]
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]

_log = logging.getLogger(SERVERS_LOG)
# The SDK reports each line that is not JSON with a traceback, which would go to stderr without a handler.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.5, 60.0  # before a server that ended is started again
_STEADY_SECONDS = 30.0  # a server that ran this long is started again without a longer delay
_MAX_TOOL_PAGES = 100
_MAX_TOOLS = 200  # of a server; models of OpenAI accept 128
_MAX_TOOL_CHARS = 50_000  # of a description and its parameters: what is longer leaves no room for anything else
_STDERR_LINES = 20
_MAX_STDERR_LINE = 400


class ServerConnection:
    """A server behind a command or a URL; `run` keeps it connected until it is cancelled."""

    def __init__(self, config: ServerConfig, *, start_timeout: float) -> None:
        self.name, self._config, self._start_timeout = config.name, config, start_timeout
        self._client: Client | None = None
        self._tools: list[ServerTool] = []
        self._problem = "it has not been started"
        # The first attempt to start it has succeeded or failed, and so has the one after it ended for the first time.
        self._settled = anyio.Event()
        self._lost = anyio.Event()
        self._end_reason = ""  # what made us end the connection
        self._tools_changed = False
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._http_status = 0  # of the last response

    async def run(self) -> None:
        """Connect, and again with a growing delay whenever the connection ends."""
        delay, logged_problem = _FIRST_DELAY_SECONDS, ""
        while True:
            started_at = anyio.current_time()
            self._lost, self._end_reason = anyio.Event(), ""
            with anyio.CancelScope(deadline=started_at + self._start_timeout) as starting:
                try:
                    await self._connect_until_lost(starting)
                    self._problem = self._end_reason or "it ended unexpectedly"
                except Exception as error:
                    self._problem = self._end_reason or self._describe(error)
            if starting.cancelled_caught:
                self._problem = f"it did not start within {self._start_timeout:g} s"
            self._client = None
            if self._problem != logged_problem:  # not again at every attempt
                _log.warning("The MCP server %s is not available: %s", self.name, self._problem)
            logged_problem = self._problem
            if anyio.current_time() - started_at > _STEADY_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            if not self._lost.is_set() or delay > _FIRST_DELAY_SECONDS:
                self._settled.set()
            await anyio.sleep(delay)
            delay = min(delay * 2, _MAX_DELAY_SECONDS)

    async def _connect_until_lost(self, starting: anyio.CancelScope) -> None:
        async def on_message(message: object) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                self._tools_changed = True
            await anyio.lowlevel.checkpoint()

        self._tools_changed = False
        async with self._transport() as transport, Client(transport, message_handler=on_message, cache=None) as client:
            self._tools = await _list_tools(client, self.name)
            starting.deadline = math.inf
            self._client = client
            self._settled.set()
            await self._lost.wait()

    async def tools(self) -> list[ServerTool]:
        """Return the tools of the server, listed again after it has announced a change."""
        client = await self._connected()
        if self._tools_changed:
            self._tools_changed = False
            with anyio.move_on_after(self._start_timeout):
                self._tools = await _list_tools(client, self.name)
        return self._tools

    async def call(self, tool: ServerTool, arguments: Mapping[str, Any], timeout: float) -> ToolOutput:
        """Call a tool; one that only reads is called once more if the server ended meanwhile."""
        try:
            return await self._call_once(tool, arguments, timeout)
        except ConnectionError:
            if not tool.read_only:
                raise MCPServerError(
                    f"The MCP server {self.name} ended during {tool.name}",
                    hint="It is started again. Check whether the call had an effect before you repeat it.",
                ) from None
        try:
            await self._restarted()
            return await self._call_once(tool, arguments, timeout)
        except ConnectionError:
            raise self._unavailable() from None

    async def _call_once(self, tool: ServerTool, arguments: Mapping[str, Any], timeout: float) -> ToolOutput:
        """Call a tool, or raise ConnectionError if the connection is lost."""
        client, lost = await self._connected(), self._lost
        outcome: types.CallToolResult | Exception = ConnectionError()

        async def call() -> None:
            nonlocal outcome
            try:
                outcome = await client.call_tool(tool.name, dict(arguments))
            except Exception as error:  # judged below, outside of the group, which would wrap it
                outcome = error
            tasks.cancel_scope.cancel()

        async def watch() -> None:
            await lost.wait()
            tasks.cancel_scope.cancel()

        with anyio.move_on_after(timeout) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                tasks.start_soon(watch)
        if limit.cancelled_caught:
            raise MCPServerError(
                f"{tool.name} of the MCP server {self.name} did not answer within {timeout:g} s", hint=TIMEOUT_HINT
            )
        if isinstance(outcome, MCPError) and outcome.code != types.CONNECTION_CLOSED:
            return ToolOutput(single_line(str(outcome)), is_error=True)
        if isinstance(outcome, Exception):
            _log.debug("The connection to the MCP server %s was lost: %r", self.name, outcome)
            self._lose(lost)
            raise ConnectionError
        parts = []
        for block in outcome.content:
            if isinstance(block, types.TextContent):
                parts.append(block.text)
            elif isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
                parts.append(block.resource.text)
            elif not isinstance(block, types.ResourceLink):  # the text names what it links to
                parts.append(f"[{block.type} left out]")
        return ToolOutput("\n".join(parts), outcome.structured_content, bool(outcome.is_error))

    def _lose(self, lost: anyio.Event) -> None:
        """Note that a connection is lost, so that the next call waits until the server runs again."""
        if not lost.is_set():
            self._client, self._settled = None, anyio.Event()
            lost.set()

    async def _connected(self) -> Client:
        await self._settled.wait()  # later attempts are not waited for: they may fail for hours
        if self._client is None:
            raise self._unavailable()
        return self._client

    async def _restarted(self) -> None:
        """Wait until the server runs again, but no longer than a start may take."""
        with anyio.move_on_after(self._start_timeout):
            while self._client is None or self._lost.is_set():
                await anyio.sleep(0.05)

    def _unavailable(self) -> MCPServerError:
        return MCPServerError(
            f"The MCP server {self.name} is not available: {self._problem}",
            hint="Check its entry in the list of MCP servers; it is started again by itself.",
        )

    def _describe(self, error: BaseException) -> str:
        """Return why a server could not be started, in one line and without its environment."""
        while isinstance(error, BaseExceptionGroup) and error.exceptions:
            error = error.exceptions[0]
        if isinstance(error, FileNotFoundError):
            return f"the command {self._config.command} was not found"
        if isinstance(error, PermissionError):
            return f"the command {self._config.command} may not be run"
        if self._http_status in (401, 403):
            return f"it rejected the credentials ({self._http_status}); check the headers in its entry"
        if self._http_status >= 400:
            return f"it answered with the HTTP status {self._http_status}"
        text = single_line(str(error)).rstrip(".") or type(error).__name__
        last_line = next((line for line in reversed(self._stderr) if line.strip()), "")
        return f"{text} (it wrote: {last_line})" if last_line else text

    def _end(self, reason: str) -> None:
        """Let the connection end, and say why."""
        self._end_reason = reason
        self._lost.set()

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            self._http_status = 0
            if self._config.transport == "http":

                async def remember_status(response: httpx2.Response) -> None:
                    self._http_status = response.status_code
                    await anyio.lowlevel.checkpoint()

                client = await stack.enter_async_context(
                    httpx2.AsyncClient(
                        headers=dict(self._config.headers),
                        # A call may take longer than a connection, and has a limit of its own.
                        timeout=httpx2.Timeout(self._start_timeout, read=None),
                        event_hooks={"response": [remember_status]},
                    )
                )
                yield streamable_http_client(self._config.url, http_client=client)
                return
            self._stderr.clear()
            parameters = StdioServerParameters(
                command=self._config.command,
                args=list(self._config.args),
                env=dict(self._config.env),
                cwd=self._config.cwd,
                encoding_error_handler="replace",
            )
            with _LineReader(self._stderr) as errlog:
                yield connect_stdio(parameters, errlog, self._end)


class _LineReader:
    """A pipe for the error output of a process; the last lines are kept, and all are logged."""

    def __init__(self, lines: deque[str]) -> None:
        self._lines = lines

    def __enter__(self) -> Any:
        read_end, write_end = os.pipe()
        self._writer = open(write_end, "w")
        self._reader = open(read_end, errors="replace")
        threading.Thread(target=self._read, name="bunko-chat-stderr", daemon=True).start()
        return self._writer

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def _read(self) -> None:
        with self._reader:
            while line := self._reader.readline(_MAX_STDERR_LINE):
                if line.strip():
                    self._lines.append(single_line(line))
                    _log.debug("An MCP server wrote: %s", single_line(line))


async def _list_tools(client: Client, server: str) -> list[ServerTool]:
    """Return the tools of a server; what no model could be told is left out, so that it costs no other tool."""
    tools: list[ServerTool] = []
    cursor: str | None = None
    for _ in range(_MAX_TOOL_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools[: _MAX_TOOLS + 1 - len(tools)]:
            read_only = bool(tool.annotations and tool.annotations.read_only_hint)
            tools.append(ServerTool(tool.name, tool.description or "", tool.input_schema, read_only))
        cursor = page.next_cursor
        if not cursor or len(tools) > _MAX_TOOLS:
            break
    if len(tools) > _MAX_TOOLS:
        _log.warning("The MCP server %s has too many tools: the first %d are used", server, _MAX_TOOLS)
    usable = []
    for listed in tools[:_MAX_TOOLS]:
        if _length(listed) <= _MAX_TOOL_CHARS:
            usable.append(listed)
        else:
            _log.warning(
                "The tool %s of the MCP server %s is not used: its description is too long", listed.name, server
            )
    return usable


def _length(tool: ServerTool) -> int:
    try:
        return len(tool.description) + len(json.dumps(tool.input_schema))
    except RecursionError:
        return _MAX_TOOL_CHARS + 1


MAX_MESSAGE_BYTES = 10_000_000  # a result with pictures has a few million
_STOP_SECONDS = 2.0  # for a server to end by itself, and again after it was told to
_FLUSH_SECONDS = 0.5
_POLL_SECONDS = 0.01
_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def connect_stdio(
    parameters: StdioServerParameters, error_output: Any, on_flood: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server and yield the streams of its messages; it and what it has started is stopped at the end.

    A server that writes a message without end is stopped, and `on_flood` is told why.
    """
    if sys.platform == "win32":  # how a tree of processes is stopped there is left to the SDK
        async with stdio_client(parameters, error_output) as streams:
            yield streams
        return
    process = await anyio.open_process(
        [parameters.command, *parameters.args],
        env=get_default_environment() | (parameters.env or {}),
        cwd=parameters.cwd,
        stderr=error_output,
        start_new_session=True,  # a group of its own, which can be stopped as a whole
    )
    assert process.stdin is not None
    assert process.stdout is not None
    incoming_sender, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    outgoing, outgoing_receiver = anyio.create_memory_object_stream["SessionMessage"](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, process, process.stdout, incoming_sender, on_flood)
        flushed = anyio.Event()
        tasks.start_soon(_write_messages, process.stdin, outgoing_receiver, flushed)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                with anyio.move_on_after(_FLUSH_SECONDS):
                    await flushed.wait()
                await _stop_process(process)
            tasks.cancel_scope.cancel()


async def _read_messages(
    process: Process, output: ByteReceiveStream, messages: _Incoming, on_flood: Callable[[str], None]
) -> None:
    line = bytearray()
    async with messages:
        with suppress(*_CLOSED):
            async for part in output:
                *ends, rest = part.split(b"\n")
                for end in ends:
                    await _deliver(bytes(line + end), messages)
                    line.clear()
                line += rest
                if len(line) > MAX_MESSAGE_BYTES:
                    on_flood(f"it wrote a message of more than {MAX_MESSAGE_BYTES // 1_000_000} MB")
                    _signal_group(process, signal.SIGKILL)
                    return


async def _deliver(line: bytes, messages: _Incoming) -> None:
    """Pass a message on; one that comes after its reader has gone is dropped, so that the server can go on."""
    message: SessionMessage | Exception
    try:
        message = SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        message = error
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await messages.send(message)


async def _write_messages(server_input: ByteSendStream, messages: _Outgoing, flushed: anyio.Event) -> None:
    try:
        async with messages:
            with suppress(*_CLOSED):
                async for item in messages:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await server_input.send(f"{text}\n".encode("utf-8", "replace"))
    finally:
        flushed.set()


async def _stop_process(process: Process) -> None:
    """Close the input of a server, and stop its group if it does not end by itself."""
    with suppress(*_CLOSED):
        if process.stdin is not None:
            await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if await _has_ended(process):
            break
        _signal_group(process, number)
    await _has_ended(process)
    with suppress(PermissionError, ProcessLookupError):
        transport_of(process).close()


def transport_of(process: Process) -> asyncio.SubprocessTransport:
    """Return the transport of asyncio, which output that was not read keeps open: closing the streams does not end it.

    No documentation promises these names; docs/dependencies.md lists them.
    """
    transport: asyncio.SubprocessTransport = process._process._transport  # type: ignore[attr-defined]
    return transport


async def _has_ended(process: Process) -> bool:
    """Return whether a process has ended in time; `wait` would also wait for others that have its output open."""
    with anyio.move_on_after(_STOP_SECONDS):
        while process.returncode is None:
            await anyio.sleep(_POLL_SECONDS)
    return process.returncode is not None


def _signal_group(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
