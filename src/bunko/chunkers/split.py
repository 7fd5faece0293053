"""A range that is too long comes in, ranges that fit go out, cut where it hurts the least."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from bunko.chunkers.merge import trim_blank_lines
from bunko.text import sentences


class AtomicBlock(NamedTuple):
    """A stretch to keep whole if it fits and to cut only between lines: code, or a table with its header."""

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)


class SplitRange(NamedTuple):
    """A range that fits, and the table header that is to be put in front."""

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)


_PARAGRAPH_GAP = re.compile(r"\n(?=[^\S\n]*+\n)")
_NEWLINE = re.compile(r"\n")
_BLANKS = re.compile(r"\s*+")
# The rest of a line if it is blank, then blank lines; the indentation of the next text stays.
_TRAILING_BLANK_LINES = re.compile(r"[^\S\n]*+(?:\n(?:[^\S\n]*+\n)*+)?+")
_CLAUSE_MARKS = ("、", "，", " ", "\t", "\u3000")
# Skin tones and half-width voicing marks change the character before them, but are not marks to Unicode.
_COMBINING_CHARS = frozenset("\u200d\uff9e\uff9f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def split_range(
    lines: str, start: int, end: int, limit: int, *, overlap: int = 0, atomic_blocks: Sequence[AtomicBlock] = ()
) -> list[SplitRange]:
    """Cut at paragraphs, else sentences, else lines, else characters; parts share up to `overlap` characters.

    A part is longer than `limit` only where a single written character is.
    """
    limit = max(1, limit)
    overlap = max(0, min(overlap, limit - 1))
    start, end = trim_blank_lines(lines, start, end)
    parts: list[SplitRange] = []
    borders: _CutPoints | None = None
    fresh = _match_end(_BLANKS, lines, start)  # the first character that no part holds yet
    while fresh < end:
        header = _table_header_at(atomic_blocks, start, limit)
        room = limit - (header[1] - header[0])
        if fresh >= start + room:
            start = fresh  # so much white space lies before it that nothing else would fit
        if end - start <= room:
            parts.append(SplitRange(start, end, header))
            break
        borders = borders or _CutPoints(lines, start, end, atomic_blocks)
        cut = safe_cut_offset(lines, borders.best_cut_offset(fresh, start, start + room), fresh, end)
        if cut > start + room:
            start = fresh  # one written character is longer than all the room, so it stands alone
        stop = start + len(lines[start:cut].rstrip())
        parts.append(SplitRange(start, stop, header))
        fresh = _match_end(_BLANKS, lines, cut)
        back = borders.overlap_offset(start, stop, overlap) if overlap else cut
        start = _match_end(
            _TRAILING_BLANK_LINES, lines, cut if _overlaps_atomic_block(atomic_blocks, back, cut) else back
        )
    return parts


def _match_end(pattern: re.Pattern[str], lines: str, position: int) -> int:
    match = pattern.match(lines, position)
    return match.end() if match else position


def _overlaps_atomic_block(atomic_blocks: Sequence[AtomicBlock], start: int, end: int) -> bool:
    """Say whether any of a solid stretch lies between two places: rows and listings are not repeated in parts."""
    at = bisect_right(atomic_blocks, end, key=lambda solid: solid.start) - 1
    return at >= 0 and atomic_blocks[at].end > start


def _table_header_at(atomic_blocks: Sequence[AtomicBlock], position: int, limit: int) -> tuple[int, int]:
    at = bisect_right(atomic_blocks, position, key=lambda solid: solid.start) - 1
    if at >= 0 and atomic_blocks[at].table_header[1] <= position < atomic_blocks[at].end:
        header = atomic_blocks[at].table_header
        # A header that takes most of the room would leave none for the rows.
        return header if header[1] - header[0] <= limit // 2 else (0, 0)
    return (0, 0)


class _CutPoints:
    """The places where a range may be cut: each is just behind the last character of something."""

    def __init__(self, lines: str, start: int, end: int, atomic_blocks: Sequence[AtomicBlock]) -> None:
        self._lines = lines
        edges = {edge for solid in atomic_blocks for edge in (solid.start - 1, solid.end) if start < edge < end}
        gaps = [match.start() for match in _PARAGRAPH_GAP.finditer(lines, start, end)]
        self._paragraphs = sorted({*_partition_borders(gaps, atomic_blocks)[0], *edges})
        self._sentences = _partition_borders(
            [start + offset for offset in sentences.sentence_ends(lines[start:end])], atomic_blocks
        )[0]
        newlines = [match.start() for match in _NEWLINE.finditer(lines, start, end)]
        self._line_breaks, self._inner_line_breaks = _partition_borders(newlines, atomic_blocks)

    def best_cut_offset(self, uncovered: int, start: int, stop: int) -> int:
        """Return the best place to cut after `fresh` and up to `stop`."""
        middle = max(uncovered + 1, (start + stop) // 2)
        for low in (middle, uncovered + 1):
            for borders in (self._paragraphs, self._sentences, self._line_breaks):
                at = bisect_right(borders, stop) - 1
                if at >= 0 and borders[at] >= low:
                    return borders[at]
        at = bisect_right(self._inner_line_breaks, stop) - 1
        if at >= 0 and self._inner_line_breaks[at] > uncovered:
            return self._inner_line_breaks[at]
        clause = max(self._lines.rfind(mark, middle, stop) for mark in _CLAUSE_MARKS) + 1
        return clause if clause > middle else stop

    def overlap_offset(self, start: int, stop: int, overlap: int) -> int:
        """Return where the next part begins, so that it repeats the end of the one from `start` to `stop`."""
        low = max(start + 1, stop - overlap)
        high = max(low, stop - (overlap + 1) // 2)
        for borders in (self._sentences, self._paragraphs, self._line_breaks):
            at = bisect_left(borders, low)
            if at < len(borders) and borders[at] <= high:
                return safe_cut_offset(self._lines, borders[at], start, stop)
        clauses = [at + 1 for mark in _CLAUSE_MARKS if (at := self._lines.find(mark, low, high)) >= 0]
        return safe_cut_offset(self._lines, min(clauses, default=low), start, stop)


def _partition_borders(borders: list[int], atomic_blocks: Sequence[AtomicBlock]) -> tuple[list[int], list[int]]:
    """Tell the borders outside of solid stretches from those inside."""
    outside: list[int] = []
    inside: list[int] = []
    at = 0
    for solid in atomic_blocks:
        low = bisect_left(borders, solid.start, at)
        high = bisect_right(borders, solid.end, low)
        outside += borders[at:low]
        inside += borders[low:high]
        at = high
    outside += borders[at:]
    return outside, inside


def safe_cut_offset(lines: str, cut: int, low: int, end: int) -> int:
    """Return the nearest place to `cut`, after `low`, that does not tear a written character apart."""
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
