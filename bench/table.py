"""Format measurements as Markdown tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Check(NamedTuple):
    """A target, the measured value, and whether it was met."""

    what: str
    measured: str
    target: str
    met: bool


@dataclass(slots=True)
class Table:
    """Rows under a head; the first column is text, the others are numbers."""

    head: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """The result of a benchmark: tables by section of the document, checks, and curves for the plots."""

    tables: dict[str, Table] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    curves: dict[str, dict[int, float]] = field(default_factory=dict)


def check(what: str, value: float, limit: float, unit: str, *, note: str = "") -> Check:
    """Compare a value with its upper limit."""
    return Check(what, f"{number(value)} {unit}{note}", f"≤ {number(limit)} {unit}", value <= limit)


def check_table(results: Sequence[Check]) -> Table:
    """Return the checks as a table."""
    table = Table(("what", "measured", "target", "met"))
    for result in results:
        table.rows.append((result.what, result.measured, result.target, "yes" if result.met else "**no**"))
    return table


def number(value: float) -> str:
    """Return a number with about three significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text and value == int(value) else text


def markdown(table: Table) -> str:
    """Return a Markdown table whose columns are aligned in the source too."""
    lines = [[str(cell) for cell in line] for line in (table.head, *table.rows)]
    widths = [max(_display_width(line[column]) for line in lines) for column in range(len(table.head))]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(f"| {' | '.join(_pad_cells(line, widths))} |" for line in (lines[0], ruler, *lines[1:]))


def _pad_cells(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *other_cells = zip(line, widths, strict=True)
    blanks = [" " * (width - _display_width(cell)) for cell, width in other_cells]
    cells = [blank + cell for blank, (cell, _) in zip(blanks, other_cells, strict=True)]
    return [first[0] + " " * (first[1] - _display_width(first[0])), *cells]


def _display_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
