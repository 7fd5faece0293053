"""A store and its files in, what a library holds out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bunko.protocols import Store, Totals
from bunko.types import Problem, Tool


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """What one tool holds and how fresh it is."""

    tool: Tool
    totals: Totals
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class Status:
    """What a library holds."""

    database: Path
    generation: int
    bytes: int
    derived_bytes: int
    tools: list[ToolStatus]


def status(store: Store, tools: Sequence[Tool], database: Path, derived: Path) -> Status:
    """Return what each tool holds, and how much room it all takes."""
    beside = (path for path in database.parent.glob("*") if path.name.startswith(database.name))
    held = [ToolStatus(tool, store.totals(tool.id), store.failures(tool.id)) for tool in tools]
    return Status(database, store.generation(), _bytes(beside), _bytes(derived.glob("*.segment")), held)


def _bytes(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):  # SQLite removes its own files when the last reader goes
            total += path.stat().st_size if path.is_file() else 0
    return total
