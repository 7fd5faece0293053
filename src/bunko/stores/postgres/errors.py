"""Translate errors of PostgreSQL into library errors; a password is in none of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bunko.errors import (
    BunkoError,
    DiskFull,
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    LibraryReadOnly,
    LibraryUnreachable,
    rebuild_hint,
)
from bunko.stores.postgres.address import PostgresAddress

# How long a write waits for another process's transaction.
BUSY_SECONDS = 30.0

# What libpq says if it cannot connect: it gives no code for that. A server that speaks another language gets the
# general sentence.
_CONNECT_HINTS = (
    (
        re.compile("password authentication failed|no password supplied|empty password"),
        "Check the user in storage.url and the password in BUNKO_STORAGE_PASSWORD, storage.password_file or ~/.pgpass.",
    ),
    (
        re.compile("no pg_hba.conf entry|Peer authentication failed|Ident authentication failed"),
        "The server does not let this user in from here: see pg_hba.conf of the server, or try another sslmode.",
    ),
    (re.compile('role ".*" does not exist'), "Check the user in storage.url, or create it: createuser NAME."),
    (re.compile('database ".*" does not exist'), "Check the database in storage.url, or create it: createdb NAME."),
    (re.compile("SSL|certificate|sslmode"), "Check sslmode and the certificates (sslrootcert) in storage.url."),
    (
        re.compile("could not translate host name|not known|No address associated"),
        "Check the name of the host in storage.url.",
    ),
)
_OVERLOADED = re.compile("too many clients|remaining connection slots|too many connections for")
_OVERLOADED_HINT = "Try again, lower storage.pool_size, or let the server accept more (max_connections)."
_CONNECT_HINT = "Check that the server is running and that storage.url names its host and port."
_FULL_HINT = "Free some space on the server, then run the same command again. Existing data is not affected."
_RETRY_HINT = "Run the same command again when the server is back. Committed data is not affected."
# The socket of libpq and of the server name the address with each failure.
_PREFIXES = re.compile(r"^(?:connection (?:failed|is bad): )?(?:connection to server .*? failed: )?(?:FATAL: +)?")


@contextmanager
def translate_errors(address: PostgresAddress) -> Iterator[None]:
    """Raise errors of PostgreSQL inside the block as library errors."""
    try:
        yield
    except BunkoError:
        raise
    except psycopg.Error as error:
        raise library_error(address, error) from error


@contextmanager
def translate_value_errors(address: PostgresAddress) -> Iterator[None]:
    """Raise errors of decoding stored values inside the block as damage of the library."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, zlib.error) as error:
        # Without the message, which quotes the value: an assistant would read the text of a stranger.
        raise LibraryDamaged(
            f"{address.display} has values that bunko did not write", hint=rebuild_hint(address.display)
        ) from error


def is_connection_lost(error: psycopg.Error) -> bool:
    """Return whether an error means that the connection is gone, not that a statement is wrong."""
    state = error.sqlstate or ""
    if state:
        # 08: connection; 57P: shutdown, crash or start of the server; 25P03: idle for too long in a transaction.
        return state.startswith("08") or state in ("57P01", "57P02", "57P03", "57P05", "25P03")
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def library_error(address: PostgresAddress, error: psycopg.Error) -> BunkoError:
    """Return the library error for an error of PostgreSQL."""
    place, text = address.display, _first_line(error)
    state = error.sqlstate or ""
    if state == "53100" or "No space left on device" in str(error):
        return DiskFull(f"The disk of {place} is full", hint=_FULL_HINT)
    if state in ("55P03", "40P01", "40001"):
        return LibraryBusy(
            f"Another process has been writing {place} for more than {BUSY_SECONDS:.0f} seconds",
            hint="Wait until it has finished, then try again.",
        )
    if state in ("42501", "25006"):
        return LibraryReadOnly(
            f"{place} cannot be written: {text}",
            hint="Use a user who may write to it, and a server that is not a standby.",
        )
    if state[:2] == "42" or state in ("3F000", "XX001", "XX002"):
        return LibraryDamaged(f"{place} is not a readable library: {text}", hint=rebuild_hint(address.display))
    if state == "57014":
        return LibraryError(
            f"{place} took too long: {text}",
            hint="Raise statement_timeout of this user, then run the same command again.",
        )
    if is_connection_lost(error):
        return LibraryUnreachable(f"The connection to {place} was lost: {text}", hint=_RETRY_HINT)
    return LibraryError(f"{place}: {text}", hint="Check the log of the server, then run the same command again.")


def connection_error(address: PostgresAddress, error: psycopg.Error) -> BunkoError:
    """Return the library error for a connection that could not be made."""
    text = _first_line(error)
    if _OVERLOADED.search(str(error)):
        overloaded = LibraryUnreachable(f"{address.display} has no connection left: {text}", hint=_OVERLOADED_HINT)
        overloaded.is_overloaded = True
        return overloaded
    for pattern, hint in _CONNECT_HINTS:
        if pattern.search(str(error)):
            return LibraryError(f"Cannot connect to {address.display}: {text}", hint=hint)
    return LibraryUnreachable(f"Cannot connect to {address.display}: {text}", hint=_CONNECT_HINT)


def _first_line(error: psycopg.Error) -> str:
    """Return the first line of an error: further lines quote statements and values."""
    message = error.diag.message_primary or str(error).strip().partition("\n")[0]
    return _PREFIXES.sub("", message).strip().rstrip(".") or type(error).__name__
