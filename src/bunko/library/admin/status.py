"""Report what a library and its tools hold, and whether their sources have changed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

from bunko.errors import SourceError
from bunko.ingest.changes import find_changes
from bunko.protocols import Index, Source, Store
from bunko.readers import unavailable_readers
from bunko.runtime.timing import now
from bunko.sources import plugin_errors
from bunko.text.language import detect_language
from bunko.types import Problem, Tool
from bunko.types.records import EmbeddingUsage, IndexState, StorageSize, Totals, VectorRoom

# More bars than this are hard to read at a glance.
_MAX_BINS = 12
_MAX_SAMPLE = 1000  # documents whose languages are counted

# An empty folder that had documents is as suspicious as a missing one.
SourceState = Literal["ok", "missing", "empty", "unreadable", "elsewhere"]  # elsewhere: another machine imports it
ImportState = Literal["never", "unfinished", "done"]


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """The contents of one tool, and the state of its source."""

    tool: Tool
    totals: Totals
    problems: list[Problem]
    storage: StorageSize
    derived_bytes: int
    source_state: SourceState
    rebuild_documents: int | None  # documents of an unfinished rebuild; None if there is none
    index: IndexState

    @property
    def bytes(self) -> int:
        """Return its size on disk: its rows as counted by `StorageSize`, and its derived files."""
        return self.storage.text + self.storage.index + self.storage.vectors + self.derived_bytes

    @property
    def import_state(self) -> ImportState:
        """Return whether an import of it has ever finished."""
        if self.tool.imported_at:
            return "done"
        return "unfinished" if self.totals.documents else "never"


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """The contents of a library."""

    location: str
    generation: int
    bytes: int
    derived_bytes: int
    tools: list[ToolStatus]
    embedding_usage: dict[str, EmbeddingUsage]  # what imports used of each embedder
    unused_vectors: VectorRoom  # that no chunk has: the next import uses or deletes them
    index_kind: str
    index_location: str  # of its server or files; empty if it is part of the library


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """How a source differs from the index at `checked_at`, in files."""

    checked_at: str
    new: int
    changed: int
    gone: int
    moved: int


@dataclass(frozen=True, slots=True)
class LengthBin:
    """The number of chunks with a length in a range, both ends included."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class LengthDistribution:
    """The distribution of chunk lengths in characters; percentiles are lengths of real chunks, not interpolated."""

    chunks: int
    minimum: int
    median: int
    p90: int
    maximum: int
    mean: float
    bins: list[LengthBin]


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """One document in the list, with the language of its beginning."""

    uri: str
    title: str
    chunks: int
    characters: int
    language: str


