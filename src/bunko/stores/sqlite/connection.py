"""Open a library file: create or migrate its schema, run transactions, and keep connections for readers."""

from __future__ import annotations

import os
import secrets
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from bunko.errors import LibraryBusy, LibraryDamaged, LibraryError, LibraryReadOnly, LibraryTooNew, rebuild_hint
from bunko.runtime.failpoints import reach_failpoint
from bunko.stores.sql.database import INTEGER, SELECT_MARKS, ColumnType, check_writable
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.errors import BUSY_SECONDS, translate_errors, translate_value_errors
from bunko.stores.sqlite.files import file_id, file_mode, wal_files

T = TypeVar("T")
_PEEK_SECONDS = 0.2  # the user waits at the keyboard for a completion
_ABANDONED_SECONDS = 3600  # a half-written backup this old was left behind by a killed process


class SqliteConnection(sqlite3.Connection):
    """A connection inside a write transaction."""

    def insert_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> list[int]:
        """Insert rows and return their ids; SQLite knows RETURNING only since 3.35, which some systems do not have."""
        ids = [self.execute(statement, row).lastrowid for row in rows]
        return [row_id for row_id in ids if row_id is not None]

    def has_table(self, name: str) -> bool:
        """Return whether a table exists."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.execute(query, (name,)).fetchone() is not None

    def ensure_table(self, name: str) -> None:
        """Create a table that only some libraries have, unless it exists."""
        self.execute(schema.OPTIONAL_SCRIPTS[name])

    def uri_key(self, column: str) -> str:
        """Return the column: an index of SQLite takes texts of any length."""
        return column

    def key_of(self, uri: str) -> str:
        """Return the path or URL."""
        return uri

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes; SQLite knows octet_length only since 3.43."""
        return f"length(CAST({expression} AS BLOB))"

    def exclude_imports(self) -> bool:
        """Return True: one process at a time imports into a file, and it is the one that writes now."""
        return True

    def put_last_id(self, table: str, last_id: int) -> None:
        """Let a table give only higher ids than this one from now on."""
        if last_id > 0:  # else nothing was ever in it, and it may not exist
            self.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last_id))


