"""Serve one client over stdin and stdout: each message is a line.

Where the system says when a stream is ready, no thread is needed; files, terminals and Windows need one for each.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import select
import socket
import stat
import sys
import threading
from array import array
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Protocol

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
from bunko.interfaces.mcp.protocol import ClientConnection
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.worker_threads import Workers
from bunko.library.rights.audit import local_caller

if sys.platform != "win32":
    import fcntl
    import termios

READ_BYTES = 65_536
MAX_LINE_BYTES = 64 * 1024 * 1024  # what is longer is cut, so that it is no message; the API takes less than a tenth


class LineSink(Protocol):
    """Takes lines for a client at once and writes them when the client reads."""

    failure: asyncio.Future[OSError]  # why nothing more can be written

    @property
    def waiting_bytes(self) -> int:
        """How much the client has not taken yet."""

    def write(self, line: bytes) -> None:
        """Take a line with its end."""

    async def drain(self) -> None:
        """Wait until everything is written, or raise why it cannot be."""

    def close(self) -> None:
        """Write nothing more."""


class LineReader:
    """The lines that a pipe or socket delivers."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []  # of a line that has not ended
        self._rest_bytes = 0

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            await self._wait_readable()
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except ConnectionError:  # a client that has died
                data = b""
            if not data:
                if not any(self._rest):
                    raise StopAsyncIteration
                data = b"\n"  # the last line has no end
            start, *others = data.split(b"\n")
            self._keep(start)
            if others:
                self._lines += [b"".join(self._rest), *others[:-1]]
                self._rest, self._rest_bytes = [], 0
                self._keep(others[-1])
        return self._lines.popleft().decode("utf-8", "replace")

    def _keep(self, part: bytes) -> None:
        if self._rest_bytes < MAX_LINE_BYTES:
            self._rest.append(part)
            self._rest_bytes += len(part)

    async def _wait_readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._descriptor, ready.set_result, None)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)


class LineWriter:
    """Writes to a pipe or socket as much as it takes, and the rest when there is room."""

    def __init__(self, descriptor: int) -> None:
        self.failure: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()
        self._descriptor = descriptor
        self._socket = socket.socket(fileno=os.dup(descriptor)) if _is_socket(descriptor) else None
        self._capacity = 0 if self._socket else _pipe_capacity(descriptor)
        self._readiness = select.poll()
        self._readiness.register(descriptor, select.POLLOUT)
        self._lines: deque[memoryview] = deque()
        self._drained: asyncio.Future[None] | None = None
        self.waiting_bytes = 0

    def write(self, line: bytes) -> None:
        """Take a line with its end."""
        if not self.failure.done():
            self._lines.append(memoryview(line))
            self.waiting_bytes += len(line)
            if self._drained is None:
                self._write_all()

    async def drain(self) -> None:
        """Wait until everything is written, or raise why it cannot be."""
        if self._drained is not None:
            await asyncio.shield(self._drained)
        if self.failure.done():
            raise self.failure.result()

    def _write_all(self) -> None:
        """Write until the client does not take more, then go on when it does."""
        loop = asyncio.get_running_loop()
        try:
            while self._lines:
                written = self._write_some(self._lines[0])
                self.waiting_bytes -= written
                self._lines[0] = self._lines[0][written:]
                if not self._lines[0]:
                    self._lines.popleft()
        except BlockingIOError:
            if self._drained is None:
                self._drained = loop.create_future()
                loop.add_writer(self._descriptor, self._write_all)
            return
        except OSError as error:
            self._lines.clear()
            self.waiting_bytes = 0
            self.failure.set_result(error)
        if self._drained is not None:
            loop.remove_writer(self._descriptor)
            self._drained.set_result(None)
            self._drained = None

    def _write_some(self, data: memoryview) -> int:
        # Other processes may have the same pipe or socket, so it must stay in the mode that waits.
        if self._socket is not None:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        if not self._readiness.poll(0):
            raise BlockingIOError
        # A pipe that is ready takes this much, and one that is empty all that it holds.
        unread = array("i", [0])
        if self._capacity:
            fcntl.ioctl(self._descriptor, termios.FIONREAD, unread)
        size = self._capacity if self._capacity and not unread[0] else select.PIPE_BUF
        return os.write(self._descriptor, data[:size])

    def close(self) -> None:
        """Write nothing more, and close what this writer has opened."""
        if self._drained is not None:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._socket is not None:
            self._socket.close()


