"""Connect to PostgreSQL, and run the shared statements there."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar

import psycopg
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from bunko.errors import BunkoError, LibraryDamaged, LibraryError, LibraryUnreachable
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.errors import connection_error, library_error

PgConnection = psycopg.Connection[tuple[Any, ...]]

# The oldest version that its makers still support; the tests run with 15.
MIN_VERSION = 14
# A machine that lost its network is noticed within a minute, on both sides: the server then releases its locks.
TIMEOUTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
# A plan that was made for an empty table would stay in use while an import fills it. A process that stopped inside a
# transaction must not keep the server from cleaning up for ever; one that builds an index reads more often than that.
_SESSION_SETTINGS = (
    "SET search_path TO {schema}, pg_temp; SET plan_cache_mode = force_custom_plan;"
    " SET idle_in_transaction_session_timeout = '10min';"
    " SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)
# Inserting 20 rows with one statement takes a third of the client's time and 60 % of the server's, measured for chunks;
# more rows gain nothing, and COPY, which cannot skip rows that exist, hardly anything.
_GROUP_SIZE = 20
_VALUES = re.compile(r"\bVALUES (\((?:\?, ?)*\?\))")
_MAX_NAME_BYTES = 63  # of an application


class PostgresWriter:
    """A connection inside a write transaction."""

    def __init__(self, raw: PgConnection, address: PostgresAddress) -> None:
        self._raw, self._address = raw, address

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.RawCursor[tuple[Any, ...]]:
        """Run a statement."""
        cursor = psycopg.RawCursor(self._raw, row_factory=decoded_rows)
        return cursor.execute(number_values(statement), encode_values(values), binary=True)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement once for each row of values."""
        encoded = [encode_values(row) for row in rows]
        grouped = group_rows(statement) if len(encoded) >= _GROUP_SIZE else ""
        if grouped:
            groups = [encoded[at : at + _GROUP_SIZE] for at in range(0, len(encoded), _GROUP_SIZE)]
            encoded = groups.pop() if len(groups[-1]) < _GROUP_SIZE else []
            values = [[value for row in group for value in row] for group in groups]
            psycopg.RawCursor(self._raw).executemany(number_values(grouped), values)
        if encoded:
            psycopg.RawCursor(self._raw).executemany(number_values(statement), encoded)

    def insert_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> list[int]:
        """Insert rows and return their ids."""
        encoded = [encode_values(row) for row in rows]
        if not encoded:
            return []
        cursor = psycopg.RawCursor(self._raw)
        cursor.executemany(number_values(f"{statement} RETURNING id"), encoded, returning=True)
        ids = [int(cursor.fetchall()[0][0])]
        while cursor.nextset():
            ids.append(int(cursor.fetchall()[0][0]))
        return ids

    def has_table(self, name: str) -> bool:
        """Return whether a table exists: every library has all tables."""
        return True

    def ensure_table(self, name: str) -> None:
        """Do nothing: every library has all tables."""

    def uri_key(self, column: str) -> str:
        """Return the SQL for what a path or URL is looked up by."""
        return key_expression(column)

    def key_of(self, uri: str) -> str:
        """Return the key of a path or URL."""
        return key_value(uri)

    def byte_length(self, expression: str) -> str:
        """Return the SQL for the length of a text in bytes."""
        return f"octet_length({expression})"

    def exclude_imports(self) -> bool:
        """Return whether no other import runs, and none can begin before this transaction ends."""
        query = "SELECT pg_try_advisory_xact_lock(?)"
        row = self.execute(query, (self._address.lock_key("import"),)).fetchone()
        return bool(row and row[0])

    def put_last_id(self, table: str, last_id: int) -> None:
        """Let a table give only higher ids than this one from now on."""
        if last_id > 0:  # a sequence begins with 1
            self.execute("SELECT setval(pg_get_serial_sequence(?, 'id'), ?)", (table, last_id))


def connect(address: PostgresAddress, **options: Any) -> PgConnection:
    """Open a connection that commits every statement unless a transaction is begun."""
    parameters: dict[str, Any] = {
        **TIMEOUTS,
        "application_name": application_name(),
        **address.parameters,
        "client_encoding": "utf8",
        **options,
    }
    try:
        connection = WatchedConnection.connect(**parameters, autocommit=True)
    except psycopg.Error as error:
        raise connection_error(address, error) from error
    connection.open_another = lambda: _connect_to_ask(parameters, address)
    try:
        # The same type for all integers: a statement would be prepared again for each size of a value.
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        connection.execute(_SESSION_SETTINGS.format(schema=quote(address.schema)))
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise library_error(address, error) from error
        raise
    return connection


