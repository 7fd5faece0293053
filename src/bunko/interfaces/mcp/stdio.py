"""Serve one client over stdin and stdout: each message is a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from bunko.interfaces.mcp.messages import (
    Message,
    Notification,
    ProtocolError,
    Request,
    encode_message,
    error_message,
    notification_message,
    parse_message,
)
from bunko.interfaces.mcp.protocol import Connection
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.mcp.stdio_streams import Writer, claim_stdio
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.rights.audit import local_caller

_log = logging.getLogger("bunko.mcp")

# A client that does not read its replies is not answered any more until it does.
MAX_WAITING_BYTES = 16 * 1024 * 1024
_END_SECONDS = 3.0


async def serve_stdio(registry: ToolRegistry) -> None:
    """Serve one client over stdin and stdout until it disconnects."""
    server = BunkoServer(registry)
    try:
        with claim_stdio() as (reader, writer):
            await serve_lines(server, reader, writer)
    except BrokenPipeError:
        _log.info("The client disconnected during a reply")
    server.wait_for_calls(_END_SECONDS)


async def serve_lines(server: BunkoServer, reader: AsyncIterator[str], writer: Writer) -> None:
    """Serve one client line by line until it sends nothing more, or raise an OSError if it does not read any more."""
    client = _Client(server, writer)
    async with server.run():
        receiving = asyncio.create_task(client.receive_all(reader))
        try:
            ends: set[asyncio.Future[Any]] = {receiving, writer.failure}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                receiving.result()
        finally:
            receiving.cancel()
            client.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await writer.drain()


class _Client:
    def __init__(self, server: BunkoServer, writer: Writer) -> None:
        self._server, self._writer = server, writer
        self._connection = Connection(server, may_be_stateless=True)
        self._caller = local_caller("stdio")
        self._telling: asyncio.Task[None] | None = None  # of changes

    async def receive_all(self, reader: AsyncIterator[str]) -> None:
        """Take all messages, as fast as the client reads the replies."""
        async for line in reader:
            if line.strip():
                self._receive(line)
            if self._writer.waiting_bytes > MAX_WAITING_BYTES:
                await self._writer.drain()

    def _receive(self, line: str) -> None:
        """Take a message; requests are answered when their replies are known."""
        try:
            message = parse_message(line)
        except ProtocolError as error:
            self._write(error_message(error.request_id, error))
            return
        if isinstance(message, Request):
            reply = self._connection.start(message, self._caller, self._send)
            if isinstance(reply, asyncio.Task):
                reply.add_done_callback(self._write_reply)
            else:
                self._write(reply)
            return
        self._connection.receive(message)
        if isinstance(message, Notification) and message.method == "notifications/initialized":
            self._start_telling()

    def close(self) -> None:
        """Cancel what runs for this client."""
        self._connection.close()
        if self._telling is not None:
            self._telling.cancel()

    def _start_telling(self) -> None:
        """Notify a client of the older era, which does not ask for it."""
        if self._connection.version and self._telling is None:
            self._telling = asyncio.create_task(self._tell_changes())

    async def _tell_changes(self) -> None:
        with self._server.listen_to_all() as listener:
            while True:
                await self._send(notification_message(await listener.next()))

    def _write_reply(self, task: asyncio.Task[Message]) -> None:
        if not task.cancelled():
            self._write(task.result())

    async def _send(self, message: Message) -> None:
        self._write(message)
        with suppress(OSError):  # a client that has gone ends the server anyway
            await self._writer.drain()

    def _write(self, message: Message) -> None:
        self._writer.write(encode_message(message) + b"\n")