class ThreadReader:
    """The lines of a file, a terminal or Windows' stdin, which a thread waits for."""

    def __init__(self, descriptor: int) -> None:
        self._file = io.BufferedReader(io.FileIO(descriptor, closefd=False))
        self._workers = Workers("lines of stdin", max_threads=1, max_wait_seconds=1)

    def __aiter__(self) -> ThreadReader:
        return self

    async def __anext__(self) -> str:
        line: bytes = await self._workers.run(self._read_line)
        if not line:
            raise StopAsyncIteration
        return line.rstrip(b"\r\n").decode("utf-8", "replace")

    def _read_line(self) -> bytes:
        line = rest = self._file.readline(MAX_LINE_BYTES)
        while rest and not rest.endswith(b"\n"):  # what is too long is left out
            rest = self._file.readline(MAX_LINE_BYTES)
        return line


class ThreadWriter:
    """Writes to a file, a terminal or Windows' stdout, in a thread."""

    def __init__(self, descriptor: int) -> None:
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[OSError] = self._loop.create_future()
        self.waiting_bytes = 0
        self._descriptor = descriptor
        self._lines: SimpleQueue[bytes | asyncio.Future[None]] = SimpleQueue()  # and who waits for those before
        threading.Thread(target=self._run, name="bunko-stdout", daemon=True).start()

    def write(self, line: bytes) -> None:
        """Take a line with its end."""
        self.waiting_bytes += len(line)
        self._lines.put(line)

    async def drain(self) -> None:
        """Wait until everything is written, or raise why it cannot be."""
        drained = self._loop.create_future()
        self._lines.put(drained)
        await drained
        if self.failure.done():
            raise self.failure.result()

    def _run(self) -> None:
        with suppress(RuntimeError):  # the server has ended
            while True:
                line = self._lines.get()
                if isinstance(line, asyncio.Future):
                    self._loop.call_soon_threadsafe(_note_drained, line)
                    continue
                error = None
                try:
                    rest = memoryview(line)
                    while rest:
                        rest = rest[os.write(self._descriptor, rest) :]
                except OSError as raised:
                    error = raised
                self._loop.call_soon_threadsafe(self._note_written, len(line), error)

    def _note_written(self, size: int, error: OSError | None) -> None:
        self.waiting_bytes -= size
        if error is not None and not self.failure.done():
            self.failure.set_result(error)

    def close(self) -> None:
        """Leave the thread behind: it may wait for ever."""


def _note_drained(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


@contextmanager
def claim_stdio() -> Iterator[tuple[AsyncIterator[str], LineSink]]:
    """Yield the streams of the client.

    Meanwhile, all other output goes to stderr, and all other readers find no input.
    """
    with ExitStack() as stack:
        source = _move(stack, 0, os.open(os.devnull, os.O_RDONLY))
        target = _move(stack, 1, _open_for_prints())
        stack.callback(_flush_prints)
        reader: AsyncIterator[str] = LineReader(source) if _can_be_polled(source) else ThreadReader(source)
        writer: LineSink = LineWriter(target) if _can_be_polled(target) else ThreadWriter(target)
        stack.callback(writer.close)
        yield reader, writer


def _move(stack: ExitStack, descriptor: int, substitute: int) -> int:
    """Return a new descriptor of a stream whose old one gets a substitute until the stack is left."""
    try:
        moved = os.dup(descriptor)
    except OSError:  # it is closed: there is no other end
        return substitute
    stack.callback(os.close, moved)
    stack.callback(os.dup2, moved, descriptor)
    os.dup2(substitute, descriptor)
    os.close(substitute)
    return moved


def _open_for_prints() -> int:
    try:
        return os.dup(2)
    except OSError:  # stderr is closed
        return os.open(os.devnull, os.O_WRONLY)


def _flush_prints() -> None:
    """Write what was printed while stdout was claimed, so that none of it reaches the client afterwards."""
    with suppress(AttributeError, OSError, ValueError):  # stdout or stderr is closed
        sys.stdout.flush()


def _can_be_polled(descriptor: int) -> bool:
    return sys.platform != "win32" and (stat.S_ISFIFO(os.fstat(descriptor).st_mode) or _is_socket(descriptor))


def _is_socket(descriptor: int) -> bool:
    return stat.S_ISSOCK(os.fstat(descriptor).st_mode)


def _pipe_capacity(descriptor: int) -> int:
    """Return how many bytes a pipe holds, 0 where the system does not say it."""
    return int(fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)) if sys.platform == "linux" else 0


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


async def serve_lines(server: BunkoServer, reader: AsyncIterator[str], writer: LineSink) -> None:
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
    def __init__(self, server: BunkoServer, writer: LineSink) -> None:
        self._server, self._writer = server, writer
        self._connection = ClientConnection(server, may_be_stateless=True)
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
