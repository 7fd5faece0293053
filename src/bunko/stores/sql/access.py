"""Keep the tokens of HTTP clients, and the log of who changed what."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bunko.stores.sql.database import (
    INTEGER,
    TEXT,
    Database,
    decode_object,
    decode_strings,
    retried,
    retried_until_commit,
)
from bunko.types.access import AuditEntry, AuditResult, Rights, Token

_TOKEN_COLUMNS = "name, digest, read, write, created_at, expires_at, last_used_at"
_SELECT_TOKENS = f"SELECT {_TOKEN_COLUMNS} FROM tokens ORDER BY name"
_ENTRY_COLUMNS = "time, who, via, action, tools, arguments, result, details"


class SqlTokens:
    """The tokens of HTTP clients, each with the rights that it gives."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Token]:
        """Return all tokens, sorted by name; those that have expired too."""
        if not self._database.has_table("tokens"):
            return []
        rows = self._database.rows(_SELECT_TOKENS, types=(TEXT,) * 7)
        with self._database.decode_values():
            return [_decode_token(row) for row in rows]

    @retried_until_commit  # a second time, there would be one of that name
    def add(self, token: Token) -> bool:
        """Add a token; return False if there is one of that name."""
        with self._database.transaction() as connection:
            connection.ensure_table("tokens")
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (token.name,)).fetchone() is not None:
                return False
            connection.execute(f"INSERT INTO tokens ({_TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", _encode(token))
            return True

    @retried_until_commit
    def remove(self, name: str) -> bool:
        """Delete a token; return False if there is none of that name."""
        with self._database.transaction() as connection:
            if not connection.has_table("tokens"):
                return False
            is_known = connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone() is not None
            connection.execute("DELETE FROM tokens WHERE name = ?", (name,))
            return is_known

    def mark_used(self, name: str, used_at: str) -> bool:
        """Record the last use of a token; return False if another process is writing."""
        statement = "UPDATE tokens SET last_used_at = ? WHERE name = ? AND last_used_at < ?"
        return self._database.try_transaction([(statement, (used_at, name, used_at))], table="tokens")

    def rename_tool(self, name: str, new_name: str) -> None:
        """Give the rights to a tool to the tool of its new name."""
        self._change_names(lambda names: tuple(dict.fromkeys(new_name if other == name else other for other in names)))

    def remove_tool(self, name: str) -> None:
        """Take the rights to a tool from all tokens."""
        self._change_names(lambda names: tuple(other for other in names if other != name))

    @retried
    def _change_names(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        if not self.all():
            return
        with self._database.transaction() as connection, self._database.decode_values():
            for row in connection.execute(_SELECT_TOKENS).fetchall():
                token = _decode_token(row)
                rights = Rights(change(token.rights.read), change(token.rights.write))
                if rights != token.rights:
                    _, _, read, write, *_ = _encode(replace(token, rights=rights))
                    connection.execute(
                        "UPDATE tokens SET read = ?, write = ? WHERE name = ?", (read, write, token.name)
                    )


def _encode(token: Token) -> tuple[str, ...]:
    read, write = (json.dumps(names, ensure_ascii=False) for names in (token.rights.read, token.rights.write))
    return (token.name, token.digest, read, write, token.created_at, token.expires_at, token.last_used_at)


def _decode_token(row: Sequence[Any]) -> Token:
    name, digest, read, write, created_at, expires_at, last_used_at = row
    rights = Rights(decode_strings(read), decode_strings(write))
    return Token(name, digest, rights, created_at, expires_at, last_used_at)


class SqlAudit:
    """The log of who changed what."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @retried_until_commit
    def begin(self, entry: AuditEntry, *, limit: int) -> int:
        """Store an entry before the change, so that it survives a crash; keep `limit` of its caller. Return its id."""
        with self._database.transaction() as connection:
            connection.ensure_table("audit")
            row = (
                entry.time, entry.who, entry.via, entry.action, _encode_json(entry.tools),
                _encode_json(entry.arguments), entry.result, _encode_json(entry.details),
            )  # fmt: skip
            statement = f"INSERT INTO audit ({_ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            [entry_id] = connection.insert_many(statement, [row])
            if entry_id > limit:  # no caller has more before
                # Of this caller only: one with many changes must not push out what others did.
                own = "who = ? AND via = ?"
                oldest_kept = f"SELECT id FROM audit WHERE {own} ORDER BY id DESC LIMIT 1 OFFSET ?"
                caller = (entry.who, entry.via)
                statement = f"DELETE FROM audit WHERE {own} AND id < ({oldest_kept})"
                connection.execute(statement, (*caller, *caller, limit - 1))
            return entry_id

    @retried
    def finish(
        self, entry_id: int, result: AuditResult, details: Mapping[str, Any], *, tools: Sequence[str] | None = None
    ) -> None:
        """Record the result of a change, and its tools if they were not known before."""
        with self._database.transaction() as connection:
            statement = "UPDATE audit SET result = ?, details = ? WHERE id = ?"
            connection.execute(statement, (result, _encode_json(details), entry_id))
            if tools is not None:
                connection.execute("UPDATE audit SET tools = ? WHERE id = ?", (_encode_json(tools), entry_id))

    def entries(self, *, since: str = "") -> list[AuditEntry]:
        """Return the entries, the oldest first; all, or those from a time on."""
        if not self._database.has_table("audit"):
            return []
        rows = self._database.rows(
            f"SELECT id, {_ENTRY_COLUMNS} FROM audit WHERE time >= ? ORDER BY id",
            (since,),
            types=(INTEGER, *(TEXT,) * 8),
        )
        with self._database.decode_values():
            return [_decode_entry(row) for row in rows]


def _encode_json(value: Mapping[str, Any] | Sequence[str]) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else list(value), ensure_ascii=False)


def _decode_entry(row: Sequence[Any]) -> AuditEntry:
    entry_id, time, who, via, action, tools, arguments, result, details = row
    return AuditEntry(
        time, who, via, action, decode_strings(tools), decode_object(arguments), result, decode_object(details),
        entry_id,
    )  # fmt: skip
