"""Keep a few connections open and give each to one thread at a time, and another to who waits for changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg

from bunko.errors import BunkoError, LibraryBusy, LibraryError
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.connection import PgConnection, connect, quote

# How long a thread waits for a connection while others use all of them.
_WAIT_SECONDS = 30.0


class Pool:
    """At most `address.pool_size` connections; one that cannot be made raises its reason at once."""

    def __init__(self, address: PostgresAddress, open_connection: Callable[[], PgConnection]) -> None:
        self._address, self._open_connection = address, open_connection
        self._idle: list[PgConnection] = []
        self._in_use = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._pid = os.getpid()

    def take(self, *, wait_seconds: float = _WAIT_SECONDS) -> PgConnection:
        """Return a connection for this thread alone, until it is given back."""
        deadline = time.monotonic() + wait_seconds
        with self._changed:
            if self._pid != os.getpid():  # a forked process must not speak on the connections of its parent
                self._idle, self._in_use, self._pid = [], 0, os.getpid()
            while True:
                if self._is_closed:
                    raise LibraryError(
                        f"{self._address.display} is closed",
                        hint="Open the library again, and close it when you are done.",
                    )
                while self._idle:
                    connection = self._idle.pop()
                    if not connection.closed:
                        self._in_use += 1
                        return connection
                if self._in_use < self._address.pool_size:
                    self._in_use += 1
                    break
                if not self._changed.wait(deadline - time.monotonic()):
                    raise LibraryBusy(
                        f"All {self._address.pool_size} connections to {self._address.display} are in use",
                        hint="Try again, or raise storage.pool_size.",
                    )
        try:
            return self._open_connection()
        except BaseException:
            self._free_place()
            raise

    @contextmanager
    def connection(self) -> Iterator[PgConnection]:
        """Lend a connection to the block."""
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def give_back(self, connection: PgConnection) -> None:
        """Take a connection back; one in an unknown state is closed."""
        is_usable = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            if is_usable and not self._is_closed:
                self._idle.append(connection)
                self._in_use -= 1
                self._changed.notify()
                return
        close_quietly(connection)
        self._free_place()

    def forget_idle(self) -> None:
        """Close the idle connections: after a restart of the server, all of them are dead."""
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            close_quietly(connection)

    def close(self) -> None:
        """Close all connections; those in use are closed when they are given back."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.forget_idle()

    def _free_place(self) -> None:
        with self._changed:
            self._in_use -= 1
            self._changed.notify()


def close_quietly(connection: PgConnection) -> None:
    """Close a connection in any state."""
    with suppress(psycopg.Error):
        connection.close()


class ChangeListener:
    """A connection of its own, opened at the first wait."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._connection: PgConnection | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def wait(self, seconds: float) -> bool:
        """Wait at most this long for a change; return whether there may have been one.

        A change may have come without a listener: when the connection is new or was lost.
        """
        with self._lock:
            if self._stopped.is_set():
                return True
            try:
                if self._connection is None:
                    self._connection = connect(self._address)
                    self._connection.execute(f"LISTEN {quote(self._address.channel)}")
                    return True
                changed = False
                # One transaction is one announcement; what is already here is read at once.
                for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                    changed = True
                return changed
            except (BunkoError, psycopg.Error):
                if self._connection is not None:
                    close_quietly(self._connection)
                    self._connection = None
                self._stopped.wait(seconds)
                return True

    def close(self) -> None:
        """Stop waiting and close the connection."""
        self._stopped.set()
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error):
                close_quietly(connection)
