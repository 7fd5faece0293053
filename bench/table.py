"""Measurements in, Markdown tables out, and a document whose marked places hold them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Check(NamedTuple):
    """One target: what was asked for and what was measured."""

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
    """What a benchmark found: tables by the name of their place in the document, targets, curves for the plot."""

    tables: dict[str, Table] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    curves: dict[str, dict[int, float]] = field(default_factory=dict)


def check(what: str, value: float, limit: float, unit: str, *, note: str = "") -> Check:
    """Compare a value with the most it may be."""
    return Check(what, f"{number(value)} {unit}{note}", f"≤ {number(limit)} {unit}", value <= limit)


def checks(found: Sequence[Check]) -> Table:
    """Return the targets as a table."""
    rows = [(one.what, one.measured, one.target, "yes" if one.met else "**no**") for one in found]
    return Table(("what", "measured", "target", "met"), rows)


def number(value: float) -> str:
    """Return three digits that count, and no more."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text and value == int(value) else text


def markdown(table: Table) -> str:
    """Return a table whose columns line up in the source too."""
    lines = [[str(cell) for cell in line] for line in (table.head, *table.rows)]
    widths = [max(_width(line[at]) for line in lines) for at in range(len(table.head))]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(f"| {' | '.join(_padded(line, widths))} |" for line in (lines[0], ruler, *lines[1:]))


def put(document: str, name: str, body: str) -> str:
    """Return the document with what stands between the marks of a name replaced."""
    marked = re.compile(rf"(<!-- bench:{re.escape(name)} -->\n).*?(<!-- /bench -->)", re.DOTALL)
    if not marked.search(document):
        raise SystemExit(f"The document has no place marked bench:{name}")
    return marked.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", document)


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(line, widths, strict=True)
    blanks = [" " * (width - _width(cell)) for cell, width in others]
    cells = [blank + cell for blank, (cell, _) in zip(blanks, others, strict=True)]
    return [first[0] + " " * (first[1] - _width(first[0])), *cells]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
