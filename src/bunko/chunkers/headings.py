"""Split text into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bunko.chunkers import split
from bunko.chunkers.split import Block, ChunkRange, split_range
from bunko.chunkers.tables import markdown_tables
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.types import Chunk, Text

_NON_BLANK = re.compile(r"\S")


class _Section(NamedTuple):
    """The text under a heading, with the headings without text above it."""

    start: int
    end: int
    path: tuple[Heading, ...]  # from the outermost heading to its own
    first_level: int  # of its first heading; 0: it begins with text
    is_bare: bool = False  # headings alone, too many to be kept with the text below them


class Headings:
    """Makes one chunk per section, with its heading; headings of other levels do not split."""

    def __init__(self, max_chars: int, min_chars: int, levels: Sequence[int], overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._min_length = split.min_length_pattern(min_chars)
        self._levels = frozenset(levels)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        lines = unify_line_ends(text.text)
        ranges = self._section_ranges(lines, self._sections(lines, text), text.media_type)
        ranges = split.join_excess_ranges(self._join_small_sections(lines, ranges), self._max_chars)
        return split.build_chunks(text.text, lines, ranges)

    def _sections(self, lines: str, text: Text) -> Iterator[_Section]:
        path: list[Heading] = []
        start, level = text.body_start, 0
        row_start = row_end = -1  # of the last headings that have no text between them
        for heading in scan_outline(lines, text.body_start, media_type=text.media_type):
            if not isinstance(heading, Heading):
                continue
            if row_end < 0 or _NON_BLANK.search(lines, row_end, heading.start):
                row_start = heading.start
            row_end = heading.end
            if heading.level not in self._levels:
                continue
            # Headings without text belong to the text that follows, but too many would leave no space for it.
            is_bare = row_start == start
            if heading.end - row_start > self._max_chars // 2:
                row_start = heading.start
            if row_start > start:
                yield _Section(start, row_start, tuple(path), level, is_bare)
                start, level = row_start, 0
            level = level or heading.level
            while path and path[-1].level >= heading.level:
                path.pop()
            path.append(heading)
        yield _Section(start, len(lines), tuple(path), level)

    def _section_ranges(self, lines: str, sections: Iterable[_Section], media_type: str) -> Iterator[ChunkRange]:
        for section in sections:
            start, end = split.trim_blank_lines(lines, section.start, section.end)
            if start >= end:
                continue
            source = section.path[-1].source if section.path else ""
            titles = tuple(heading.title for heading in section.path if heading.title)
            if end - start <= self._max_chars:
                last_level = section.path[-1].level if section.path else 0
                yield ChunkRange(start, end, source, titles, section.first_level, last_level, section.is_bare)
                continue
            blocks = _blocks(lines, start, end, media_type)
            for part in split_range(lines, start, end, self._max_chars, overlap=self._overlap, blocks=blocks):
                yield ChunkRange(part.start, part.end, source, titles, is_part=True, table_header=part.table_header)

    def _join_small_sections(self, lines: str, ranges: Iterable[ChunkRange]) -> Iterator[ChunkRange]:
        """Join a small section to its first subsection, and small sections of one level until they are long enough.

        Beside any other section a small one stays alone: joined, one of the two would be cited under the heading of the
        other.
        """
        small: ChunkRange | None = None
        for current in ranges:
            is_small = not current.is_part and self._is_small(lines, current)
            if small and current.end - small.start <= self._max_chars and _belong_together(small, current, is_small):
                current, small = small._replace(end=current.end, last_level=current.last_level), None
                is_small = self._is_small(lines, current)
            if small:
                yield small
            small = current if is_small else None
            if not is_small:
                yield current
        if small:
            yield small

    def _is_small(self, lines: str, current: ChunkRange) -> bool:
        return self._min_length.match(lines, current.start, current.end) is None


def _belong_together(small: ChunkRange, current: ChunkRange, is_small: bool) -> bool:
    is_subsection = current.first_level > small.last_level  # also of the text above the first heading
    is_sibling = current.first_level in (small.first_level, small.last_level)
    return not current.is_part and (is_subsection or (is_small and is_sibling))


def _blocks(lines: str, start: int, end: int, media_type: str) -> Iterator[Block]:
    """Yield the headings, the code and the tables of a range, in order and without overlap."""
    position = start
    for block in scan_outline(lines, start, end, media_type=media_type):
        yield from _tables(lines, position, block.start)
        yield Block(block.start, block.end, is_heading=isinstance(block, Heading))
        position = block.end
    yield from _tables(lines, position, end)


def _tables(lines: str, start: int, end: int) -> Iterator[Block]:
    for table in markdown_tables(lines, start, end):
        yield Block(table.start, table.end, (table.start, table.rows_start))


def build(max_chars: int = 3000, min_chars: int = 50, levels: Sequence[int] = (1, 2, 3), overlap: int = 0) -> Headings:
    """Split text at its headings; the parts of a long section share up to `overlap` characters."""
    return Headings(max_chars, min_chars, levels, overlap)
