"""Split Markdown into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bunko.chunkers import merge
from bunko.chunkers.merge import ChunkRange
from bunko.chunkers.split import AtomicBlock, split_range
from bunko.chunkers.tables import markdown_tables
from bunko.readers.outline import Heading, Verbatim, scan_outline, unify_line_ends
from bunko.types import Chunk, Text

_NON_BLANK = re.compile(r"\S")
# A text with more of them is a list made of headings: few chunks are then worth more than the nearest heading.
_MAX_SMALL_CHUNKS = 1000
_NO_HEADING = Heading(0, 0, 0, "", "")


class _Section(NamedTuple):
    """The text under a heading, with the bare headings above it."""

    start: int
    end: int
    path: tuple[Heading, ...]  # from the outermost heading to its own
    level: int  # of its first heading; 0: it begins with text
    blocks: list[Heading | Verbatim]  # inside of it
    is_bare: bool = False  # headings alone, too many to be kept with the text below them


class Headings:
    """Makes one chunk per section, with its heading; headings of other levels do not split."""

    def __init__(self, max_chars: int, min_chars: int, levels: Sequence[int], overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._min_length = merge.min_length_pattern(min_chars)
        self._levels = frozenset(levels)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        lines = unify_line_ends(text.text)
        ranges = self._section_ranges(lines, self._sections(lines, text.body_start))
        return merge.build_chunks(text.text, lines, self._join_small_sections(lines, ranges))

    def _sections(self, lines: str, body_start: int) -> Iterator[_Section]:
        path: list[Heading] = []
        start, level = body_start, 0
        blocks: list[Heading | Verbatim] = []
        row: list[Heading] = []  # the last headings, with no text between them
        for block in scan_outline(lines, body_start):
            if isinstance(block, Heading):
                if row and _NON_BLANK.search(lines, row[-1].end, block.start):
                    row = []
                if block.level in self._levels:
                    # Headings without text belong to the text that follows, but too many would leave no space for it.
                    is_bare = bool(row) and row[0].start == start
                    if row and block.end - row[0].start > self._max_chars // 2:
                        row = []
                    section_end = row[0].start if row else block.start
                    if section_end > start:
                        inner_blocks = blocks[: len(blocks) - len(row)]
                        yield _Section(start, section_end, tuple(path), level, inner_blocks, is_bare)
                        start, level, blocks = section_end, 0, list[Heading | Verbatim](row)
                    level = level or block.level
                    while path and path[-1].level >= block.level:
                        path.pop()
                    path.append(block)
                row.append(block)
            blocks.append(block)
        yield _Section(start, len(lines), tuple(path), level, blocks)

    def _section_ranges(self, lines: str, sections: Iterable[_Section]) -> Iterator[ChunkRange]:
        for section in sections:
            start, end = merge.trim_blank_lines(lines, section.start, section.end)
            if start >= end:
                continue
            source = section.path[-1].source if section.path else ""
            titles = tuple(heading.title for heading in section.path if heading.title)
            if end - start <= self._max_chars:
                yield ChunkRange(start, end, source, titles, section.level, section.is_bare)
                continue
            parts = split_range(
                lines,
                start,
                end,
                self._max_chars,
                overlap=self._overlap,
                atomic_blocks=_atomic_blocks(lines, start, end, section.blocks),
                headings=[(block.start, block.end) for block in section.blocks if isinstance(block, Heading)],
            )
            for part in parts:
                yield ChunkRange(part.start, part.end, source, titles, section.level, True, part.table_header)

    def _join_small_sections(self, lines: str, ranges: Iterable[ChunkRange]) -> Iterator[ChunkRange]:
        """Join small sections of one level until they are long enough; beside any other, a small one stays alone.

        Joined to a longer section or to one of another level, it would be cited under the wrong heading.
        """
        small: ChunkRange | None = None
        count = 0
        for current in ranges:
            is_small = not current.is_part and self._is_small(lines, current)
            if small and is_small and (current.level == small.level or count > _MAX_SMALL_CHUNKS):
                joined = small._replace(end=current.end)
                if joined.end - joined.start <= self._max_chars:
                    current, small = joined, None
                    is_small = self._is_small(lines, joined)
            if small:
                yield small
                count += 1
            small = current if is_small else None
            if not is_small:
                yield current
        if small:
            yield small

    def _is_small(self, lines: str, current: ChunkRange) -> bool:
        return self._min_length.match(lines, current.start, current.end) is None


def _atomic_blocks(lines: str, start: int, end: int, blocks: Sequence[Heading | Verbatim]) -> list[AtomicBlock]:
    """Return the blocks that should not be split, in order and without overlap."""
    verbatim = [block for block in blocks if isinstance(block, Verbatim)]
    atomic_blocks = [AtomicBlock(block.start, block.end) for block in verbatim]
    edges = [start, *(edge for block in verbatim for edge in block), end]
    for gap_start, gap_end in zip(edges[::2], edges[1::2], strict=True):
        for table in markdown_tables(lines, gap_start, gap_end):
            atomic_blocks.append(AtomicBlock(table.start, table.end, (table.start, table.rows_start)))
    return sorted(atomic_blocks)


def build(max_chars: int = 3000, min_chars: int = 50, levels: Sequence[int] = (1, 2, 3), overlap: int = 0) -> Headings:
    """Split Markdown at its headings; the parts of a long section share up to `overlap` characters."""
    return Headings(max_chars, min_chars, levels, overlap)
