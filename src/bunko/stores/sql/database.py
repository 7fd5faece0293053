"""What the queries of a library need of a database.

The other files of this folder use SQL that SQLite and PostgreSQL understand: `?` for values, ON CONFLICT, coalesce,
quoted reserved words, no empty lists. What only one of them understands stands in its own folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bunko.errors import moved_error, unfinished_error

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="_Subject")
T = TypeVar("T")
# The Python types of a column's values; `TEXT | NULL` for a column that may be empty.
ColumnType = frozenset[type]
TEXT, INTEGER, REAL, BLOB, NULL = (frozenset((kind,)) for kind in (str, int, float, bytes, type(None)))

NO_LIMIT = 2**63 - 1  # the LIMIT of a query that only has an OFFSET
_decode_json = json.JSONDecoder().raw_decode  # skips no blanks, which no bunko wrote
_BATCH_SIZE = 500  # values in one query; old versions of SQLite allow 999


class StatementResult(Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""


class Connection(Protocol):
    """A connection inside a write transaction."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> StatementResult:
        """Run a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement once for each row of values."""

    def insert_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> list[int]:
        """Insert rows and return their ids."""

    def has_table(self, name: str) -> bool:
        """Return whether a table exists."""

    def ensure_table(self, name: str) -> None:
        """Create a table that only some libraries have, unless it exists."""

    def uri_key(self, column: str) -> str:
        """Return the SQL for what a path or URL is looked up by."""

    def key_of(self, uri: str) -> str:
        """Return the key of a path or URL."""

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes."""

    def exclude_imports(self) -> bool:
        """Return whether no other import runs, and none can begin before this transaction ends."""

    def put_last_id(self, table: str, last_id: int) -> None:
        """Let a table give only higher ids than this one from now on."""


class Database(Protocol):
    """Runs queries and transactions."""

    location: str  # for messages

    def transaction(self, *, is_move: bool = False) -> AbstractContextManager[Connection]:
        """Run the block in one transaction, waiting for other writers.

        Only a move may write to a library that has moved or is an unfinished copy.
        """

    def try_transaction(self, statements: Sequence[tuple[str, Sequence[Any]]], *, table: str = "") -> bool:
        """Run statements in one transaction unless another writer is active; return whether they ran.

        For data that may be lost. `table` is created first if only some libraries have it.
        """

    def rows(
        self, query: str, values: Sequence[Any] = (), *, types: Sequence[ColumnType] = ()
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, whose columns have these types, from the state of the read transaction."""

    def decode_values(self) -> AbstractContextManager[None]:
        """Raise an error of the block, which decodes stored values, as damage of the library."""

    def has_table(self, name: str) -> bool:
        """Return whether a table exists in the state of the current read transaction."""

    def clear_securely(self, name: str) -> None:
        """Delete all rows of a table that only some libraries have, so that they cannot be read any more."""

    def last_id(self, table: str) -> int:
        """Return the highest id that a table has ever given."""

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes."""

    def file_mode(self) -> int | None:
        """Return the permissions for files beside the library, None if it is no file."""

    def uri_key(self, column: str) -> str:
        """Return the SQL for what a path or URL is looked up and paged by; long ones may differ from their order."""

    def key_of(self, uri: str) -> str:
        """Return the key of a path or URL."""

    def retry(self, work: Callable[[], T], *, is_repeatable: bool) -> T:
        """Return the result of a function; run it again if a connection is lost.

        If it is lost during a commit, its result is unknown: then only what is repeatable runs again.
        """


class _Subject(Protocol):
    _database: Database


def retried(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Run a method that is one transaction again if its connection is lost; running twice must do the same as once."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._database.retry(lambda: method(self, *args, **kwargs), is_repeatable=True)

    return run


def retried_until_commit(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Run a method that is one transaction again if its connection is lost before the commit."""

    @wraps(method)
    def run(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._database.retry(lambda: method(self, *args, **kwargs), is_repeatable=False)

    return run


def placeholders(values: Collection[Any]) -> str:
    """Return a comma-separated question mark for each value, for an SQL list; an empty list matches nothing."""
    return ",".join("?" * len(values)) or "NULL"


def decode_strings(text: str) -> tuple[str, ...]:
    """Decode a JSON list of texts; raise ValueError if it is anything else."""
    if text == "[]":  # most documents have no tags
        return ()
    values, end = _decode_json(text)
    if end != len(text) or type(values) is not list or not TEXT.issuperset(map(type, values)):
        raise ValueError("not a list of texts")
    return tuple(values)


def decode_object(text: str) -> dict[str, Any]:
    """Decode a JSON object; raise ValueError if it is anything else."""
    value = json.loads(text)
    if type(value) is not dict:
        raise ValueError("not an object")
    return value


def batches(values: Sequence[T], size: int = _BATCH_SIZE) -> Iterable[Sequence[T]]:
    """Split values into batches that fit in one query."""
    return (values[start : start + size] for start in range(0, len(values), size))


# Keys in `meta`: the library is elsewhere now; it is an unfinished copy; it is a complete one without changes since.
MOVED, COPYING, ARRIVED = "moved", "copying", "arrived"
SELECT_MARKS = f"SELECT key, value FROM meta WHERE key IN ('{MOVED}', '{COPYING}', '{ARRIVED}')"


def read_marks(database: Database) -> dict[str, str]:
    """Return the marks of a library."""
    return dict(database.rows(SELECT_MARKS, types=(TEXT, TEXT)))


def check_writable(connection: Connection, marks: Sequence[tuple[str, str]], location: str) -> None:
    """Raise an error if the rows of `SELECT_MARKS` forbid all writes; a copy that is written to is none."""
    for key, value in marks:
        if key == MOVED:
            raise moved_error(location, value)
        if key == COPYING:
            raise unfinished_error(location)
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
