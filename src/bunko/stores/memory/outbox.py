"""Keep what chat bots have promised to answer, and the domains that they may add pages from, in memory."""

from __future__ import annotations

from dataclasses import replace

from bunko.stores.memory.data import MemoryTables, with_lock
from bunko.types.outbox import DomainRule, OutboxEntry


class MemoryOutbox:
    """What bots have promised to answer."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def add(self, entry: OutboxEntry) -> bool:
        """Store an entry; return False if there is one with its key."""
        return self._tables.outbox.setdefault(entry.key, entry) is entry

    @with_lock
    def get(self, key: str) -> OutboxEntry | None:
        """Return the entry with a key, or None."""
        return self._tables.outbox.get(key)

    @with_lock
    def update(self, entry: OutboxEntry) -> None:
        """Store the state, the attempts and the answer of an entry."""
        stored = self._tables.outbox.get(entry.key)
        if stored is not None:
            self._tables.outbox[entry.key] = replace(
                stored, state=entry.state, attempts=entry.attempts, answer=dict(entry.answer)
            )

    @with_lock
    def unfinished(self, bot: str, *, limit: int) -> list[OutboxEntry]:
        """Return the entries of a bot that are waiting or answered, by position."""
        entries = [entry for entry in self._entries() if entry.bot == bot and entry.state in ("waiting", "answered")]
        return entries[:limit]

    @with_lock
    def finished(self, bot: str, thread: str, *, limit: int) -> list[OutboxEntry]:
        """Return the last entries of a thread that are done, by position."""
        entries = [
            entry for entry in self._entries() if (entry.bot, entry.thread, entry.state) == (bot, thread, "done")
        ]
        return entries[max(len(entries) - limit, 0) :]

    @with_lock
    def prune(self, before: float) -> None:
        """Delete the entries that are done or failed and were created before a time."""
        self._tables.outbox = {
            key: entry
            for key, entry in self._tables.outbox.items()
            if entry.created_at >= before or entry.state in ("waiting", "answered")
        }

    def _entries(self) -> list[OutboxEntry]:
        return sorted(self._tables.outbox.values(), key=lambda entry: (entry.position, entry.key))


class MemoryDomains:
    """The domains that a bot may add pages from."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def all(self) -> list[DomainRule]:
        """Return all rules, sorted by domain."""
        return sorted(self._tables.domains.values(), key=lambda rule: rule.domain)

    @with_lock
    def put(self, rule: DomainRule) -> None:
        """Store a rule in place of the earlier one for its domain."""
        self._tables.domains[rule.domain] = rule
