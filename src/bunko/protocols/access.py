"""What a store must offer to serve a team: tokens, and the log of who changed what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bunko.types.access import AuditEntry, AuditResult, Token


class TokenStore(Protocol):
    """The tokens of HTTP clients, each with the rights that it gives."""

    def all(self) -> list[Token]:
        """Return all tokens, sorted by name; those that have expired too."""

    def add(self, token: Token) -> bool:
        """Add a token; return False if there is one of that name."""

    def remove(self, name: str) -> bool:
        """Delete a token; return False if there is none of that name."""

    def mark_used(self, name: str, used_at: str) -> bool:
        """Record the last use of a token; return False if another process is writing."""

    def rename_tool(self, name: str, new_name: str) -> None:
        """Give the rights to a tool to the tool of its new name."""

    def remove_tool(self, name: str) -> None:
        """Take the rights to a tool from all tokens."""


class AuditStore(Protocol):
    """The log of who changed what."""

    def begin(self, entry: AuditEntry, *, limit: int) -> int:
        """Store an entry before the change, so that it survives a crash; keep `limit` entries. Return its id."""

    def finish(
        self, entry_id: int, result: AuditResult, details: Mapping[str, Any], *, tools: Sequence[str] | None = None
    ) -> None:
        """Record the result of a change, and its tools if they were not known before."""

    def entries(self, *, since: str = "") -> list[AuditEntry]:
        """Return the entries, the oldest first; all, or those from a time on."""
