"""Describe the promised answers of a chat bot, and the domains of pages that it may add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# answered: the answer is known, but not all of it was sent; failed: it cannot be sent.
OutboxState = Literal["waiting", "answered", "done", "failed"]


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A message that a bot has acknowledged, with its answer as soon as there is one."""

    key: str  # names the message, however often it is delivered
    bot: str
    thread: str
    position: str  # sorts the messages of a thread
    request: Mapping[str, Any]
    created_at: float  # in seconds since 1970
    state: OutboxState = "waiting"
    attempts: int = 0  # how often work on it began
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainRule:
    """Whether pages of a domain may be added, and who decided that."""

    domain: str
    is_allowed: bool
    changed_by: str
    changed_at: str
