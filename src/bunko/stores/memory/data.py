"""Hold the tables of an in-memory library."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from bunko.records import (
    EmbeddingUsage,
    FailedDocument,
    LoggedSearch,
    PreparedDocument,
    ScanRecord,
    ToolStatistics,
    WebPage,
)
from bunko.stores.filters import effective_date
from bunko.types import SourceEntry, Tool
from bunko.types.access import AuditEntry, Token
from bunko.types.outbox import DomainRule, OutboxEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceVectors


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="_Subject")


class _Subject(Protocol):
    _tables: MemoryTables


def with_lock(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Run a method of a subject while no other thread writes, as a transaction would."""

    @wraps(method)
    def run_locked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._tables.lock:
            return method(self, *args, **kwargs)

    return run_locked


@dataclass(slots=True)
class DocumentRow:
    """A stored document with its ids; its chunks have consecutive ids from `first_chunk`."""

    id: int
    tool_id: int
    generation: int
    prepared: PreparedDocument
    entry: SourceEntry
    first_chunk: int

    @property
    def date(self) -> str:
        """Return the date of the document, or of its file if it has none."""
        return effective_date(self.prepared.document.text.date, self.entry.modified_ns, self.entry.lines.last)


@dataclass(slots=True)
class MemoryTables:
    """All data of a library, and the lock that guards it."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    tools: dict[str, Tool] = field(default_factory=dict)  # by name
    documents: dict[tuple[int, str], DocumentRow] = field(default_factory=dict)  # by tool id and URI
    failures: dict[tuple[int, str], FailedDocument] = field(default_factory=dict)
    removals: list[tuple[int, int, int]] = field(default_factory=list)  # tool id, document id, generation
    redatings: list[tuple[int, int, int]] = field(default_factory=list)
    vectors: dict[bytes, npt.NDArray[np.float32]] = field(default_factory=dict)
    sentences: dict[bytes, SentenceVectors] = field(default_factory=dict)
    pinned: dict[tuple[int, str], set[bytes]] = field(default_factory=dict)  # vector keys by tool id and embedder
    usage: dict[str, EmbeddingUsage] = field(default_factory=dict)  # by embedder
    pages: dict[tuple[int, str], WebPage] = field(default_factory=dict)  # by tool id and URL
    contents: dict[tuple[int, str], bytes] = field(default_factory=dict)  # compressed
    searches: dict[tuple[str, str], LoggedSearch] = field(default_factory=dict)  # by query and tool name
    answers: dict[tuple[str, bytes], tuple[str, float]] = field(default_factory=dict)  # value and expiry time
    statistics: dict[tuple[int, str], ToolStatistics] = field(default_factory=dict)  # by tool id and copy
    frequencies: dict[tuple[int, str], Counter[int]] = field(default_factory=dict)
    index_notes: dict[tuple[int, str], str] = field(default_factory=dict)  # by tool id and index
    tokens: dict[str, Token] = field(default_factory=dict)  # by name
    audit: list[AuditEntry] = field(default_factory=list)  # the oldest first
    outbox: dict[str, OutboxEntry] = field(default_factory=dict)  # by key
    domains: dict[str, DomainRule] = field(default_factory=dict)  # by domain
    versions: Counter[int] = field(default_factory=Counter)  # of the fingerprints, by tool id
    scans: dict[int, ScanRecord] = field(default_factory=dict)  # by tool id
    generation: int = 0
    next_tool: int = 1
    next_document: int = 1
    next_chunk: int = 1

    def documents_of(self, tool_id: int) -> list[DocumentRow]:
        """Return the documents of a tool, in the order they were written."""
        return [row for row in self.documents.values() if row.tool_id == tool_id]

    def remove_document(self, tool_id: int, uri: str) -> None:
        """Remove a document or a failure, and record the removal under the current generation."""
        self.failures.pop((tool_id, uri), None)
        if row := self.documents.pop((tool_id, uri), None):
            self.removals.append((tool_id, row.id, self.generation))

    def store_vectors(
        self,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        sentences: Mapping[bytes, SentenceVectors],
        usage: Mapping[str, EmbeddingUsage],
    ) -> None:
        """Store vectors of texts and of their sentences, and add the usage to the totals of each embedder."""
        self.vectors.update(vectors)
        self.sentences.update(sentences)
        for embedder, added in usage.items():
            self.usage[embedder] = self.usage.get(embedder, EmbeddingUsage()) + added
