"""Split tables into chunks of one row with its header and neighbouring rows."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from bunko.chunkers import split
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.split import ChunkRange, split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text


class Table(NamedTuple):
    """The start of a table, the start of the rows under its header, and its end."""

    start: int
    rows_start: int
    end: int


# A line of dashes, colons and bars below the header is what makes a Markdown table.
_HEADER_SEPARATOR = re.compile(r"\n[ \t]*+[-:|][-:| \t]*+(?=\n|\Z)")
_LINE_WITHOUT_BAR = re.compile(r"\n[^\n|]*+(?=\n|\Z)")
# Two spaces after punctuation are a typing habit, not a column.
_COLUMN_GAP = re.compile(r"\t|(?<![.!?:;,。、])[ \u3000]{2,}")
_SHORT_HEADER_CHARS = 200  # characters
MIN_COLUMNS = 3  # two could be a definition list or an aligned comment


def markdown_tables(lines: str, start: int, end: int) -> Iterator[Table]:
    """Yield the Markdown tables of a range, in order."""
    previous_end = start
    for separator in _HEADER_SEPARATOR.finditer(lines, start, end):
        separator_start = separator.start()
        header_start = max(previous_end, lines.rfind("\n", previous_end, separator_start) + 1)
        is_separator = "|" in separator[0] and "-" in separator[0]
        if separator_start < previous_end or not is_separator or "|" not in lines[header_start:separator_start]:
            continue
        next_line = _LINE_WITHOUT_BAR.search(lines, separator.end(), end)
        previous_end = next_line.start() if next_line else end
        yield Table(header_start, min(separator.end() + 1, previous_end), previous_end)


def count_columns(line: str) -> int:
    """Return the number of columns that tabs or runs of spaces make in a line."""
    if ("\t" not in line and "  " not in line and "\u3000" not in line) or line.isspace():
        return 1
    return len(_COLUMN_GAP.split(line.strip(" \u3000")))


def column_tables(lines: str, start: int, end: int) -> Iterator[Table]:
    """Yield the tables made of consecutive lines in columns; the first line is the header."""
    first, rows, last, count = start, start, start, 0
    for position, line in _numbered_lines(lines, start, end):
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
    """Makes a chunk per row, with the header and neighbouring rows; other text is split at paragraphs."""

    def __init__(self, row_context: int, max_chars: int, min_chars: int) -> None:
        self._row_context = max(0, row_context)
        self._max_chars = max_chars
        self._paragraphs = Paragraphs(max_chars, min_chars)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order; chunks of rows overlap by the neighbouring rows."""
        lines = unify_line_ends(text.text)
        ranges = split.join_excess_ranges(self._ranges(lines, text.body_start), self._max_chars)
        return split.build_chunks(text.text, lines, ranges)

    def _ranges(self, lines: str, start: int) -> Iterator[ChunkRange]:
        for table in find_tables(lines, start, len(lines)):
            yield from self._paragraphs.chunk_ranges(lines, start, table.start)
            yield from self._row_ranges(lines, table)
            start = table.end
        yield from self._paragraphs.chunk_ranges(lines, start, len(lines))

    def _row_ranges(self, lines: str, table: Table) -> Iterator[ChunkRange]:
        rows = _Rows(lines, table)
        header = (table.start, table.rows_start)
        header_size = table.rows_start - table.start
        # Repeating a giant header for many short rows would multiply the size of the file, and one that takes most of
        # the limit would leave no space for the rows.
        if header_size > min(
            self._max_chars // 2,
            max(_SHORT_HEADER_CHARS, 10 * (table.end - table.rows_start) // max(1, len(rows))),
        ):
            header, header_size = (0, 0), 0
        if len(rows) and rows.end(0) - table.start <= self._max_chars:
            rows.starts[0] = table.start  # the header is right above it in the source
        else:
            yield from self._split_ranges(lines, table.start, table.rows_start)
        for index in range(len(rows)):
            first, last = self._context_rows(rows, index, header_size)
            start, end = rows.starts[first], rows.end(last)
            table_header = header if start > table.start else (0, 0)
            if end - start + table_header[1] - table_header[0] > self._max_chars:
                yield from self._split_ranges(lines, rows.starts[index], rows.end(index), table_header=table_header)
            else:
                yield ChunkRange(start, end, table_header=table_header)

    def _context_rows(self, rows: _Rows, index: int, header_size: int) -> tuple[int, int]:
        """Return the first and the last row of a chunk: as many neighbours as `row_context` allows and as fit."""
        first = last = index
        for distance in range(1, min(self._row_context, len(rows)) + 1):
            candidate = max(0, index - distance), min(len(rows) - 1, index + distance)
            repeated = header_size if candidate[0] else 0  # the first row holds the header itself
            if repeated + rows.end(candidate[1]) - rows.starts[candidate[0]] > self._max_chars:
                break
            first, last = candidate
        return first, last

    def _split_ranges(
        self, lines: str, start: int, end: int, table_header: tuple[int, int] = (0, 0)
    ) -> Iterator[ChunkRange]:
        for part in split_range(lines, start, end, self._max_chars - (table_header[1] - table_header[0])):
            yield ChunkRange(part.start, part.end, table_header=table_header)


class _Rows:
    """The rows of a table; only their starts are in memory, since a table may have millions."""

    def __init__(self, lines: str, table: Table) -> None:
        self._lines, self._table_end = lines, table.end
        self.starts = array("Q")
        if table.rows_start < table.end:
            self.starts.extend(row_start for row_start, _ in _numbered_lines(lines, table.rows_start, table.end))

    def __len__(self) -> int:
        return len(self.starts)

    def end(self, index: int) -> int:
        """Return the end of a row without trailing blanks."""
        start = self.starts[index]
        end = self.starts[index + 1] - 1 if index + 1 < len(self.starts) else self._table_end
        return start + len(self._lines[start:end].rstrip())


def _numbered_lines(lines: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each line of a range."""
    while True:
        line_end = lines.find("\n", start, end)
        if line_end < 0:
            yield start, lines[start:end]
            return
        yield start, lines[start:line_end]
        start = line_end + 1


def build(row_context: int = 1, max_chars: int = 3000, min_chars: int = 50) -> Tables:
    """Split tables by rows, with header and neighbouring rows."""
    return Tables(row_context, max_chars, min_chars)
