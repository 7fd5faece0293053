"""Lock imports across machines with advisory locks, which the server releases when their process dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg

from bunko.errors import LibraryBusy
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.connection import PgConnection, connect, describe_application
from bunko.stores.postgres.errors import translate_errors
from bunko.stores.postgres.pool import close_quietly

# A key, and whether others may hold it too.
_Key = tuple[int, bool]
_RETAKE_SECONDS = 1.0  # for locks that were lost with their connection; the server releases them in a moment
_HOLDERS = (
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()"
    " AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = %s ORDER BY backend_start NULLS LAST"
)


class WriteSession:
    """The connection of a thread that holds locks; it also writes there, so nothing is written without the locks."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._connection: PgConnection | None = None
        self._held: list[_Key] = []
        self._backend: tuple[int, str | None] | None = None  # its process on the server, by id and name

    @property
    def holds_locks(self) -> bool:
        """Whether it holds a lock."""
        return bool(self._held)

    def connection(self) -> PgConnection:
        """Return the connection; if it was lost, connect again and take all locks again."""
        if self._connection is None or self._connection.closed:
            connection = connect(self._address)
            try:
                with translate_errors(self._address):
                    self._end_lost_backend(connection)
                    for key in self._held:
                        if not _try_lock(connection, key, _RETAKE_SECONDS):
                            raise LibraryBusy(
                                f"The connection to {self._address.display} was lost, and"
                                f" {_holder(connection, key[0]) or 'another process'} is importing now",
                                hint="Wait until it has finished, then run the same command again. What was imported"
                                " stays.",
                            )
            except BaseException:
                close_quietly(connection)
                raise
            self._connection = connection
            self._backend = (connection.info.backend_pid, connection.info.parameter_status("application_name"))
        return self._connection

    def _end_lost_backend(self, connection: PgConnection) -> None:
        """End what the server may not have noticed: the process that held the locks on the connection that was lost."""
        if self._held and self._backend is not None:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = %s AND application_name = %s",
                self._backend,
            )

    def try_lock(self, keys: Sequence[_Key], seconds: float) -> bool:
        """Wait at most this long for each of some locks; return whether all are held now, else none is."""
        connection = self.connection()
        with translate_errors(self._address):
            taken: list[_Key] = []
            for key in keys:
                if not _try_lock(connection, key, seconds):
                    for other in reversed(taken):
                        _unlock(connection, other)
                    return False
                taken.append(key)
            self._held += taken
            return True

    def unlock(self, keys: Sequence[_Key]) -> None:
        """Release locks; if the connection was lost, the server has released them."""
        for key in reversed(keys):
            if key in self._held:
                self._held.remove(key)
                try:
                    if self._connection is not None and not self._connection.closed:
                        _unlock(self._connection, key)
                except psycopg.Error:
                    self.close()  # the server then releases all; those that are still needed are taken again
        if not self._held:
            self.close()

    def holder(self, key: int) -> str:
        """Describe the process that holds a lock."""
        with translate_errors(self._address):
            return _holder(self.connection(), key)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            close_quietly(self._connection)
            self._connection = None

    def __del__(self) -> None:
        self.close()  # its thread has ended


class AdvisoryLock:
    """A lock of imports into some tools, of all imports, or for another purpose."""

    def __init__(
        self,
        address: PostgresAddress,
        session_of_thread: Callable[[], WriteSession],
        purpose: str,
        tools: Sequence[str] | None,
    ) -> None:
        self._session_of_thread = session_of_thread
        self._session: WriteSession | None = None
        library_key = address.lock_key(purpose)
        if tools is None:
            self._keys: list[_Key] = [(library_key, False)]
        else:
            # Sorted, so that two imports of several tools do not wait for each other.
            tool_keys = [(address.lock_key(f"{purpose}\0{tool}"), False) for tool in sorted(set(tools))]
            self._keys = [(library_key, True), *tool_keys]

    def acquire(self, seconds: float) -> bool:
        """Wait at most this long for the lock; return whether it is held now."""
        session = self._session_of_thread()
        acquired = session.try_lock(self._keys, seconds)
        self._session = session if acquired else None
        return acquired

    def release(self) -> None:
        """Release the lock."""
        if self._session is not None:
            self._session.unlock(self._keys)
            self._session = None

    def holder(self) -> str:
        """Describe the process that holds the lock, by host, process id and time."""
        session = self._session_of_thread()
        # The last ones first: the key of the library is held by the imports of all other tools too.
        names = (session.holder(key) for key, _ in reversed(self._keys))
        return next((name for name in names if name), "")


def _try_lock(connection: PgConnection, key: _Key, seconds: float) -> bool:
    number, is_shared = key
    suffix = "_shared" if is_shared else ""
    if seconds <= 0:
        row = connection.execute(f"SELECT pg_try_advisory_lock{suffix}(%s)", (number,)).fetchone()
        return bool(row and row[0])
    connection.execute(f"SET lock_timeout = {max(1, int(seconds * 1000))}")
    try:
        connection.execute(f"SELECT pg_advisory_lock{suffix}(%s)", (number,))
    except psycopg.errors.LockNotAvailable:
        return False
    finally:
        if not connection.closed:
            connection.execute("SET lock_timeout = 0")
    return True


def _unlock(connection: PgConnection, key: _Key) -> None:
    connection.execute(f"SELECT pg_advisory_unlock{'_shared' if key[1] else ''}(%s)", (key[0],))


def _holder(connection: PgConnection, key: int) -> str:
    rows = connection.execute(_HOLDERS, (key,)).fetchall()
    return next((name for row in rows if (name := describe_application(str(row[0])))), "")