@dataclass(frozen=True, slots=True)
class ToolDetails:
    """The details of one tool: its contents, the changes of its source, and one page of its documents."""

    status: ToolStatus
    checked_at: str  # when an import last checked its source
    changes: SourceChanges | None  # None if the source cannot be read
    chunk_lengths: LengthDistribution | None  # None if there are no chunks
    page: int  # counted from 1
    page_size: int
    documents: list[DocumentListing]
    left_out: list[Problem]  # files that no import reads, such as empty ones; the problems of the status have them too
    languages: Mapping[Literal["ja", "en", ""], int]  # documents of a sample by the language of their beginning

    @property
    def pages(self) -> int:
        """Return the number of pages; an empty list has one."""
        return max(1, -(-self.status.totals.documents // self.page_size))


def library_status(
    store: Store,
    tools: Sequence[Tool],
    rebuilds: Mapping[str, Tool],
    source_of: Callable[[Tool], Source],
    index: Index,
) -> LibraryStatus:
    """Return the contents of each tool, and the size of the library.

    `rebuilds` are the unfinished rebuilds by the names of their tools.
    """
    index_states = {tool.id: index.state(tool.id) for tool in tools}  # a server may take a moment
    with store.read_transaction():
        statuses = [
            _tool_status(store, tool, rebuilds.get(tool.name), source_of(tool), index, index_states[tool.id])
            for tool in tools
        ]
        derived_bytes = index.storage_bytes()
        return LibraryStatus(
            store.location,
            store.generation(),
            store.size(),
            derived_bytes,
            statuses,
            store.vectors.usage(),
            store.vectors.unused(),
            index.kind,
            index.location,
        )


def tool_details(
    store: Store,
    tool: Tool,
    rebuild: Tool | None,
    source: Source,
    index: Index,
    *,
    page: int = 1,
    page_size: int = 20,
) -> ToolDetails:
    """Return the details of one tool; its source is scanned, nothing is imported."""
    index_state = index.state(tool.id)
    with store.read_transaction():
        status = _tool_status(store, tool, rebuild, source, index, index_state)
        lengths = length_distribution(store.stats.chunk_lengths(tool.id))
        languages = Counter(map(detect_language, store.stats.beginnings(tool.id, limit=_MAX_SAMPLE)))
        summaries = store.stats.list_documents(tool.id, skip=(page - 1) * page_size, limit=page_size)
    documents = [
        DocumentListing(
            summary.uri, summary.title, summary.chunks, summary.characters, detect_language(summary.beginning)
        )
        for summary in summaries
    ]
    changes, left_out = None, []
    if status.source_state == "ok":
        scan = find_changes(store, tool, source)
        failed = {problem.uri for problem in status.problems}
        changes = SourceChanges(
            now(),
            len(scan.added) - len(scan.moved),
            len(scan.updated),
            len(set(scan.deleted) - set(scan.moved.values()) - failed),
            len(scan.moved),
        )
        left_out = scan.problems
        status = replace(status, problems=list(dict.fromkeys([*status.problems, *left_out])))
    return ToolDetails(status, tool.checked_at, changes, lengths, page, page_size, documents, left_out, languages)


def length_distribution(lengths: Sequence[tuple[int, int]]) -> LengthDistribution | None:
    """Return the distribution of (length, count) pairs, which are sorted by length."""
    total = sum(count for _, count in lengths)
    if not total:
        return None
    minimum, maximum = lengths[0][0], lengths[-1][0]
    width = _bin_width(minimum, maximum)
    bin_counts = dict.fromkeys(range(minimum // width, maximum // width + 1), 0)
    for length, count in lengths:
        bin_counts[length // width] += count
    bins = [LengthBin(index * width, index * width + width - 1, count) for index, count in bin_counts.items()]
    mean = sum(length * count for length, count in lengths) / total
    median, p90 = _percentile(lengths, total, 50), _percentile(lengths, total, 90)
    return LengthDistribution(total, minimum, median, p90, maximum, round(mean, 1), bins)


def _percentile(lengths: Sequence[tuple[int, int]], total: int, percent: int) -> int:
    """Return the smallest length that at least `percent` of the chunks do not exceed."""
    cumulative = accumulate(count for _, count in lengths)
    return next(
        length for (length, _), count in zip(lengths, cumulative, strict=True) if count * 100 >= total * percent
    )


def _bin_width(minimum: int, maximum: int) -> int:
    """Return the smallest round width that divides a range into at most `_MAX_BINS` bins."""
    unit = 1
    while True:
        for width in (unit, 2 * unit, 5 * unit):
            if maximum // width - minimum // width < _MAX_BINS:
                return width
        unit *= 10


def _tool_status(
    store: Store, tool: Tool, rebuild: Tool | None, source: Source, index: Index, index_state: IndexState
) -> ToolStatus:
    storage = store.stats.storage_size(tool.id)
    return ToolStatus(
        tool,
        store.stats.totals(tool.id),
        [*store.documents.failures(tool.id), *_unreadable_files(store, tool, source)],
        storage,
        index.storage_bytes(tool.id),
        source_state(store, tool, source),
        None if rebuild is None else store.stats.totals(rebuild.id).documents,
        index_state,
    )


def _unreadable_files(store: Store, tool: Tool, source: Source) -> list[Problem]:
    """Return the problem of each format whose package is missing; only then is the source scanned."""
    if not unavailable_readers() or source_state(store, tool, source) != "ok":
        return []
    return [problem for problem in find_changes(store, tool, source).problems if problem.package]


def source_state(store: Store, tool: Tool, source: Source) -> SourceState:
    """Return whether the folder or file of a tool, which had documents, is there."""
    if not store.tools.is_local(tool.id):
        return "elsewhere"
    try:
        with plugin_errors(tool.kind):
            if not source.has_vanished(store.documents.uris(tool.id, limit=1)):
                return "ok"
    except SourceError:
        return "unreadable"
    if not os.access(tool.source, os.F_OK):
        return "missing"
    required = os.R_OK | os.X_OK if Path(tool.source).is_dir() else os.R_OK
    return "empty" if os.access(tool.source, required) else "unreadable"
