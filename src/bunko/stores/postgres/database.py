"""Run reads in snapshots and writes in transactions, and try again when a connection is lost."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from bunko.errors import BunkoError, LibraryBusy, LibraryDamaged, LibraryReadOnly, LibraryUnreachable
from bunko.runtime.failpoints import reach_failpoint
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.connection import (
    PgConnection,
    PostgresWriter,
    check_server,
    connect,
    decode_rows,
    execute,
    key_expression,
    key_value,
    quote,
)
from bunko.stores.postgres.errors import BUSY_SECONDS, library_error, translate_errors, translate_value_errors
from bunko.stores.postgres.locks import WriteSession
from bunko.stores.postgres.pool import Pool
from bunko.stores.postgres.schema import (
    SELECT_VERSION,
    check_version,
    missing_tables,
    prepare_schema,
    read_version,
    write_lock_key,
)
from bunko.stores.sql.database import INTEGER, SELECT_MARKS, ColumnType, check_writable

T = TypeVar("T")

# With the version of the tables: a newer bunko may migrate them while this process runs.
_BEGIN_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SELECT_VERSION}"
# How long all reads together, and a write of an import, try to reach a server that went away: a restart takes a few
# seconds. A client of a server that serves this library has its answer within five.
READ_RETRY_SECONDS, IMPORT_RETRY_SECONDS = 4.5, 60.0
IDLE_WRITE_SECONDS = 60
_FIRST_DELAY_SECONDS, _MAX_DELAY_SECONDS = 0.05, 1.0
# Data that may be lost waits neither for other writers nor for the disk.
_BEGIN_CACHE = "BEGIN; SET LOCAL lock_timeout = 100; SET LOCAL synchronous_commit = off"


class _ThreadState(threading.local):
    """The connections that a thread uses now."""

    reader: PgConnection | None = None  # of the current read transaction
    session: WriteSession | None = None


class PostgresDatabase:
    """A schema of a PostgreSQL database with a pool of connections."""

    def __init__(self, address: PostgresAddress, *, read_only: bool = False) -> None:
        self.address, self.location = address, address.display
        self._read_only = read_only
        self._thread = _ThreadState()
        self._sessions: weakref.WeakSet[WriteSession] = weakref.WeakSet()
        # One transaction writes at a time, as in SQLite: then generations are committed in their order.
        self._begin_write = (
            f"BEGIN; SET LOCAL lock_timeout = {BUSY_SECONDS * 1000:.0f};"
            f" SELECT pg_advisory_xact_lock({write_lock_key(address)}); SET LOCAL lock_timeout = 0;"
            # A process that stopped inside its transaction must not keep the writers of all machines waiting.
            f" SET LOCAL idle_in_transaction_session_timeout = '{IDLE_WRITE_SECONDS}s';"
            f" {SELECT_VERSION}; {SELECT_MARKS}"
        )
        self._commit = f"NOTIFY {quote(address.channel)}; COMMIT"
        self._pool, self._outage = Pool(address, lambda: connect(address)), Outage()
        try:
            with self._pool.connection() as connection, translate_errors(address):
                self.engine = check_server(connection, address)
                prepare_schema(connection, address, read_only=read_only)
        except BaseException:
            self._pool.close()
            raise

    # Reading

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read everything inside the block from one snapshot; each thread has its own."""
        if self._thread.reader is not None:
            yield
            return
        connection = self._retry_read(self._begin_read)
        self._thread.reader = connection
        try:
            yield
        finally:
            self._thread.reader = None
            with suppress(psycopg.Error):
                connection.execute("COMMIT")
            self._pool.give_back(connection)

    def _begin_read(self) -> PgConnection:
        connection = self._pool.take()
        try:
            with translate_errors(self.address):
                check_version(_results(connection.execute(_BEGIN_READ))[-1], self.address)
        except BaseException:
            self._pool.give_back(connection)
            raise
        return connection

    def rows(
        self, query: str, values: Sequence[Any] = (), *, types: Sequence[ColumnType] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from the snapshot of the current read transaction; the tables assure `types`."""
        connection = self._thread.reader
        try:
            if connection is not None:
                with translate_errors(self.address):
                    return _fetch(connection, query, values, types)
            return self._retry_read(lambda: self._fetch_alone(query, values, types))
        except LibraryDamaged:
            # A newer bunko may have changed the tables since they were opened, and says so better.
            with self._pool.connection() as connection, translate_errors(self.address):
                read_version(connection, self.address)
            raise

    def _fetch_alone(self, query: str, values: Sequence[Any], types: Sequence[ColumnType]) -> list[tuple[Any, ...]]:
        with self._pool.connection() as connection, translate_errors(self.address):
            return _fetch(connection, query, values, types)

    def has_table(self, name: str) -> bool:
        """Return whether a table exists: every library has all tables."""
        return True

    def last_id(self, table: str) -> int:
        """Return the highest id that a table has ever given."""
        query = "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence(?, 'id')::regclass), 0)"
        return int(self.rows(query, (table,), types=(INTEGER,))[0][0])

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes."""
        return f"octet_length({expression})"

    def file_mode(self) -> int | None:
        """Return None: the library is on a server."""
        return None

    def uri_key(self, column: str) -> str:
        """Return the SQL for what a path or URL is looked up by."""
        return key_expression(column)

    def key_of(self, uri: str) -> str:
        """Return the key of a path or URL."""
        return key_value(uri)

    @contextmanager
    def decode_values(self) -> Iterator[None]:
        """Raise an error of the block, which decodes stored values, as damage of the library."""
        with translate_value_errors(self.address):
            yield

    # Writing

    @contextmanager
    def transaction(self, *, is_move: bool = False) -> Iterator[PostgresWriter]:
        """Run the block in one transaction, waiting for other writers, and announce it to all listeners."""
        self._check_writable()
        is_committing = False
        with self._writer() as connection:
            try:
                version, marks = _results(connection.execute(self._begin_write))[-2:]
                check_version(version, self.address)
                writer = PostgresWriter(connection, self.address)
                if is_move:  # it copies all rows while writers wait
                    connection.execute("SELECT set_config('idle_in_transaction_session_timeout', '0', true)")
                else:
                    check_writable(writer, marks, self.location)
                yield writer
                reach_failpoint("store.commit")
                is_committing = True
                connection.execute(self._commit)
            except BaseException as error:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                if not isinstance(error, psycopg.Error):
                    raise
                translated = library_error(self.address, error)
                if isinstance(translated, LibraryUnreachable):
                    translated.was_committing = is_committing
                raise translated from error
        reach_failpoint("store.committed")

    @contextmanager
    def _writer(self) -> Iterator[PgConnection]:
        """Yield the connection that holds the locks of this thread, else one of the pool."""
        session = self._thread.session
        if session is not None and session.holds_locks:
            yield session.connection()
            return
        with self._pool.connection() as connection:
            yield connection

    def try_transaction(self, statements: Sequence[tuple[str, Sequence[Any]]], *, table: str = "") -> bool:
        """Run statements in one transaction unless they would have to wait; return whether they ran."""
        if self._read_only:
            return False
        try:
            raw = self._pool.take(wait_seconds=0)
        except (LibraryUnreachable, LibraryBusy):
            return False
        try:
            with translate_errors(self.address):
                connection = PostgresWriter(raw, self.address)
                raw.execute(_BEGIN_CACHE)
                for statement, values in statements:
                    connection.execute(statement, values)
                raw.execute("COMMIT")
        # A user who may only read, or a text too long for an index: it is data that may be lost.
        except (LibraryUnreachable, LibraryBusy, LibraryReadOnly):
            return False
        except BunkoError as error:
            if isinstance(error.__cause__, psycopg.errors.ProgramLimitExceeded):
                return False
            raise
        finally:
            with suppress(psycopg.Error):
                raw.execute("ROLLBACK")
            self._pool.give_back(raw)
        return True

    def clear_securely(self, name: str) -> None:
        """Delete all rows of a table together with the file that held them."""
        with self.transaction() as connection:
            connection.execute(f"TRUNCATE {name}")

    def thread_session(self) -> WriteSession:
        """Return the session in which this thread holds locks and, while it does, writes."""
        self._check_writable()
        if self._thread.session is None:
            self._thread.session = WriteSession(self.address)
            self._sessions.add(self._thread.session)
        return self._thread.session

    def _check_writable(self) -> None:
        if self._read_only:
            raise LibraryReadOnly(
                f"{self.location} is open for reading only",
                hint="Check that you may write to it; in Python, open it without read_only.",
            )

    # Lost connections

    def retry(self, work: Callable[[], T], *, is_repeatable: bool) -> T:
        """Return the result of a function; run it again if a connection is lost and that does no harm."""
        session = self._thread.session
        if session is not None and session.holds_locks:
            return self._retry(work, IMPORT_RETRY_SECONDS, is_repeatable=is_repeatable, waits_alone=True)
        return self._retry(work, READ_RETRY_SECONDS, is_repeatable=is_repeatable)

    def _retry_read(self, work: Callable[[], T]) -> T:
        return self._retry(work, READ_RETRY_SECONDS)

    def _retry(
        self, work: Callable[[], T], seconds: float, *, is_repeatable: bool = True, waits_alone: bool = False
    ) -> T:
        """Run a function until it reaches the server, for some seconds; all together unless it `waits_alone`."""
        started_at, delay = time.monotonic(), 0.0
        while True:
            if not waits_alone:
                self._outage.check(seconds)
            try:
                result = work()
            except LibraryUnreachable as error:
                waited = time.monotonic() - started_at
                if not (waits_alone or error.is_overloaded):
                    waited = max(waited, self._outage.note_failure(error))
                if (error.was_committing and not is_repeatable) or waited + delay >= seconds:
                    raise
            else:
                self._outage.end()
                return result
            self._pool.forget_idle()
            time.sleep(delay)
            delay = min(max(_FIRST_DELAY_SECONDS, 2 * delay), _MAX_DELAY_SECONDS)

    def is_reachable(self) -> bool:
        """Return whether the server answers now."""
        try:
            self._fetch_alone("SELECT 1", (), ())
        except LibraryUnreachable:
            self._pool.forget_idle()
            try:
                self._fetch_alone("SELECT 1", (), ())
            except BunkoError:
                return False
        except BunkoError:
            return False
        self._outage.end()
        return True

    def check(self) -> str:
        """Return the tables that are missing, or an empty string; PostgreSQL checks its files itself."""
        connection = self._retry_read(self._begin_read)
        try:
            with translate_errors(self.address):
                missing = missing_tables(connection, self.address)
        finally:
            with suppress(psycopg.Error):
                connection.execute("COMMIT")
            self._pool.give_back(connection)
        return f"{self.location} lacks the tables {', '.join(missing)}" if missing else ""

    def close(self) -> None:
        """Close all connections."""
        for session in list(self._sessions):
            session.close()
        self._pool.close()


def _results(cursor: psycopg.Cursor[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each of several statements that has some."""
    results = []
    while True:
        if cursor.description is not None:
            results.append(cursor.fetchall())
        if not cursor.nextset():
            return results


def _fetch(
    connection: PgConnection, query: str, values: Sequence[Any], types: Sequence[ColumnType]
) -> list[tuple[Any, ...]]:
    rows = execute(connection, query, values).fetchall()
    text_columns = [column for column, allowed_types in enumerate(types) if str in allowed_types]
    return decode_rows(rows, text_columns)


# While a server stays away, one read in so many seconds tries to reach it, and the others fail at once.
_REMEMBERED_SECONDS = 1.0
# A failure so long after the last one begins a new outage: no call has asked meanwhile.
_FORGOTTEN_SECONDS = 10.0


class Outage:
    """The beginning of a server's silence, and its last error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._error: LibraryUnreachable | None = None
        self._began_at = self._failed_at = self._next_try_at = 0.0

    def check(self, seconds: float) -> None:
        """Raise the last failure again if the server has been away for so long, unless it is time to try again."""
        if self._error is None:
            return
        with self._lock:
            error, now = self._error, self._clock()
            if error is None or now - self._began_at < seconds:
                return
            if now >= self._next_try_at:
                self._next_try_at = now + _REMEMBERED_SECONDS
                return
        raise LibraryUnreachable(error.message, hint=error.hint)

    def note_failure(self, error: LibraryUnreachable) -> float:
        """Remember a failure; return for how long the server has been away."""
        with self._lock:
            now = self._clock()
            if self._error is None or now - self._failed_at > _FORGOTTEN_SECONDS:
                self._began_at = now
            self._error, self._failed_at = error, now
            self._next_try_at = now + _REMEMBERED_SECONDS
            return now - self._began_at

    def end(self) -> None:
        """Remember that the server answers."""
        if self._error is not None:
            with self._lock:
                self._error = None
