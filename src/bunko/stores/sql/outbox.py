"""Keep the promised answers of chat bots, and the domains of pages that they may add."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bunko.stores.sql.database import INTEGER, REAL, TEXT, Database, decode_object, retried
from bunko.types.records import DomainRule, OutboxEntry

_COLUMNS = "key, bot, thread, position, request, created_at, state, attempts, answer"
_TYPES = (TEXT, TEXT, TEXT, TEXT, TEXT, REAL, TEXT, INTEGER, TEXT)


class SqlOutbox:
    """What bots have promised to answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @retried
    def add(self, entry: OutboxEntry) -> bool:
        """Store an entry; return False if there is one with its key."""
        with self._database.transaction() as connection:
            connection.ensure_table("outbox")
            if connection.execute("SELECT 1 FROM outbox WHERE key = ?", (entry.key,)).fetchone() is not None:
                return False
            row = (
                entry.key, entry.bot, entry.thread, entry.position, _encode(entry.request), entry.created_at,
                entry.state, entry.attempts, _encode(entry.answer),
            )  # fmt: skip
            connection.execute(f"INSERT INTO outbox ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            return True

    def get(self, key: str) -> OutboxEntry | None:
        """Return the entry with a key, or None."""
        return next(iter(self._select("WHERE key = ?", (key,))), None)

    @retried
    def update(self, entry: OutboxEntry) -> None:
        """Store the state, the attempts and the answer of an entry."""
        with self._database.transaction() as connection:
            connection.ensure_table("outbox")
            connection.execute(
                "UPDATE outbox SET state = ?, attempts = ?, answer = ? WHERE key = ?",
                (entry.state, entry.attempts, _encode(entry.answer), entry.key),
            )

    def unfinished(self, bot: str, *, limit: int) -> list[OutboxEntry]:
        """Return the entries of a bot that are waiting or answered, by position."""
        where = "WHERE bot = ? AND state IN ('waiting', 'answered') ORDER BY position, key LIMIT ?"
        return self._select(where, (bot, limit))

    def finished(self, bot: str, thread: str, *, limit: int) -> list[OutboxEntry]:
        """Return the last entries of a thread that are done, by position."""
        where = "WHERE bot = ? AND thread = ? AND state = 'done' ORDER BY position DESC, key DESC LIMIT ?"
        return self._select(where, (bot, thread, limit))[::-1]

    @retried
    def prune(self, before: float) -> None:
        """Delete the entries that are done or failed and were created before a time."""
        with self._database.transaction() as connection:
            connection.ensure_table("outbox")
            connection.execute("DELETE FROM outbox WHERE created_at < ? AND state IN ('done', 'failed')", (before,))

    def _select(self, where: str, values: Sequence[Any]) -> list[OutboxEntry]:
        if not self._database.has_table("outbox"):
            return []
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM outbox {where}", values, types=_TYPES)
        with self._database.decode_values():
            return [_decode_entry(row) for row in rows]


class SqlDomains:
    """The domains that a bot may add pages from."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[DomainRule]:
        """Return all rules, sorted by domain."""
        if not self._database.has_table("domains"):
            return []
        rows = self._database.rows(
            "SELECT domain, allowed, changed_by, changed_at FROM domains ORDER BY domain",
            types=(TEXT, INTEGER, TEXT, TEXT),
        )
        return [DomainRule(domain, bool(allowed), *who_and_when) for domain, allowed, *who_and_when in rows]

    @retried
    def put(self, rule: DomainRule) -> None:
        """Store a rule in place of the earlier one for its domain."""
        with self._database.transaction() as connection:
            connection.ensure_table("domains")
            connection.execute(
                "INSERT INTO domains VALUES (?, ?, ?, ?) ON CONFLICT (domain) DO UPDATE SET"
                " allowed = excluded.allowed, changed_by = excluded.changed_by, changed_at = excluded.changed_at",
                (rule.domain, int(rule.is_allowed), rule.changed_by, rule.changed_at),
            )


def _encode(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


def _decode_entry(row: Sequence[Any]) -> OutboxEntry:
    key, bot, thread, position, request, created_at, state, attempts, answer = row
    if state not in ("waiting", "answered", "done", "failed"):
        raise ValueError("not a state")
    return OutboxEntry(
        key, bot, thread, position, decode_object(request), created_at, state, attempts, decode_object(answer)
    )
