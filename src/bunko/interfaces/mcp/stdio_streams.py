"""Read and write the lines of a client on stdin and stdout without a thread, where the system says what is ready."""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio

if sys.platform != "win32":
    import fcntl
    import termios

_READ_BYTES = 65_536


class LineReader:
    """The lines that a pipe or socket delivers, one for each step of an `async for`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []  # of a line that has not ended

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            await anyio.wait_readable(self._descriptor)
            data = os.read(self._descriptor, _READ_BYTES)
            if not data:
                if not any(self._rest):
                    raise StopAsyncIteration
                data = b"\n"  # the last line has no end
            start, *others = data.split(b"\n")
            self._rest.append(start)
            if others:
                self._lines += [b"".join(self._rest), *others[:-1]]
                self._rest = [others[-1]]
        return self._lines.popleft().decode("utf-8", "replace")


class TextWriter:
    """Writes to a pipe or socket; while the client does not read, only the one who writes waits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._socket = socket.socket(fileno=os.dup(descriptor)) if _is_socket(descriptor) else None
        self._capacity = 0 if self._socket else _pipe_capacity(descriptor)
        self._readiness = select.poll()
        self._readiness.register(descriptor, select.POLLOUT)
        self._texts: list[str] = []

    async def write(self, text: str) -> None:
        """Take a text for the next `flush`."""
        self._texts.append(text)

    async def flush(self) -> None:
        """Write the texts."""
        data = memoryview("".join(self._texts).encode())
        self._texts.clear()
        while data:
            try:
                data = data[self._write_some(data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._descriptor)

    def _write_some(self, data: memoryview) -> int:
        # Other processes may have the same pipe or socket, so it must stay in the mode that waits.
        if self._socket is not None:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        if not self._readiness.poll(0):
            raise BlockingIOError
        # A pipe that is ready takes this much, and one that is empty all that it holds.
        size = self._capacity if self._capacity and not _count_unread(self._descriptor) else select.PIPE_BUF
        return os.write(self._descriptor, data[:size])

    def close(self) -> None:
        """Close what this writer has opened."""
        if self._socket is not None:
            self._socket.close()


@contextmanager
def claim_stdio() -> Iterator[tuple[LineReader, TextWriter] | None]:
    """Yield the streams of the client, None if stdin or stdout is a file, a terminal, or on Windows.

    Meanwhile, whatever else is printed goes to stderr, and whatever else reads finds no input.
    """
    if sys.platform == "win32" or not (_is_ready(sys.stdin, 0) and _is_ready(sys.stdout, 1)):
        yield None
        return
    with ExitStack() as stack:
        reader = LineReader(_move(stack, 0, os.open(os.devnull, os.O_RDONLY)))
        writer = TextWriter(_move(stack, 1, _open_for_prints()))
        stack.callback(writer.close)
        yield reader, writer


def _move(stack: ExitStack, descriptor: int, substitute: int) -> int:
    """Return a new descriptor of a stream whose old one gets a substitute until the stack is left."""
    moved = os.dup(descriptor)
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


def _is_ready(stream: object, descriptor: int) -> bool:
    """Return whether a stream of Python is the one of this descriptor, of a kind that can be waited for."""
    try:
        if stream.fileno() != descriptor:  # type: ignore[attr-defined]
            return False
        return stat.S_ISFIFO(os.fstat(descriptor).st_mode) or _is_socket(descriptor)
    except (AttributeError, OSError, ValueError):  # it is closed, or not a file
        return False


def _is_socket(descriptor: int) -> bool:
    return stat.S_ISSOCK(os.fstat(descriptor).st_mode)


def _pipe_capacity(descriptor: int) -> int:
    """Return how many bytes a pipe holds, 0 where the system does not say it."""
    return int(fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)) if sys.platform == "linux" else 0


def _count_unread(descriptor: int) -> int:
    count = array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