def _connect_to_ask(parameters: dict[str, Any], address: PostgresAddress) -> PgConnection | None:
    """Open a connection to ask for the state of another one; return None if the server answers, but refuses all."""
    try:
        return psycopg.connect(**parameters, autocommit=True)
    except psycopg.Error as error:
        translated: BunkoError = connection_error(address, error)
        if isinstance(translated, LibraryUnreachable) and not translated.is_overloaded:
            raise
        return None


def check_server(connection: PgConnection, address: PostgresAddress) -> str:
    """Return name and version of the server; raise an error if a library cannot be there."""
    version = connection.info.server_version
    if version < MIN_VERSION * 10_000:
        raise LibraryError(
            f"{address.display} is PostgreSQL {format_version(version)}, which is too old",
            hint=f"Use a server of version {MIN_VERSION} or newer.",
        )
    encoding = connection.info.parameter_status("server_encoding") or ""
    if encoding != "UTF8":
        raise LibraryDamaged(
            f"{address.display} stores text as {encoding or 'something'}, not as UTF-8",
            hint="Create a database for it: createdb --encoding UTF8 --template template0 NAME.",
        )
    encrypted = ", encrypted" if connection.pgconn.ssl_in_use else ""
    return f"PostgreSQL {format_version(version)}{encrypted}"


def format_version(number: int) -> str:
    """Return a version as people write it: 150018 is 15.18."""
    return f"{number // 10_000}.{number % 10_000}" if number >= 100_000 else f"{number // 10_000}.{number // 100 % 100}"


def application_name() -> str:
    """Return the name of this process in the server's list: host, process id, and when the connection began."""
    pid, since = os.getpid(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    host = socket.gethostname().partition(".")[0].encode("ascii", "replace").decode().replace(" ", "_")
    room = _MAX_NAME_BYTES - len(f"bunko  {pid} {since}")
    return f"bunko {host[:room] or '?'} {pid} {since}"


def describe_application(name: str) -> str:
    """Return the process behind an application name for people; empty if it is not one of bunko's."""
    parts = name.split(" ")
    if len(parts) != 4 or parts[0] != "bunko":
        return ""
    return f"Process {parts[2]} on {parts[1]} (since {parts[3]})"


def quote(name: str) -> str:
    """Return a name of the schema as SQL; `parse_address` allows no quotes in it."""
    return f'"{name}"'


def execute(connection: PgConnection, statement: str, values: Sequence[Any]) -> psycopg.RawCursor[tuple[Any, ...]]:
    """Run a shared statement; its result comes in binary form."""
    return psycopg.RawCursor(connection).execute(number_values(statement), encode_values(values), binary=True)


@lru_cache(maxsize=64)
def group_rows(statement: str) -> str:
    """Return the statement that inserts a group of rows at once, or an empty string if this one cannot."""
    values = _VALUES.search(statement)
    # An update may not touch a row twice in one statement.
    if values is None or "DO UPDATE" in statement:
        return ""
    return statement.replace(values[1], ", ".join([values[1]] * _GROUP_SIZE), 1)


@lru_cache(maxsize=1024)
def number_values(statement: str) -> bytes:
    """Return a shared statement with the placeholders of PostgreSQL: $1 for the first value."""
    first, *rest = statement.split("?")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))).encode()


RV = TypeVar("RV")

