"""Markdown comes in, a chunk for each section goes out, with the headings it stands under."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.chunkers import merge
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.split import AtomicBlock, split_range
from bunko.chunkers.tables import markdown_tables
from bunko.readers.outline import Heading, Verbatim, scan_outline, unify_line_ends
from bunko.types import Chunk, Text

_NO_HEADING = Heading(0, 0, 0, "", "")


class Headings:
    """What headings part, the heading included; deeper headings than those given do not cut."""

    def __init__(self, max_chars: int, min_chars: int, levels: Sequence[int], overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._min_length = merge.min_length_pattern(min_chars)
        self._levels = frozenset(levels)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order."""
        lines = unify_line_ends(text.text)
        found: list[ChunkRange] = []
        open_headings: list[Heading] = []
        start, heading, verbatim = text.body_start, _NO_HEADING, []
        for mark in scan_outline(lines, text.body_start):
            if isinstance(mark, Verbatim):
                verbatim.append(mark)
            elif mark.level in self._levels:
                self._add_section(found, lines, start, mark.start, heading, open_headings, verbatim)
                while open_headings and open_headings[-1].level >= mark.level:
                    open_headings.pop()
                open_headings.append(mark)
                start, heading, verbatim = mark.start, mark, []
        self._add_section(found, lines, start, len(lines), heading, open_headings, verbatim)
        return merge.build_chunks(
            text.text, lines, merge.join_small_ranges(lines, found, self._max_chars, self._min_length)
        )

    def _add_section(
        self,
        ranges: list[ChunkRange],
        lines: str,
        start: int,
        end: int,
        heading: Heading,
        open_headings: Sequence[Heading],
        verbatim: Sequence[Verbatim],
    ) -> None:
        start, end = merge.trim_blank_lines(lines, start, end)
        if start >= end:
            return
        path = tuple(heading.title for heading in open_headings if heading.title)
        weight = end - start
        if weight <= self._max_chars:
            bare = end <= heading.end
            ranges.append(ChunkRange(start, end, heading.source, path, heading.level, bare, weight))
            return
        solids = _atomic_blocks(lines, start, end, verbatim)
        level = heading.level
        for part in split_range(lines, start, end, self._max_chars, overlap=self._overlap, atomic_blocks=solids):
            size = part.end - part.start
            ranges.append(ChunkRange(part.start, part.end, heading.source, path, level, False, size, part.table_header))
            level = 0


def _atomic_blocks(lines: str, start: int, end: int, verbatim: Sequence[Verbatim]) -> list[AtomicBlock]:
    """Return the stretches that are better not cut, in order and apart from each other."""
    solids = [AtomicBlock(block.start, block.end) for block in verbatim]
    between = [start, *(edge for block in verbatim for edge in block), end]
    for low, high in zip(between[::2], between[1::2], strict=True):
        for table in markdown_tables(lines, low, high):
            solids.append(AtomicBlock(table.start, table.end, (table.start, table.rows_start)))
    return sorted(solids)


def build(max_chars: int = 3000, min_chars: int = 50, levels: Sequence[int] = (1, 2, 3), overlap: int = 0) -> Headings:
    """Cut Markdown at its headings; parts of a section that is too long share up to `overlap` characters."""
    return Headings(max_chars, min_chars, levels, overlap)
