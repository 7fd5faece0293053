"""Who calls bunko, what that caller may do, and what was done: tokens, rights and lines of the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ALL_TOOLS = "*"  # in place of names: every tool, those to come included

Via = Literal["cli", "stdio", "http", "chat", "slack"]
AuditResult = Literal["started", "done", "interrupted", "failed"]


@dataclass(frozen=True, slots=True)
class Rights:
    """The tools that a caller may read and write, by name; the right to write includes the right to read."""

    read: tuple[str, ...] = (ALL_TOOLS,)
    write: tuple[str, ...] = ()

    def can_read(self, tool: str) -> bool:
        """Return whether a tool may be seen and searched."""
        return ALL_TOOLS in self.read or tool in self.read or self.can_write(tool)

    def can_write(self, tool: str) -> bool:
        """Return whether a tool may be changed."""
        return ALL_TOOLS in self.write or tool in self.write

    @property
    def reads_all(self) -> bool:
        """Whether every tool may be seen and searched."""
        return ALL_TOOLS in self.read or self.writes_all

    @property
    def writes_all(self) -> bool:
        """Whether every tool may be changed, and new ones may be added."""
        return ALL_TOOLS in self.write

    @property
    def writes_some(self) -> bool:
        """Whether any tool may be changed."""
        return bool(self.write)


ALL_RIGHTS = Rights((ALL_TOOLS,), (ALL_TOOLS,))


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a library: the name of a token, user@machine, or a user of Slack."""

    name: str
    via: Via
    rights: Rights = ALL_RIGHTS
    is_owner: bool = False  # the one who runs this process, who may name files and folders of its machine


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is stored: its digest, never the token itself."""

    name: str
    digest: str  # SHA-256, in hexadecimal
    rights: Rights
    created_at: str
    expires_at: str = ""  # empty: never
    last_used_at: str = ""  # to the minute; empty: not yet


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change of a library: when, by whom, what, and how it ended."""

    time: str
    who: str
    via: str
    action: str  # as the command is called: import, web add, token revoke
    tools: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: str = "started"  # of a process that was killed it stays so
    details: Mapping[str, Any] = field(default_factory=dict)  # counts, or the error
    id: int = 0
