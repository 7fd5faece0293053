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
from bunko.records import Room, Spent, Totals
from bunko.text.language import language
from bunko.timing import now
from bunko.types import Problem, Tool

# More bars than this are no longer one look.
_MOST_BINS = 12

# Whether a source is there: an empty folder of which documents are known is as suspect as one that is gone.
SourceState = Literal["ok", "missing", "empty", "unreadable"]
ImportState = Literal["never", "unfinished", "done"]


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """What one tool holds, and whether its source is still there."""

    tool: Tool
    totals: Totals
    problems: list[Problem]
    room: Room
    derived_bytes: int
    source_state: SourceState
    rebuilt: int | None  # documents of a rebuild that has not ended; None where none was begun

    @property
    def bytes(self) -> int:
        """Return how much room it takes: its rows as `Room` counts them, and its derived files."""
        return self.room.text + self.room.index + self.room.vectors + self.derived_bytes

    @property
    def import_state(self) -> ImportState:
        """Say whether an import of it ever came to its end."""
        if self.tool.imported_at:
            return "done"
        return "unfinished" if self.totals.documents else "never"


@dataclass(frozen=True, slots=True)
class Status:
    """What a library holds."""

    database: Path
    generation: int
    bytes: int
    derived_bytes: int
    tools: list[ToolStatus]
    spent: dict[str, Spent]  # what imports had of each embedder


@dataclass(frozen=True, slots=True)
class Changes:
    """How a source differs from the index at this moment, in files."""

    at: str
    new: int
    changed: int
    gone: int
    moved: int


@dataclass(frozen=True, slots=True)
class Bin:
    """How many chunks have a length in a range, both ends included."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How chunk lengths are spread, in characters; a percentile is the length of a chunk, never between two."""

    chunks: int
    least: int
    median: int
    p90: int
    most: int
    mean: float
    bins: list[Bin]


@dataclass(frozen=True, slots=True)
class Item:
    """One document in the list, with the language that most of its beginning is in."""

    uri: str
    title: str
    chunks: int
    characters: int
    language: str


@dataclass(frozen=True, slots=True)
class Details:
    """All about one tool: what it holds, how fresh that is, and one page of its documents."""

    held: ToolStatus
    checked_at: str  # when its source was last looked at for an import
    changes: Changes | None  # None where the source cannot be looked at
    lengths: Spread | None  # None where there is no chunk
    page: int  # counted from 1
    page_size: int
    documents: list[Item]

    @property
    def pages(self) -> int:
        """Return how many pages the list has; an empty one has one."""
        return max(1, -(-self.held.totals.documents // self.page_size))


def status(
    store: Store,
    tools: Sequence[Tool],
    halves: Mapping[str, Tool],
    source: Callable[[Tool], Source],
    database: Path,
    derived: Path,
) -> Status:
    """Return what each tool holds, and how much room it all takes.

    `halves` are the rebuilds that have not ended, by the names of their tools.
    """
    beside = (path for path in database.parent.glob("*") if path.name.startswith(database.name))
    with store.reading():
        held = [_held(store, tool, halves.get(tool.name), source(tool), derived) for tool in tools]
        derived_bytes = _bytes(derived.glob("*.segment"))
        return Status(database, store.generation(), _bytes(beside), derived_bytes, held, store.spent())


def details(
    store: Store,
    tool: Tool,
    half: Tool | None,
    source: Source,
    derived: Path,
    *,
    page: int = 1,
    page_size: int = 20,
) -> Details:
    """Return all about one tool; its source is looked at, and nothing is imported."""
    with store.reading():
        held = _held(store, tool, half, source, derived)
        lengths = spread(store.lengths(tool.id))
        listed = store.listed(tool.id, skip=(page - 1) * page_size, limit=page_size)
        known = store.known(tool.id)
    items = [Item(one.uri, one.title, one.chunks, one.characters, language(one.beginning)) for one in listed]
    changes = None
    if held.source_state == "ok":
        scan = source.scan(known)
        failed = {problem.uri for problem in held.problems}
        changes = Changes(
            now(),
            len(scan.added) - len(scan.moved),
            len(scan.updated),
            len(set(scan.deleted) - set(scan.moved.values()) - failed),
            len(scan.moved),
        )
        held = replace(held, problems=[*held.problems, *scan.problems])
    return Details(held, tool.checked_at, changes, lengths, page, page_size, items)


def spread(lengths: Sequence[tuple[int, int]]) -> Spread | None:
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
    step = _step(least, most)
    counts = dict.fromkeys(range(least // step, most // step + 1), 0)
    for length, number in lengths:
        counts[length // step] += number
    bins = [Bin(place * step, place * step + step - 1, count) for place, count in counts.items()]
    mean = sum(length * number for length, number in lengths) / total
    return Spread(total, least, at(50), at(90), most, round(mean, 1), bins)


def _step(least: int, most: int) -> int:
    """Return the smallest round number that cuts a range into few enough pieces."""
    unit = 1
    while True:
        for step in (unit, 2 * unit, 5 * unit):
            if most // step - least // step < _MOST_BINS:
                return step
        unit *= 10


def _held(store: Store, tool: Tool, half: Tool | None, source: Source, derived: Path) -> ToolStatus:
    # Named after its library and its tool: another library may keep its files in the same folder.
    files = derived.glob(f"{store.id[:12]}-tool{tool.id}-*.segment")
    room = store.room(tool.id)
    return ToolStatus(
        tool,
        store.totals(tool.id),
        store.failures(tool.id),
        room,
        _bytes(files),
        _source_state(tool, source, store.uris(tool.id, limit=1)),
        None if half is None else store.totals(half.id).documents,
    )


def _source_state(tool: Tool, source: Source, some: Iterable[str]) -> SourceState:
    if not source.lost(some):
        return "ok"
    if not os.access(tool.source, os.F_OK):
        return "missing"
    wanted = os.R_OK | os.X_OK if Path(tool.source).is_dir() else os.R_OK
    return "empty" if os.access(tool.source, wanted) else "unreadable"


def _bytes(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):  # SQLite removes its own files when the last reader goes
            total += path.stat().st_size if path.is_file() else 0
    return total
