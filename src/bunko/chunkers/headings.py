"""Split text into sections by its headings."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.chunkers import merge
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.split import AtomicBlock, split_range
from bunko.chunkers.tables import markdown_tables
from bunko.readers.outline import Heading, Verbatim, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.types import Chunk, Text

_NO_HEADING = Heading(0, 0, 0, "", "")


class Headings:
    """Makes one chunk per section, with its heading; headings of other levels do not split."""

    def __init__(self, max_chars: int, min_chars: int, levels: Sequence[int], overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._min_length = merge.min_length_pattern(min_chars)
        self._levels = frozenset(levels)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        lines = unify_line_ends(text.text)
        ranges: list[ChunkRange] = []
        open_headings: list[Heading] = []
        start, heading, verbatim = text.body_start, _NO_HEADING, []
        for block in scan_outline(lines, text.body_start, media_type=text.media_type):
            if isinstance(block, Verbatim):
                verbatim.append(block)
            elif block.level in self._levels:
                self._add_section(ranges, lines, start, block.start, heading, open_headings, verbatim)
                while open_headings and open_headings[-1].level >= block.level:
                    open_headings.pop()
                open_headings.append(block)
                start, heading, verbatim = block.start, block, []
        self._add_section(ranges, lines, start, len(lines), heading, open_headings, verbatim)
        return merge.build_chunks(
            text.text, lines, merge.join_small_ranges(lines, ranges, self._max_chars, self._min_length)
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
        size = end - start
        if size <= self._max_chars:
            is_heading_only = end <= heading.end
            ranges.append(ChunkRange(start, end, heading.source, path, heading.level, is_heading_only, size))
            return
        atomic_blocks = _atomic_blocks(lines, start, end, verbatim)
        level = heading.level
        for part in split_range(lines, start, end, self._max_chars, overlap=self._overlap, atomic_blocks=atomic_blocks):
            part_size = part.end - part.start
            ranges.append(
                ChunkRange(part.start, part.end, heading.source, path, level, False, part_size, part.table_header)
            )
            level = 0


def _atomic_blocks(lines: str, start: int, end: int, verbatim: Sequence[Verbatim]) -> list[AtomicBlock]:
    """Return the blocks that should not be split, in order and without overlap."""
    blocks = [AtomicBlock(block.start, block.end) for block in verbatim]
    edges = [start, *(edge for block in verbatim for edge in block), end]
    for gap_start, gap_end in zip(edges[::2], edges[1::2], strict=True):
        for table in markdown_tables(lines, gap_start, gap_end):
            blocks.append(AtomicBlock(table.start, table.end, (table.start, table.rows_start)))
    return sorted(blocks)


def build(max_chars: int = 3000, min_chars: int = 50, levels: Sequence[int] = (1, 2, 3), overlap: int = 0) -> Headings:
    """Split text at its headings; the parts of a long section share up to `overlap` characters."""
    return Headings(max_chars, min_chars, levels, overlap)
