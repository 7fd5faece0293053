"""Text with tables comes in, a chunk for each row with its header and neighbouring rows goes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bunko.chunkers import merge
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.split import split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text


class Table(NamedTuple):
    """A table: where it begins, where the rows under its header begin, and where it ends."""

    start: int
    rows_start: int
    end: int


# A line of dashes, colons and bars below the header is what makes a Markdown table.
_HEADER_SEPARATOR = re.compile(r"\n[ \t]*+[-:|][-:| \t]*+(?=\n|\Z)")
_TABLE_ROWS = re.compile(r"(?:\n(?=[^\n|]*+\|)[^\n]*+)*+")
# Two spaces after a full stop are a typist's habit, not a column.
_COLUMN_GAP = re.compile(r"\t|(?<![.!?:;,。、])[ \u3000]{2,}")
_SHORT_HEADER_CHARS = 200  # characters
MIN_COLUMNS = 3  # two could be a definition list or an aligned comment


def markdown_tables(lines: str, start: int, end: int) -> Iterator[Table]:
    """Yield the Markdown tables of a range, in order."""
    floor = start
    for separator in _HEADER_SEPARATOR.finditer(lines, start, end):
        at = separator.start()
        first = max(floor, lines.rfind("\n", floor, at) + 1)
        bars = "|" in separator[0] and "-" in separator[0]
        if at < floor or not bars or "|" not in lines[first:at]:
            continue
        rows = _TABLE_ROWS.match(lines, separator.end(), end)
        floor = rows.end() if rows else separator.end()
        yield Table(first, min(separator.end() + 1, floor), floor)


def count_columns(line: str) -> int:
    """Return how many columns tabs or several spaces make in a line."""
    if ("\t" not in line and "  " not in line and "\u3000" not in line) or line.isspace():
        return 1
    return len(_COLUMN_GAP.split(line.strip(" \u3000")))


def column_tables(lines: str, start: int, end: int) -> Iterator[Table]:
    """Yield the runs of lines in columns; the first line is the header."""
    first, rows, last, count = start, start, start, 0
    position = start
    for line in lines[start:end].split("\n"):
        if count_columns(line) >= MIN_COLUMNS:
            if count == 0:
                first = position
            elif count == 1:
                rows = position
            last = position + len(line)
            count += 1
        else:
            if count > 1:
                yield Table(first, rows, last)
            count = 0
        position += len(line) + 1
    if count > 1:
        yield Table(first, rows, last)


def find_tables(lines: str, start: int, end: int) -> Iterator[Table]:
    """Yield all tables of a range, in order."""
    for table in markdown_tables(lines, start, end):
        yield from column_tables(lines, start, max(start, table.start - 1))
        yield table
        start = min(table.end + 1, end)
    yield from column_tables(lines, start, end)


class Tables:
    """Row by row, with the header in front and neighbouring rows around; other text by paragraphs."""

    def __init__(self, row_context: int, max_chars: int, min_chars: int) -> None:
        self._row_context = max(0, row_context)
        self._max_chars = max_chars
        self._paragraphs = Paragraphs(max_chars, min_chars)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order; those of rows overlap by the neighbouring rows."""
        lines = unify_line_ends(text.text)
        found: list[ChunkRange] = []
        start = text.body_start
        for table in find_tables(lines, start, len(lines)):
            found += self._paragraphs.chunk_ranges(lines, start, table.start)
            found += self._row_ranges(lines, table)
            start = table.end
        found += self._paragraphs.chunk_ranges(lines, start, len(lines))
        return merge.build_chunks(text.text, lines, found)

    def _row_ranges(self, lines: str, table: Table) -> Iterator[ChunkRange]:
        rows = list(_table_rows(lines, table))
        header = (table.start, table.rows_start)
        size = table.rows_start - table.start
        # A giant header above many short rows would be copied into a multiple of the file.
        worth = size <= max(_SHORT_HEADER_CHARS, 10 * (table.end - table.rows_start) // max(1, len(rows)))
        if rows and rows[0][1] - table.start <= self._max_chars:
            rows[0] = (table.start, rows[0][1])  # the header stands in the source right above it
        else:
            yield from self._split_ranges(lines, *header)
        for number, row in enumerate(rows):
            first, last = self._context_rows(rows, number)
            start = rows[first][0]
            carried = header if start > table.start and worth and size <= self._max_chars else (0, 0)
            if row[1] - row[0] > self._max_chars:
                yield from self._split_ranges(lines, *row, table_header=carried)
            else:
                yield ChunkRange(start, rows[last][1], table_header=carried)

    def _context_rows(self, rows: list[tuple[int, int]], number: int) -> tuple[int, int]:
        """Return the first and the last row of a chunk: as many neighbours as wanted, and as fit."""
        first = last = number
        for distance in range(1, min(self._row_context, len(rows)) + 1):
            wider = max(0, number - distance), min(len(rows) - 1, number + distance)
            if rows[wider[1]][1] - rows[wider[0]][0] > self._max_chars:
                break
            first, last = wider
        return first, last

    def _split_ranges(
        self, lines: str, start: int, end: int, table_header: tuple[int, int] = (0, 0)
    ) -> Iterator[ChunkRange]:
        for part in split_range(lines, start, end, self._max_chars):
            yield ChunkRange(part.start, part.end, table_header=table_header)


def _table_rows(lines: str, table: Table) -> Iterator[tuple[int, int]]:
    position = table.rows_start
    for line in lines[table.rows_start : table.end].split("\n") if table.rows_start < table.end else ():
        yield position, position + len(line.rstrip())
        position += len(line) + 1


def build(row_context: int = 1, max_chars: int = 3000, min_chars: int = 50) -> Tables:
    """Cut tables row by row, with header and neighbouring rows."""
    return Tables(row_context, max_chars, min_chars)
