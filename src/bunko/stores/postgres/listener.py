"""Wait for the announcement of a change by any process on any machine."""

from __future__ import annotations

import threading
from contextlib import suppress

import psycopg

from bunko.errors import BunkoError
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.connection import PgConnection, connect, quote
from bunko.stores.postgres.pool import close_quietly


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
