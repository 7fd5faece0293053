"""What a store must offer to a chat bot: an outbox, and the domains that it may add pages from."""

from __future__ import annotations

from typing import Protocol

from bunko.types.outbox import DomainRule, OutboxEntry


class OutboxStore(Protocol):
    """What bots have promised to answer; it survives the end of a process."""

    def add(self, entry: OutboxEntry) -> bool:
        """Store an entry; return False if there is one with its key."""

    def get(self, key: str) -> OutboxEntry | None:
        """Return the entry with a key, or None."""

    def update(self, entry: OutboxEntry) -> None:
        """Store the state, the attempts and the answer of an entry."""

    def unfinished(self, bot: str, *, limit: int) -> list[OutboxEntry]:
        """Return the entries of a bot that are waiting or answered, by position."""

    def finished(self, bot: str, thread: str, *, limit: int) -> list[OutboxEntry]:
        """Return the last entries of a thread that are done, by position."""

    def prune(self, before: float) -> None:
        """Delete the entries that are done or failed and were created before a time."""


class DomainStore(Protocol):
    """The domains that a bot may add pages from, as people have decided in a chat."""

    def all(self) -> list[DomainRule]:
        """Return all rules, sorted by domain."""

    def put(self, rule: DomainRule) -> None:
        """Store a rule in place of the earlier one for its domain."""
