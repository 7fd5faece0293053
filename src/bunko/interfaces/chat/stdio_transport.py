"""Speak with an MCP server over its standard input and output, and keep no message that is too long.

The client of the SDK does the same, but keeps whatever a server writes before the next line break, without a limit.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

if TYPE_CHECKING:
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.message import SessionMessage

    _Outgoing = MemoryObjectReceiveStream[SessionMessage]
    _Incoming = MemoryObjectSendStream[SessionMessage | Exception]

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
    from mcp.client.stdio import get_default_environment, stdio_client

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
                await _stop(process)
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
    """Pass a message on; one that comes when nobody listens any more is dropped, so that the server can go on."""
    import mcp_types as types
    from mcp.shared.message import SessionMessage

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


async def _stop(process: Process) -> None:
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
