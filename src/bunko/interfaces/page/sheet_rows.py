"""The rows of a sheet that a search has found, with the names of their columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bunko.text.readable import readable_markdown
from bunko.text.snippets import SnippetTerms, highlight_ranges

if TYPE_CHECKING:
    from bunko.search.passages import Passage
    from bunko.types import Hit
    from bunko.types.records import StoredDocument

_MAX_ROWS, _MAX_COLUMNS, _MAX_CELL_CHARS = 3, 6, 120
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[|:\- ]*-[|:\- ]*")


@dataclass(frozen=True, slots=True)
class SheetRows:
    """Some rows of a sheet; the cells below a column that is not shown are left out."""

    header: list[str]
    rows: list[list[str]]


def find_sheet_rows(
    passage: Passage, terms: SnippetTerms, find_document: Callable[[Hit], StoredDocument | None]
) -> SheetRows | None:
    """Return the rows of a passage with most of the terms, in their order; None if it is no part of a sheet."""
    header: list[str] = []
    rows: list[list[str]] = []
    delimiter = _DELIMITERS.get(PurePosixPath(passage.hit.uri).suffix.lower())
    if delimiter:
        document = find_document(passage.hit)
        first_line = document.text.lstrip().partition("\n")[0] if document else ""
        header = next(_read_csv([first_line], delimiter), [])
        rows = [row for row in _read_csv(passage.text.splitlines(), delimiter) if row and row != header]
    elif "!" in passage.place:
        header, rows = _read_table(passage.text)
    if len(header) < 2 or not rows:
        return None
    marks = [[len(highlight_ranges(cell, terms)) for cell in row] for row in rows]
    best = sorted(sorted(range(len(rows)), key=lambda index: -sum(marks[index]))[:_MAX_ROWS])
    found = [
        column for column in range(len(header)) if any(column < len(marks[row]) and marks[row][column] for row in best)
    ]
    columns = sorted(list(dict.fromkeys([0, *found, *range(len(header))]))[:_MAX_COLUMNS])
    return SheetRows(_select(header, columns), [_select(rows[row], columns) for row in best])


def _select(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    texts = [cells[column] if column < len(cells) else "" for column in columns]
    return [text if len(text) <= _MAX_CELL_CHARS else f"{text[:_MAX_CELL_CHARS]}…" for text in texts]


def _read_csv(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, delimiter=delimiter)
    except csv.Error:
        return


def _read_table(text: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the first table of a text in Markdown."""
    lines = [line.strip() for line in text.splitlines()]
    for index, line in enumerate(lines[1:], 1):
        if "|" in line and _RULE.fullmatch(line) and "|" in lines[index - 1]:
            rows = [row for row in lines[index + 1 :] if row.startswith("|")]
            return _cells(lines[index - 1]), [_cells(row) for row in rows]
    return [], []


def _cells(line: str) -> list[str]:
    return [readable_markdown(cell.strip()).replace("\n", " ") for cell in _BAR.split(line.strip().strip("|"))]
