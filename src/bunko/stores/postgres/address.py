"""Read the URL of a PostgreSQL database; no message shows a password."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from bunko.errors import SettingsError
from bunko.types.records import DatabaseServer

_SCHEMES = ("postgresql", "postgres")
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_URL_HINT = "Write it as postgresql://USER@HOST/DATABASE, with ?sslmode=verify-full for a server on another machine."


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A schema of a database, and how to connect to it."""

    parameters: dict[str, str] = field(repr=False)  # of libpq; with the password
    schema: str
    display: str  # host, database and schema
    pool_size: int
    server: DatabaseServer  # what it was read from

    @property
    def channel(self) -> str:
        """The channel on which writers announce changes."""
        return f"bunko_{blake2b(self.schema.encode(), digest_size=8).hexdigest()}"

    def lock_key(self, purpose: str) -> int:
        """Return the number of an advisory lock; other schemas of the database have others."""
        digest = blake2b(f"{self.schema}\0{purpose}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)


def parse_address(server: DatabaseServer | None) -> PostgresAddress:
    """Return the address that the settings name; raise an error that says what is wrong with them."""
    if server is None or not server.url:
        raise SettingsError("storage.kind is postgres, but storage.url is not set", hint=_URL_HINT)
    url, url_schema = _split_schema(server.url)
    schema = url_schema or server.schema
    if not _SCHEMA_NAME.fullmatch(schema):
        raise SettingsError(
            f"storage.schema cannot be {schema!r}",
            hint="Use small letters, digits and _, at most 63, and neither a digit nor pg_ at the beginning.",
        )
    try:
        parameters = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        # Without its message, which may quote the URL.
        raise SettingsError("storage.url is not a URL of PostgreSQL", hint=_URL_HINT) from None
    if parameters.keys() & {"password", "sslpassword"}:
        raise SettingsError(
            "storage.url contains a password, which lists of settings and processes would show",
            hint="Remove it from the URL, and set BUNKO_STORAGE_PASSWORD, or storage.password_file, or use ~/.pgpass.",
        )
    if not parameters.get("dbname"):
        raise SettingsError("storage.url names no database", hint=_URL_HINT)
    environ = os.environ  # libpq reads it too
    host = parameters.get("host") or parameters.get("hostaddr") or environ.get("PGHOST") or "localhost"
    port = parameters.get("port") or environ.get("PGPORT") or "5432"
    host = f"[{host}]" if "/" in host or ":" in host else host
    display = f"postgresql://{host}:{port}/{parameters['dbname']} (schema {schema})"
    if server.password:
        parameters["password"] = server.password
    return PostgresAddress(parameters, schema, display, server.pool_size, server)


def _split_schema(url: str) -> tuple[str, str]:
    """Return a URL without its parameter `schema`, which libpq does not know, and that schema."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise SettingsError("storage.url is not a URL of PostgreSQL", hint=_URL_HINT) from None
    if parts.scheme not in _SCHEMES:
        raise SettingsError("storage.url is not a URL of PostgreSQL", hint=_URL_HINT)
    schema = next((value for name, value in query if name == "schema"), "")
    if not schema:
        return url, ""
    rest = urlencode([(name, value) for name, value in query if name != "schema"])
    return parts._replace(query=rest).geturl(), schema
