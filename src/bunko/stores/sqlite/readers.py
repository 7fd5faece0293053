"""Give each thread that reads a file a connection of its own, and keep a few open."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from bunko.stores.sqlite.errors import translate_errors

# Connections that stay open between reads. Opening one takes 0.2 ms, and each may cache 8 MB.
MAX_IDLE = 4

C = TypeVar("C", bound=sqlite3.Connection)


class _ThreadState(threading.local, Generic[C]):
    """The connection of the read transaction that a thread is in."""

    connection: C | None = None


class ReadTransaction(Generic[C]):
    """A block that reads everything from one state; a block inside a block of the same thread is part of it."""

    # A class, because every search enters several of these blocks, and a generator takes longer.
    __slots__ = ("_location", "_path", "_readers", "connection")

    def __init__(self, readers: Readers[C], path: Path, location: str) -> None:
        self._readers, self._path, self._location = readers, path, location
        self.connection: C | None = None  # of the outermost block, while it is open

    def __enter__(self) -> None:
        """Enter the block."""
        try:
            with translate_errors(self._path, self._location):
                self._readers.begin(self)
        except BaseException:
            self._readers.end(self)
            raise

    def __exit__(self, *_: object) -> None:
        """Leave the block."""
        self._readers.end(self)

    def __del__(self) -> None:
        """Leave a block after all, if Ctrl-C came before `__exit__` did so."""
        if self.connection is not None:
            self._readers.end(self)


class Readers(Generic[C]):
    """The connections that read one file; one is there from the beginning, so that a thread can always wait for it.

    `connect` returns one more, or None if there can be none: then a thread waits for one of the others.
    """

    def __init__(self, first: C, connect: Callable[[], C | None]) -> None:
        self._connect = connect
        self._idle = [first]
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread: _ThreadState[C] = _ThreadState()

    def begin(self, transaction: ReadTransaction[C]) -> None:
        """Let this thread read everything from one state, unless it already does."""
        if self._thread.connection is None:
            transaction.connection = self._take()
            transaction.connection.execute("BEGIN")
            self._thread.connection = transaction.connection

    def end(self, transaction: ReadTransaction[C]) -> None:
        """End the work of a transaction."""
        connection, transaction.connection = transaction.connection, None
        if connection is not None:
            if self._thread.connection is connection:
                self._thread.connection = None
            self._give_back(connection)

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Yield the connection of this thread's transaction, or else one that no other thread uses."""
        if self._thread.connection is not None:
            yield self._thread.connection
            return
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def fetch_all(self, query: str, values: Sequence[Any]) -> list[Any]:
        """Return the rows of a query; a search runs a dozen of them, so this is written out."""
        connection = self._thread.connection
        if connection is not None:
            return connection.execute(query, values).fetchall()
        connection = self._take()
        try:
            return connection.execute(query, values).fetchall()
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close all connections; one that a thread still reads with is closed when it is given back."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for connection in idle:
            connection.close()

    def _take(self) -> C:
        if (idle := self._take_idle(wait=False)) is not None:
            return idle
        if (connection := self._connect()) is not None:
            return connection
        waited = self._take_idle(wait=True)
        assert waited is not None
        return waited

    def _take_idle(self, *, wait: bool) -> C | None:
        with self._changed:
            while True:
                if self._is_closed:
                    raise sqlite3.ProgrammingError("closed database")
                if self._idle:
                    return self._idle.pop()
                if not wait:
                    return None
                self._changed.wait()

    def _give_back(self, connection: C) -> None:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("COMMIT")
        with self._changed:
            if not self._is_closed and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                self._changed.notify()
                return
        connection.close()
