"""Store a library in a schema of a PostgreSQL database, which many machines can read and write."""

from __future__ import annotations

import secrets
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import SettingsError
from bunko.runtime.installation import install_command
from bunko.runtime.temporary_files import write_text_file

if TYPE_CHECKING:
    from bunko.stores.postgres.address import PostgresAddress
    from bunko.stores.postgres.store import Postgres
    from bunko.types.records import DatabaseServer

_ID_CHARS = 32
_COMPLETION_SECONDS = 2  # the user waits at the keyboard; libpq knows no shorter time


def build(location: Path, server: DatabaseServer | None = None, *, read_only: bool = False) -> Postgres:
    """Open the store in a database, and create its schema and tables if they do not exist.

    The folder of `location` is for what this machine derives from it: index files and their names.
    """
    address = _parse_address(server)
    from bunko.stores.postgres.store import Postgres

    return Postgres(location, address, read_only=read_only)


def exists(location: Path, server: DatabaseServer | None = None) -> bool:
    """Return whether the schema has the tables of a library."""
    address = _parse_address(server)
    from bunko.stores.postgres.connection import connect
    from bunko.stores.postgres.errors import translate_errors
    from bunko.stores.postgres.schema import read_version

    with translate_errors(address), connect(address) as connection:
        return read_version(connection, address) is not None


def missing_paths(location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return the folders on this machine that do not exist, innermost first."""
    return tuple(path for path in location.parents if not path.exists())


def file_paths(location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return the file that names this machine's folder."""
    path = folder_id_file(location)
    return [path] if path.is_symlink() or path.exists() else []


def delete(location: Path, server: DatabaseServer | None = None) -> None:
    """Delete the file on this machine; tables on a server are never dropped, because others may use them."""
    folder_id_file(location).unlink(missing_ok=True)


def tool_names(location: Path, server: DatabaseServer | None = None) -> list[str]:
    """Return all tool names; raise an error if there is no library."""
    address = _parse_address(server)
    from bunko.stores.postgres.connection import connect
    from bunko.stores.postgres.errors import translate_errors

    with translate_errors(address), connect(address, connect_timeout=_COMPLETION_SECONDS) as connection:
        return [str(row[0]) for row in connection.execute("SELECT name FROM tools ORDER BY name")]


def display_location(location: Path, server: DatabaseServer | None = None) -> str:
    """Return host, database and schema."""
    return _parse_address(server).display


def _parse_address(server: DatabaseServer | None) -> PostgresAddress:
    if find_spec("psycopg") is None:
        raise SettingsError(
            "The package psycopg, which storage.kind = postgres needs, is not installed",
            hint=f"Install it with: {install_command('postgres')}",
        )
    from bunko.stores.postgres.address import parse_address

    return parse_address(server)


def folder_id_file(location: Path) -> Path:
    """Return the file with the name of this machine's folder of index files."""
    return location.with_name(f"{location.name}.folder-id")


def read_folder_id(location: Path, *, read_only: bool) -> str:
    """Return the name of this machine's folder, and create it unless the folder cannot be written."""
    path = folder_id_file(location)
    for _ in range(2):
        with suppress(OSError, UnicodeDecodeError):
            text = path.read_text(encoding="ascii").strip()
            if len(text) == _ID_CHARS and text.isalnum():
                return text
        if read_only:
            break
        # Of two processes that write it at the same time, the one that is read afterwards counts.
        with suppress(OSError):
            write_text_file(path, secrets.token_hex(_ID_CHARS // 2), mode=0o600)
    return secrets.token_hex(_ID_CHARS // 2)
