"""Open a library file: create or migrate its schema, and run transactions."""

from __future__ import annotations

import os
import shlex
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from bunko.errors import LibraryBusy, LibraryDamaged, LibraryError, LibraryReadOnly, LibraryTooNew
from bunko.failpoints import reach_failpoint
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.errors import BUSY_SECONDS, translate_errors
from bunko.stores.sqlite.files import wal_files

T = TypeVar("T")

# The other files of this folder use these names and SQL that PostgreSQL understands too: `?` for values, ON CONFLICT,
# coalesce, quoted reserved words, no empty lists. What only SQLite understands stands in this file and in schema.py.
NO_LIMIT = 2**63 - 1  # the LIMIT of a query that only has an OFFSET
_PEEK_SECONDS = 0.2  # the user waits at the keyboard for a completion
_BATCH_SIZE = 500  # values in one query; old versions of SQLite allow 999


class Connection(sqlite3.Connection):
    """A connection inside a write transaction."""

    def insert(self, statement: str, values: Sequence[Any]) -> int:
        """Insert a row and return its id; SQLite knows RETURNING only since 3.35, which some systems do not have."""
        row_id = self.execute(statement, values).lastrowid
        assert row_id is not None
        return row_id

    def has_table(self, name: str) -> bool:
        """Return whether a table exists."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.execute(query, (name,)).fetchone() is not None


class Database:
    """A SQLite file with one connection to read and one to write."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._read_only = read_only
        self._read_lock, self._write_lock = threading.RLock(), threading.RLock()
        self._read_depth = 0
        with translate_errors(path):
            if not read_only:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._reader = self._connect(read_only=read_only)
            self._writer = self._reader if read_only else self._connect(read_only=False)
            self._check_schema()

    def _connect(self, *, read_only: bool) -> Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        log, _ = wal_files(self.path)
        if read_only and not log.exists() and not os.access(self.path.parent, os.W_OK):
            # Even to read, SQLite creates files beside the library. If it may not, and no process has the library open,
            # tell SQLite that the file does not change.
            uri += "&immutable=1"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=Connection,
        )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -8000")
        if not read_only:
            # WAL lets readers continue while one process writes; FULL makes a commit survive a power cut.
            _enable_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _check_schema(self) -> None:
        # In this order: another process may be creating the library, and its version appears with its tables.
        is_empty = not self._read_number("SELECT count(*) FROM sqlite_master")
        version = self._read_number("PRAGMA user_version")
        if version == 0 and is_empty:
            if self._read_only:
                raise LibraryError(f"{self.path} is an empty file", hint="Import documents first: bunko reindex.")
            self._create_schema()
            version = self._read_number("PRAGMA user_version")
        if self._read_number("PRAGMA application_id") != schema.APPLICATION_ID:
            raise LibraryDamaged(
                f"{self.path} is a SQLite database, but not a bunko library",
                hint="Name another file or folder with --database or --library.",
            )
        if version > schema.VERSION:
            raise LibraryTooNew(
                f"{self.path} was made by a newer bunko (schema {version}, this one knows {schema.VERSION})",
                hint="Upgrade bunko (pip install -U bunko), or name another library with --library.",
            )
        if version < schema.VERSION:
            self._migrate(version)

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
                f"{self.path} has the older schema {version} and is open for reading only",
                hint=f"Upgrade it first, as a user who can write to it: {command}",
            )
        backup = self.path.with_name(f"{self.path.name}.schema{version}.backup")
        if not backup.exists():
            with sqlite3.connect(backup) as copy:
                self._writer.backup(copy)
            copy.close()
        while version < schema.VERSION:
            with self.transaction() as connection:
                # Another process may have migrated it already: only the version read under the lock is reliable.
                version = int(connection.execute("PRAGMA user_version").fetchone()[0])
                if version < schema.VERSION:
                    schema.MIGRATIONS[version](connection)
                    version += 1
                    connection.execute(f"PRAGMA user_version = {version}")

    def _read_number(self, query: str) -> int:
        return int(self._reader.execute(query).fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block in one transaction, waiting for other writers."""
        if self._read_only:
            raise LibraryReadOnly(
                f"{self.path} is open for reading only",
                hint="Check that you may write to it; in Python, open it without read_only.",
            )
        with self._write_lock, translate_errors(self.path):
            try:
                self._writer.execute("BEGIN IMMEDIATE")  # inside try: Ctrl-C may arrive right after it
                yield self._writer
                reach_failpoint("store.commit")
                self._writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")
                raise
            reach_failpoint("store.committed")

    def try_transaction(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> bool:
        """Run statements in one transaction unless another writer is active; return whether they ran.

        For data that may be lost: it waits neither for other writers nor for the disk.
        """
        if self._read_only or not self._write_lock.acquire(blocking=False):
            return False
        writer = self._writer
        try:
            with translate_errors(self.path):
                writer.execute("PRAGMA busy_timeout = 0")
                writer.execute("PRAGMA synchronous = NORMAL")
                try:
                    writer.execute("BEGIN IMMEDIATE")
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
        except LibraryBusy:
            return False
        finally:
            self._write_lock.release()
        return True

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        with self._read_lock:
            outermost = not self._read_depth
            self._read_depth += 1
            try:
                if outermost:
                    with translate_errors(self.path):
                        self._reader.execute("BEGIN")
                yield
            finally:
                self._read_depth -= 1
                if outermost:
                    with suppress(sqlite3.Error):
                        self._reader.execute("COMMIT")

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query, from the state of the current read transaction."""
        with self._read_lock, translate_errors(self.path):
            return self._reader.execute(query, values).fetchall()

    def has_table(self, name: str) -> bool:
        """Return whether a table exists in the state of the current read transaction."""
        with self._read_lock, translate_errors(self.path):
            return self._reader.has_table(name)

    def drop_table_securely(self, name: str) -> None:
        """Delete a table, and overwrite its rows: they should not stay readable in the file's free pages."""
        with self.transaction() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute("PRAGMA secure_delete = OFF")

    def check(self) -> str:
        """Return the problems found in the file, or an empty string."""
        problems = [str(row[0]) for row in self.rows("PRAGMA integrity_check(5)") if row[0] != "ok"]
        problems += [f"{row[0]} refers to a row that does not exist" for row in self.rows("PRAGMA foreign_key_check")]
        return "; ".join(problems)

    def close(self) -> None:
        """Close both connections."""
        with self._write_lock, self._read_lock:
            for connection in {self._reader, self._writer}:
                connection.close()


def placeholders(values: Sequence[Any]) -> str:
    """Return a comma-separated question mark for each value, for an SQL list; an empty list matches nothing."""
    return ",".join("?" * len(values)) or "NULL"


def batches(values: Sequence[T], size: int = _BATCH_SIZE) -> Iterable[Sequence[T]]:
    """Split values into batches that fit in one query."""
    return (values[start : start + size] for start in range(0, len(values), size))


def byte_length_sql(expression: str) -> str:
    """Return the SQL for the length of a text in bytes; SQLite knows octet_length only since 3.43."""
    return f"length(CAST({expression} AS BLOB))"


def read_without_traces(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query without creating any file; raise sqlite3.Error if there is no library."""
    # If the files of the log do not exist, SQLite would create them even to read. But then no process has the library
    # open, and all data is in the one file.
    mode = "mode=ro" if all(file.exists() for file in wal_files(path)) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_PEEK_SECONDS)
    with closing(connection):
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
