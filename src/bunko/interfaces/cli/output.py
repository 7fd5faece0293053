"""Prepare the standard streams, so that output that cannot be written ends in a message instead of a traceback."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(OSError):
    """What a command prints could not be written; a reader that has gone away is a `BrokenPipeError` instead."""


class _OutputFile(io.FileIO):
    """A standard stream whose write errors can be told from those of other files."""

    is_discarded = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes to the stream."""
        if self.is_discarded:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


class _ClosedOutput(io.RawIOBase):
    """The stream of a command that was started with its stdout closed."""

    is_discarded = False

    def writable(self) -> bool:
        """Return that writing may be tried."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Raise: there is nowhere to write to."""
        if self.is_discarded:
            return memoryview(data).nbytes
        raise OutputError(errno.EBADF, os.strerror(errno.EBADF))


class _MessageFile(io.FileIO):
    """The stream of messages; one that cannot be written is lost, because no other stream could say so."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes to the stream, or drop them."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Replace stdout and stderr by streams that report or survive write errors, and open those that are closed."""
    # Otherwise the next file that is opened, such as a library, would get the number of a standard stream.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(os.devnull)), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_ClosedOutput()), encoding="utf-8", errors="replace")
    elif _is_file(sys.stdout, sys.__stdout__):
        sys.stdout = _wrap(sys.stdout, _OutputFile(sys.stdout.fileno(), "w", closefd=False))
    if sys.stderr is None:
        sys.stderr = _null_stream()
    elif _is_file(sys.stderr, sys.__stderr__):
        sys.stderr = _wrap(sys.stderr, _MessageFile(sys.stderr.fileno(), "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows a replacement instead of raising an error.
            stream.reconfigure(errors="replace")


def discard_output() -> None:
    """Drop what is still buffered: writing it at exit would fail again."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.BufferedWriter):
        # The stream is flushed when it is freed, too, and since Python 3.14 that failure would be printed.
        if isinstance(sys.stdout.buffer.raw, _OutputFile | _ClosedOutput):
            sys.stdout.buffer.raw.is_discarded = True
        sys.stdout = _null_stream()


def _is_file(stream: TextIO, original: TextIO | None) -> bool:
    # The console of Windows is not: it writes text through a class of its own.
    buffer = getattr(stream, "buffer", None)
    return stream is original and type(getattr(buffer, "raw", buffer)) is io.FileIO


def _wrap(stream: TextIO, raw: io.FileIO) -> io.TextIOWrapper:
    line_buffering = getattr(stream, "line_buffering", False)
    write_through = getattr(stream, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=line_buffering,
        write_through=write_through,
    )


def _null_stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(os.devnull, "w")), encoding="utf-8")
