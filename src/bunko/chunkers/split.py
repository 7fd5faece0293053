"""Split a range that is too long at paragraphs, sentences or lines."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from bunko.chunkers.merge import trim_blank_lines
from bunko.text import sentences


class AtomicBlock(NamedTuple):
    """A block to keep whole if it fits, and to split only between lines: code, or a table with its header."""

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)


class SplitRange(NamedTuple):
    """A range that fits, and the range of the table header to prepend."""

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)


_PARAGRAPH_GAP = re.compile(r"\n(?=[^\S\n]*+\n)")
_NEWLINE = re.compile(r"\n")
_BLANKS = re.compile(r"\s*+")
# The rest of a line if it is blank, then blank lines; not the indentation of the next text.
_TRAILING_BLANK_LINES = re.compile(r"[^\S\n]*+(?:\n(?:[^\S\n]*+\n)*+)?+")
_CLAUSE_MARKS = ("、", "，", " ", "\t", "\u3000")
# Skin tones and half-width voicing marks change the character before them, but Unicode does not class them as marks.
_COMBINING_CHARS = frozenset("\u200d\uff9e\uff9f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def split_range(
    lines: str,
    start: int,
    end: int,
    limit: int,
    *,
    overlap: int = 0,
    atomic_blocks: Sequence[AtomicBlock] = (),
    headings: Sequence[tuple[int, int]] = (),
) -> list[SplitRange]:
    """Split at paragraphs, else sentences, else lines, else characters; parts share up to `overlap` characters.

    A part is longer than `limit` only if a single grapheme is. It ends in one of the `headings` only if headings alone
    fill it.
    """
    limit = max(1, limit)
    overlap = max(0, min(overlap, limit - 1))
    start, end = trim_blank_lines(lines, start, end)
    parts: list[SplitRange] = []
    cut_points: _CutPoints | None = None
    uncovered = _match_end(_BLANKS, lines, start)  # the first character that is in no part yet
    while uncovered < end:
        header = _table_header_at(atomic_blocks, start, limit)
        room = limit - (header[1] - header[0])
        if uncovered >= start + room:
            start = uncovered  # the white space before it alone would fill the part
        if end - start <= room:
            parts.append(SplitRange(start, end, header))
            break
        cut_points = cut_points or _CutPoints(lines, start, end, atomic_blocks, headings)
        cut = safe_cut_offset(lines, cut_points.best_cut_offset(uncovered, start, start + room), uncovered, end)
        if cut > start + room:
            start = uncovered  # a single grapheme is longer than the limit, so it is a part of its own
        part_end = start + len(lines[start:cut].rstrip())
        parts.append(SplitRange(start, part_end, header))
        uncovered = _match_end(_BLANKS, lines, cut)
        next_start = cut_points.overlap_offset(start, part_end, overlap) if overlap else cut
        start = _match_end(
            _TRAILING_BLANK_LINES, lines, cut if _overlaps_atomic_block(atomic_blocks, next_start, cut) else next_start
        )
    return parts


def _match_end(pattern: re.Pattern[str], lines: str, position: int) -> int:
    match = pattern.match(lines, position)
    return match.end() if match else position


def _overlaps_atomic_block(atomic_blocks: Sequence[AtomicBlock], start: int, end: int) -> bool:
    """Return whether an atomic block overlaps a range: table rows and code are not repeated in the next part."""
    index = bisect_right(atomic_blocks, end, key=lambda block: block.start) - 1
    return index >= 0 and atomic_blocks[index].end > start


def _table_header_at(atomic_blocks: Sequence[AtomicBlock], position: int, limit: int) -> tuple[int, int]:
    """Return the range of the header of the table whose rows are at a position, or an empty range."""
    index = bisect_right(atomic_blocks, position, key=lambda block: block.start) - 1
    if index >= 0 and atomic_blocks[index].table_header[1] <= position < atomic_blocks[index].end:
        header = atomic_blocks[index].table_header
        # A header that takes most of the limit would leave no space for the rows.
        return header if header[1] - header[0] <= limit // 2 else (0, 0)
    return (0, 0)


class _CutPoints:
    """The offsets where a range may be cut: just after a paragraph, a sentence or a line."""

    def __init__(
        self,
        lines: str,
        start: int,
        end: int,
        atomic_blocks: Sequence[AtomicBlock],
        headings: Sequence[tuple[int, int]],
    ) -> None:
        self._lines = lines
        self._headings = _heading_blocks(lines, headings)
        edges = {edge for block in atomic_blocks for edge in (block.start - 1, block.end)}
        edges |= {block.start - 2 for block in self._headings}
        gaps = {match.start() for match in _PARAGRAPH_GAP.finditer(lines, start, end)}
        gaps = {*_partition_borders(sorted(gaps), atomic_blocks)[0], *(edge for edge in edges if start < edge < end)}
        ends = [start + offset for offset in sentences.sentence_ends(lines[start:end])]
        newlines = [match.start() for match in _NEWLINE.finditer(lines, start, end)]
        newlines, self._heading_line_breaks = _partition_borders(newlines, self._headings)
        self._paragraphs = _partition_borders(sorted(gaps), self._headings)[0]
        self._sentences = _partition_borders(_partition_borders(ends, atomic_blocks)[0], self._headings)[0]
        self._line_breaks, self._inner_line_breaks = _partition_borders(newlines, atomic_blocks)

    def best_cut_offset(self, uncovered: int, start: int, stop: int) -> int:
        """Return the best offset to cut at, after `uncovered` and up to `stop`."""
        middle = max(uncovered + 1, (start + stop) // 2)
        for low in (middle, uncovered + 1):
            for borders in (self._paragraphs, self._sentences, self._line_breaks):
                if cut := _last_border(borders, low, stop):
                    return cut
        if cut := _last_border(self._inner_line_breaks, uncovered + 1, stop):
            return cut
        # What remains is one line, or headings with the first line of their text.
        index = bisect_right(self._headings, stop, key=lambda block: block.start) - 1
        headings_end = self._headings[index].end if index >= 0 else 0
        if headings_end >= stop and (cut := _last_border(self._heading_line_breaks, uncovered + 1, stop)):
            return cut
        middle = max(middle, min(headings_end, stop))
        clause = max(self._lines.rfind(mark, middle, stop) for mark in _CLAUSE_MARKS) + 1
        return clause if clause > middle else stop

    def overlap_offset(self, start: int, stop: int, overlap: int) -> int:
        """Return the start of the next part, so that it repeats the end of the part from `start` to `stop`."""
        low = max(start + 1, stop - overlap)
        high = max(low, stop - (overlap + 1) // 2)
        # A part does not begin inside of a heading, but with the text under it.
        index = bisect_right(self._headings, low, key=lambda block: block.start) - 1
        if index >= 0 and low < self._headings[index].end < stop:
            return self._headings[index].end
        for borders in (self._sentences, self._paragraphs, self._line_breaks):
            index = bisect_left(borders, low)
            if index < len(borders) and borders[index] <= high:
                return safe_cut_offset(self._lines, borders[index], start, stop)
        clauses = [offset + 1 for mark in _CLAUSE_MARKS if (offset := self._lines.find(mark, low, high)) >= 0]
        return safe_cut_offset(self._lines, min(clauses, default=low), start, stop)


def _last_border(borders: Sequence[int], low: int, high: int) -> int:
    """Return the last border from `low` to `high`, or 0 if there is none."""
    index = bisect_right(borders, high) - 1
    return borders[index] if index >= 0 and borders[index] >= low else 0


def _heading_blocks(lines: str, headings: Sequence[tuple[int, int]]) -> list[AtomicBlock]:
    """Return the ranges in which a cut would part headings from the text under them, in order."""
    blocks: list[AtomicBlock] = []
    for start, end in headings:
        text_start = _match_end(_BLANKS, lines, end)
        if blocks and blocks[-1].end == start:
            blocks[-1] = AtomicBlock(blocks[-1].start, text_start)
        else:
            blocks.append(AtomicBlock(start + 1, text_start))
    return blocks


def _partition_borders(borders: list[int], atomic_blocks: Sequence[AtomicBlock]) -> tuple[list[int], list[int]]:
    """Return the borders outside of atomic blocks, and those inside."""
    outside: list[int] = []
    inside: list[int] = []
    position = 0
    for block in atomic_blocks:
        first = bisect_left(borders, block.start, position)
        last = bisect_right(borders, block.end, first)
        outside += borders[position:first]
        inside += borders[first:last]
        position = last
    outside += borders[position:]
    return outside, inside


def safe_cut_offset(lines: str, cut: int, low: int, end: int) -> int:
    """Return the offset nearest to `cut`, after `low`, that does not split a grapheme."""
    back = cut
    while back > low and _splits_character(lines, back):
        back -= 1
    if back > low:
        return back
    while cut < end and _splits_character(lines, cut):
        cut += 1
    return cut


def _splits_character(lines: str, cut: int) -> bool:
    if not 0 < cut < len(lines):
        return False
    before, after = lines[cut - 1], lines[cut]
    if before.isspace() or after.isspace():
        return False
    return before == "\u200d" or (
        after >= "\u0300"
        and (
            after in _COMBINING_CHARS
            or unicodedata.category(after)[0] == "M"
            or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        )
    )
