"""A store, its sources and its files in, what a library and one of its tools hold, and how fresh that is, out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

from bunko.protocols import Source, Store
from bunko.records import EmbeddingUsage, StorageSize, Totals
from bunko.text.language import detect_language
from bunko.timing import now
from bunko.types import Problem, Tool

# More bars than this are no longer one look.
_MAX_BINS = 12

# Whether a source is there: an empty folder of which documents are known is as suspect as one that is gone.
SourceState = Literal["ok", "missing", "empty", "unreadable"]
ImportState = Literal["never", "unfinished", "done"]


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """What one tool holds, and whether its source is still there."""

    tool: Tool
    totals: Totals
    problems: list[Problem]
    storage: StorageSize
    derived_bytes: int
    source_state: SourceState
    rebuild_documents: int | None  # documents of a rebuild that has not ended; None where none was begun

    @property
    def bytes(self) -> int:
        """Return how much room it takes: its rows as `Room` counts them, and its derived files."""
        return self.storage.text + self.storage.index + self.storage.vectors + self.derived_bytes

    @property
    def import_state(self) -> ImportState:
        """Say whether an import of it ever came to its end."""
        if self.tool.imported_at:
            return "done"
        return "unfinished" if self.totals.documents else "never"


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """What a library holds."""

    database: Path
    generation: int
    bytes: int
    derived_bytes: int
    tools: list[ToolStatus]
    embedding_usage: dict[str, EmbeddingUsage]  # what imports had of each embedder


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """How a source differs from the index at this moment, in files."""

    checked_at: str
    new: int
    changed: int
    gone: int
    moved: int


@dataclass(frozen=True, slots=True)
class LengthBin:
    """How many chunks have a length in a range, both ends included."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class LengthDistribution:
    """How chunk lengths are spread, in characters; a percentile is the length of a chunk, never between two."""

    chunks: int
    minimum: int
    median: int
    p90: int
    maximum: int
    mean: float
    bins: list[LengthBin]


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """One document in the list, with the language that most of its beginning is in."""

    uri: str
    title: str
    chunks: int
    characters: int
    language: str


@dataclass(frozen=True, slots=True)
class ToolDetails:
    """All about one tool: what it holds, how fresh that is, and one page of its documents."""

    status: ToolStatus
    checked_at: str  # when its source was last looked at for an import
    changes: SourceChanges | None  # None where the source cannot be looked at
    chunk_lengths: LengthDistribution | None  # None where there is no chunk
    page: int  # counted from 1
    page_size: int
    documents: list[DocumentListing]

    @property
    def pages(self) -> int:
        """Return how many pages the list has; an empty one has one."""
        return max(1, -(-self.status.totals.documents // self.page_size))


def library_status(
    store: Store,
    tools: Sequence[Tool],
    rebuilds: Mapping[str, Tool],
    source_of: Callable[[Tool], Source],
    database: Path,
    index_folder: Path,
) -> LibraryStatus:
    """Return what each tool holds, and how much room it all takes.

    `halves` are the rebuilds that have not ended, by the names of their tools.
    """
    beside = (path for path in database.parent.glob("*") if path.name.startswith(database.name))
    with store.read_transaction():
        held = [_tool_status(store, tool, rebuilds.get(tool.name), source_of(tool), index_folder) for tool in tools]
        derived_bytes = _total_bytes(index_folder.glob("*.segment"))
        return LibraryStatus(
            database, store.generation(), _total_bytes(beside), derived_bytes, held, store.embedding_usage()
        )


def tool_details(
    store: Store,
    tool: Tool,
    rebuild: Tool | None,
    source: Source,
    index_folder: Path,
    *,
    page: int = 1,
    page_size: int = 20,
) -> ToolDetails:
    """Return all about one tool; its source is looked at, and nothing is imported."""
    with store.read_transaction():
        held = _tool_status(store, tool, rebuild, source, index_folder)
        lengths = length_distribution(store.chunk_lengths(tool.id))
        listed = store.list_documents(tool.id, skip=(page - 1) * page_size, limit=page_size)
        known = store.fingerprints(tool.id)
    items = [
        DocumentListing(one.uri, one.title, one.chunks, one.characters, detect_language(one.beginning))
        for one in listed
    ]
    changes = None
    if held.source_state == "ok":
        scan = source.scan(known)
        failed = {problem.uri for problem in held.problems}
        changes = SourceChanges(
            now(),
            len(scan.added) - len(scan.moved),
            len(scan.updated),
            len(set(scan.deleted) - set(scan.moved.values()) - failed),
            len(scan.moved),
        )
        held = replace(held, problems=[*held.problems, *scan.problems])
    return ToolDetails(held, tool.checked_at, changes, lengths, page, page_size, items)


def length_distribution(lengths: Sequence[tuple[int, int]]) -> LengthDistribution | None:
    """Return how lengths are spread, given how many there are of each, the shortest first."""
    total = sum(number for _, number in lengths)
    if not total:
        return None

    def at(percent: int) -> int:
        upto = accumulate(number for _, number in lengths)
        return next(
            length for (length, _), before in zip(lengths, upto, strict=True) if before * 100 >= total * percent
        )

    least, most = lengths[0][0], lengths[-1][0]
    step = _bin_width(least, most)
    counts = dict.fromkeys(range(least // step, most // step + 1), 0)
    for length, number in lengths:
        counts[length // step] += number
    bins = [LengthBin(place * step, place * step + step - 1, count) for place, count in counts.items()]
    mean = sum(length * number for length, number in lengths) / total
    return LengthDistribution(total, least, at(50), at(90), most, round(mean, 1), bins)


def _bin_width(minimum: int, maximum: int) -> int:
    """Return the smallest round number that cuts a range into few enough pieces."""
    unit = 1
    while True:
        for step in (unit, 2 * unit, 5 * unit):
            if maximum // step - minimum // step < _MAX_BINS:
                return step
        unit *= 10


def _tool_status(store: Store, tool: Tool, rebuild: Tool | None, source: Source, index_folder: Path) -> ToolStatus:
    # Named after its library and its tool: another library may keep its files in the same folder.
    files = index_folder.glob(f"{store.id[:12]}-tool{tool.id}-*.segment")
    room = store.storage_size(tool.id)
    return ToolStatus(
        tool,
        store.totals(tool.id),
        store.failures(tool.id),
        room,
        _total_bytes(files),
        _source_state(tool, source, store.uris(tool.id, limit=1)),
        None if rebuild is None else store.totals(rebuild.id).documents,
    )


def _source_state(tool: Tool, source: Source, known_uris: Iterable[str]) -> SourceState:
    if not source.has_vanished(known_uris):
        return "ok"
    if not os.access(tool.source, os.F_OK):
        return "missing"
    wanted = os.R_OK | os.X_OK if Path(tool.source).is_dir() else os.R_OK
    return "empty" if os.access(tool.source, wanted) else "unreadable"


def _total_bytes(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):  # SQLite removes its own files when the last reader goes
            total += path.stat().st_size if path.is_file() else 0
    return total