# A statement may take longer than this; then the server is asked on a second connection whether it still runs.
SILENT_SECONDS = 15.0
# A server that waits for its client, while the client waits for it, has sent an answer that got lost.
_IS_RUNNING = (
    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'"
)


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if the server does not work on its statement any more."""

    open_another: Callable[[], psycopg.Connection[tuple[Any, ...]] | None] | None = None

    def wait(self, gen: Generator[Any, Any, RV], *args: Any, **options: Any) -> RV:
        """Wait for the server; raise OperationalError if it is gone."""
        return super().wait(self._watch(gen), *args, **options)

    def _watch(self, steps: Generator[Any, Any, RV]) -> Generator[Any, Any, RV]:
        """Pass on what psycopg waits for, which gets a false value whenever a moment passed without an answer."""
        heard_at = time.monotonic()
        try:
            state = next(steps)
            while True:
                ready = yield state
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > SILENT_SECONDS:
                    self._check_running()
                    heard_at = time.monotonic()
                state = steps.send(ready)
        except StopIteration as stop:
            value: RV = stop.value
            return value

    def _check_running(self) -> None:
        if self.open_another is None:
            return
        pid = self.info.backend_pid
        try:
            other = self.open_another()
            if other is None:
                return
            with other:
                if other.execute(_IS_RUNNING, (pid,)).fetchone():
                    return
        except psycopg.Error:
            pass
        self.close()  # without waiting: the next statement opens another one
        raise psycopg.OperationalError(f"the server has not answered for {SILENT_SECONDS:.0f} seconds")


# A longer one has a key of its first characters and its hash. Filled up with blanks, that is longer than any text which
# is its own key, so no file can be named to take the place of another one.
_MAX_BYTES, _BEGINNING_CHARS = 1000, 200


def key_expression(column: str) -> str:
    """Return the SQL for the key of a path or URL; the indexes of the tables are built with it."""
    # A text becomes bytes by doubling its backslashes; functions that take the encoding are not allowed in an index.
    as_bytes = f"CAST(replace({column}, chr(92), chr(92) || chr(92)) AS bytea)"
    escapes = " || ".join(f"chr({ord(character)})" for character in ENCODING_CHARACTERS)
    beginning = f"translate(left({column}, {_BEGINNING_CHARS}), {escapes}, '')"
    long_key = f"rpad({beginning} || encode(sha256({as_bytes}), 'hex'), {_MAX_BYTES + 1})"
    return f"(CASE WHEN octet_length({column}) <= {_MAX_BYTES} THEN {column} ELSE {long_key} END)"


def key_value(text: str) -> str:
    """Return the key of a path or URL, as `key_expression` computes it from what `encode_text` makes of that."""
    stored = encode_text(text)
    stored_bytes = stored.encode()
    if len(stored_bytes) <= _MAX_BYTES:
        return text
    beginning = stored[:_BEGINNING_CHARS].translate(dict.fromkeys(map(ord, ENCODING_CHARACTERS)))
    return (beginning + sha256(stored_bytes).hexdigest()).ljust(_MAX_BYTES + 1)


# The last code points mean nothing by definition, so hardly any text has them. One that does, perhaps to do harm, gets
# them back too: only then is a stored text longer than the original.
_NUL, _ESCAPE = "\U0010fffe", "\U0010ffff"
ENCODING_CHARACTERS = _NUL + _ESCAPE
_ENCODED = {"\0": _NUL, _NUL: f"{_ESCAPE}n", _ESCAPE: f"{_ESCAPE}e"}
_DECODED = {encoded: text for text, encoded in _ENCODED.items()}
_TO_ENCODE = re.compile("|".join(_ENCODED))
_TO_DECODE = re.compile("|".join(_DECODED))


def encode_text(text: str) -> str:
    """Return a text that PostgreSQL can store."""
    if "\0" in text or _NUL in text or _ESCAPE in text:
        return _TO_ENCODE.sub(lambda match: _ENCODED[match[0]], text)
    return text


def decode_text(text: str) -> str:
    """Return a text as it was before `encode_text`."""
    if _NUL in text or _ESCAPE in text:
        return _TO_DECODE.sub(lambda match: _DECODED[match[0]], text)
    return text


def encode_values(values: Sequence[Any]) -> Sequence[Any]:
    """Return values that PostgreSQL can store."""
    return [encode_text(value) if type(value) is str else value for value in values]


def decode_rows(rows: list[tuple[Any, ...]], text_columns: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return rows as they were before `encode_values`."""
    for column in text_columns:
        # All at once, because hardly ever is there anything to do.
        if any(_NUL in text or _ESCAPE in text for row in rows if (text := row[column]) is not None):
            return [tuple(decode_text(value) if type(value) is str else value for value in row) for row in rows]
    return rows


def decoded_rows(_: object) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what makes decoded rows of a cursor's values."""
    return lambda values: tuple(decode_text(value) if type(value) is str else value for value in values)