class SqliteDatabase:
    """A SQLite file with a connection for each thread that reads, and one to write; errors name its location."""

    def __init__(self, path: Path, *, read_only: bool = False, location: str = "") -> None:
        self.path, self.location = path, location or str(path)
        self._read_only = read_only
        self._write_lock = threading.RLock()
        with translate_errors(path, self.location), ExitStack() as opened:
            if not read_only:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            schema.check_journal(path)
            reader = opened.enter_context(closing(self._connect()))
            self._file_id = file_id(path)
            self._readers = Readers(reader, self._connect_again)
            # Nothing is written before it is clear that the file is a library, not even the mode of its journal.
            version = self._check_file()
            self._writer = reader
            if not read_only:
                self._writer = opened.enter_context(closing(self._connect()))
                for connection in (reader, self._writer):
                    # WAL lets readers continue while one process writes; FULL makes a commit survive a power cut.
                    _enable_wal(connection)
                    connection.execute("PRAGMA synchronous = FULL")
                if version is None:
                    self._create_schema()
                    version = self._check_file()
            if version is not None and version < schema.VERSION:
                self._migrate(version)
            opened.pop_all()

    def _connect(self) -> SqliteConnection:
        options = f"mode={'ro' if self._read_only else 'rwc'}"
        log, _ = wal_files(self.path)
        if self._read_only and not log.exists() and not os.access(self.path.parent, os.W_OK):
            # Even to read, SQLite creates files beside the library. If it may not, and no process has the library open,
            # tell SQLite that the file does not change.
            options += "&immutable=1"
        self._reader_options = options.replace("rwc", "rw")
        return self._open(options)

    def _connect_again(self) -> SqliteConnection | None:
        """Return one more connection to read with, or None if another file has taken the place of the opened one."""
        try:
            schema.check_journal(self.path)
            if file_id(self.path) != self._file_id:
                return None
            connection = self._open(self._reader_options)
        except (sqlite3.Error, LibraryDamaged):  # it is gone, or this process has too many open files
            return None
        if file_id(self.path) != self._file_id:
            connection.close()
            return None
        return connection

    def _open(self, options: str) -> SqliteConnection:
        connection = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=SqliteConnection,
        )
        try:
            schema.harden(connection)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA cache_size = -8000")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> int | None:
        """Return the version of the schema, None for an empty file; raise if it is not a library of this bunko."""
        # In this order: another process may be creating the library, and its version appears with its tables.
        is_empty = not self._read_number("SELECT count(*) FROM sqlite_master")
        version = self._read_number("PRAGMA user_version")
        if version == 0 and is_empty:
            if self._read_only:
                raise LibraryError(f"{self.location} is an empty file", hint="Import documents first: bunko reindex.")
            return None
        if self._read_number("PRAGMA application_id") != schema.APPLICATION_ID:
            raise LibraryDamaged(
                f"{self.location} is a SQLite database, but not a bunko library",
                hint="Name another file or folder with --database or --library.",
            )
        if version < min(schema.MIGRATIONS):
            raise LibraryDamaged(f"{self.location} does not say which schema it has", hint=rebuild_hint(self.location))
        with self._readers.connection() as reader:
            schema.check_version(reader, self.location)
            schema.check_schema(self.path, reader, is_complete=version == schema.VERSION)
        return version

    def _create_schema(self) -> None:
        try:
            schema.create_schema(self._writer)
        except sqlite3.OperationalError:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if not self._read_number("PRAGMA user_version"):  # else another process created it first
                raise

    def _migrate(self, version: int) -> None:
        if self._read_only:
            command = shlex.join(["bunko", "status", "--database", str(self.path)])
            raise LibraryReadOnly(
                f"{self.location} has the older schema {version} and is open for reading only",
                hint=f"Upgrade it first, as a user who can write to it: {command}",
            )
        self._back_up(version)
        while version < schema.VERSION:
            with self.transaction() as connection:
                # Another process may have migrated it already: only the version read under the lock is reliable.
                version = int(connection.execute("PRAGMA user_version").fetchone()[0])
                if version < schema.VERSION:
                    schema.MIGRATIONS[version](connection)
                    version += 1
                    connection.execute(f"PRAGMA user_version = {version}")
        with self._readers.connection() as reader:
            schema.check_schema(self.path, reader)

    def _back_up(self, version: int) -> None:
        """Copy a library of an older schema; the copy gets its name once it is complete and on disk."""
        backup = self.path.with_name(f"{self.path.name}.schema{version}.backup")
        for leftover in backup.parent.glob(f"{backup.name}.*.tmp*"):
            with suppress(OSError):
                if time.time() - leftover.stat().st_mtime > _ABANDONED_SECONDS:
                    leftover.unlink()
        temporary = backup.with_name(f"{backup.name}.{secrets.token_hex(4)}.tmp")
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, self.path.stat().st_mode & 0o777))
            with self.read_transaction(), closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
                if self._read_number("PRAGMA user_version") != version:
                    return  # another process has migrated it since, after a backup of its own
                with self._readers.connection() as reader:
                    reader.backup(copy)
            reach_failpoint("migrate.backup")
            with open(temporary, "r+b") as file:
                os.fsync(file.fileno())
            temporary.replace(backup)
        finally:
            with suppress(OSError):
                temporary.unlink()

    def _read_number(self, query: str) -> int:
        with self._readers.connection() as reader:
            return int(reader.execute(query).fetchone()[0])

    @contextmanager
    def transaction(self, *, is_move: bool = False) -> Iterator[SqliteConnection]:
        """Run the block in one transaction, waiting for other writers."""
        if self._read_only:
            raise LibraryReadOnly(
                f"{self.location} is open for reading only",
                hint="Check that you may write to it; in Python, open it without read_only.",
            )
        with self._write_lock, translate_errors(self.path, self.location):
            try:
                self._writer.execute("BEGIN IMMEDIATE")  # inside try: Ctrl-C may arrive right after it
                schema.check_version(self._writer, self.location)
                if not is_move:
                    check_writable(self._writer, self._writer.execute(SELECT_MARKS).fetchall(), self.location)
                yield self._writer
                reach_failpoint("store.commit")
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise
            reach_failpoint("store.committed")

    def try_transaction(self, statements: Sequence[tuple[str, Sequence[Any]]], *, table: str = "") -> bool:
        """Run statements in one transaction unless another writer is active; return whether they ran.

        For data that may be lost: it waits neither for other writers nor for the disk. `table` is created first if only
        some libraries have it.
        """
        if self._read_only or not self._write_lock.acquire(blocking=False):
            return False
        writer = self._writer
        try:
            with translate_errors(self.path, self.location):
                writer.execute("PRAGMA busy_timeout = 0")
                writer.execute("PRAGMA synchronous = NORMAL")
                try:
                    writer.execute("BEGIN IMMEDIATE")
                    schema.check_version(writer, self.location)
                    if table:
                        writer.ensure_table(table)
                    for statement, values in statements:
                        writer.execute(statement, values)
                    writer.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        writer.execute("ROLLBACK")
                    raise
                finally:
                    writer.execute("PRAGMA synchronous = FULL")
                    writer.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}")
        except (LibraryBusy, LibraryTooNew):
            return False
        finally:
            self._write_lock.release()
        return True

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes; each thread has its own."""
        return ReadTransaction(self._readers, self.path, self.location)

    def rows(
        self, query: str, values: Sequence[Any] = (), *, types: Sequence[ColumnType] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from the state of the current read transaction.

        A column of SQLite holds values of any type, so in a damaged or forged file they may not be of `types`.
        """
        with translate_errors(self.path, self.location):
            rows = self._readers.fetch_all(query, values)
        for column, allowed_types in zip(zip(*rows, strict=True), types, strict=False):
            if not allowed_types.issuperset(map(type, column)):
                raise LibraryDamaged(f"{self.location} has values of a wrong type", hint=rebuild_hint(self.location))
        return rows

    def decode_values(self) -> AbstractContextManager[None]:
        """Raise an error of the block, which decodes stored values, as damage of the library."""
        return translate_value_errors(self.location)

    def has_table(self, name: str) -> bool:
        """Return whether a table exists in the state of the current read transaction."""
        with translate_errors(self.path, self.location), self._readers.connection() as reader:
            return reader.has_table(name)

    def clear_securely(self, name: str) -> None:
        """Delete a table, and overwrite its rows: they should not stay readable in the file's free pages."""
        with self.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("PRAGMA secure_delete = OFF")

    def last_id(self, table: str) -> int:
        """Return the highest id that a table has ever given."""
        rows = self.rows("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,), types=(INTEGER,))
        return int(rows[0][0]) if rows else 0

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes."""
        return self._writer.byte_length(expression)

    def uri_key(self, column: str) -> str:
        """Return the column: an index of SQLite takes texts of any length."""
        return column

    def key_of(self, uri: str) -> str:
        """Return the path or URL."""
        return uri

    def file_mode(self) -> int | None:
        """Return the permissions for files beside the library: its own."""
        return file_mode(self.path)

    def retry(self, work: Callable[[], T], *, is_repeatable: bool) -> T:
        """Return the result of a function: the connection to a file is never lost."""
        return work()

    def check(self) -> str:
        """Return the problems found in the file, or an empty string."""
        with translate_errors(self.path, self.location), self._readers.connection() as reader:
            problems = [str(row[0]) for row in reader.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            tables = {str(row[0]) for row in reader.execute("PRAGMA foreign_key_check")}
        problems += [f"{table} refers to a row that does not exist" for table in sorted(tables)]
        return "; ".join(problems)

    def close(self) -> None:
        """Close all connections."""
        with self._write_lock:
            self._readers.close()
            if not self._read_only:
                self._writer.close()


def read_without_traces(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query without creating any file; raise an error if there is no library."""
    # If the files of the log do not exist, SQLite would create them even to read. But then no process has the library
    # open, and all data is in the one file.
    mode = "mode=ro" if all(file.exists() for file in wal_files(path)) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_PEEK_SECONDS)
    with closing(connection):
        schema.harden(connection)
        schema.check_schema(path, connection, is_complete=False)
        return connection.execute(query).fetchall()


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, retrying while other processes open the same new file: SQLite refuses that without waiting."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


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
                if self.connection is not None:  # of the outermost block
                    schema.check_version(self.connection, self._location)
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
