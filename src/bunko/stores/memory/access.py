"""Keep tokens, and the log of who changed what, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bunko.stores.memory.data import MemoryTables, with_lock
from bunko.types.access import AuditEntry, AuditResult, Rights, Token


class MemoryTokens:
    """The tokens of HTTP clients, each with the rights that it gives."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def all(self) -> list[Token]:
        """Return all tokens, sorted by name; those that have expired too."""
        return sorted(self._tables.tokens.values(), key=lambda token: token.name)

    @with_lock
    def add(self, token: Token) -> bool:
        """Add a token; return False if there is one of that name."""
        return self._tables.tokens.setdefault(token.name, token) is token

    @with_lock
    def remove(self, name: str) -> bool:
        """Delete a token; return False if there is none of that name."""
        return self._tables.tokens.pop(name, None) is not None

    @with_lock
    def mark_used(self, name: str, used_at: str) -> bool:
        """Record when a token was used; return True."""
        token = self._tables.tokens.get(name)
        if token is not None and token.last_used_at < used_at:
            self._tables.tokens[name] = replace(token, last_used_at=used_at)
        return True

    def rename_tool(self, name: str, new_name: str) -> None:
        """Give the rights to a tool to the tool of its new name."""
        self._change_names(lambda names: (new_name if other == name else other for other in names))

    def remove_tool(self, name: str) -> None:
        """Take the rights to a tool from all tokens."""
        self._change_names(lambda names: (other for other in names if other != name))

    @with_lock
    def _change_names(self, change: Callable[[Iterable[str]], Iterable[str]]) -> None:
        for token in self.all():
            read, write = (tuple(dict.fromkeys(change(names))) for names in (token.rights.read, token.rights.write))
            self._tables.tokens[token.name] = replace(token, rights=Rights(read, write))


class MemoryAudit:
    """The log of who changed what."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def begin(self, entry: AuditEntry, *, limit: int) -> int:
        """Store an entry before the change; keep `limit` entries. Return its id."""
        entries = self._tables.audit
        entry_id = entries[-1].id + 1 if entries else 1
        self._tables.audit = [*entries, replace(entry, id=entry_id)][-limit:]
        return entry_id

    @with_lock
    def finish(
        self, entry_id: int, result: AuditResult, details: Mapping[str, Any], *, tools: Sequence[str] | None = None
    ) -> None:
        """Record how a change ended, and which tools it was about if that was not known before."""
        self._tables.audit = [
            replace(entry, result=result, details=details, tools=entry.tools if tools is None else tuple(tools))
            if entry.id == entry_id
            else entry
            for entry in self._tables.audit
        ]

    @with_lock
    def entries(self, *, since: str = "") -> list[AuditEntry]:
        """Return the entries, the oldest first; all, or those from a time on."""
        return [entry for entry in self._tables.audit if entry.time >= since]
