"""Split ranges that are too long, merge those that are short, and make chunks of them."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bunko.text import sentences
from bunko.types import Chunk


class Block(NamedTuple):
    """A block that matters for where a text is split.

    Code or a table is kept whole if it fits, and split only between lines. A heading is kept with the text under it.
    """

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)
    is_heading: bool = False


class SplitRange(NamedTuple):
    """A range that fits, and the range of the table header to prepend."""

    start: int
    end: int
    table_header: tuple[int, int] = (0, 0)


_PARAGRAPH_GAP = re.compile(r"\n(?=[^\S\n]*+\n)")
_NEWLINE = re.compile(r"\n")
_BLANKS = re.compile(r"\s*+")
# The rest of a line if it is blank, then blank lines; not the indentation of the next text.
_TRAILING_BLANK_LINES = re.compile(r"\s*\n|[^\S\n]*+")
_CLAUSE_MARKS = ("、", "，", " ", "\t", "\u3000")
# Borders are searched in windows of this many characters: those of a whole text could take more memory than the text.
_WINDOW_CHARS = 50_000
_LOOKAHEAD_CHARS = 20  # characters after a sentence that tell whether it ends: closing brackets, then a blank
# Skin tones and half-width voicing marks change the character before them, but Unicode does not class them as marks.
_COMBINING_CHARS = frozenset("\u200d\uff9e\uff9f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def split_range(
    lines: str, start: int, end: int, limit: int, *, overlap: int = 0, blocks: Iterable[Block] = ()
) -> list[SplitRange]:
    """Split at paragraphs, else sentences, else lines, else characters; parts share up to `overlap` characters.

    `blocks` are in order, without overlap. A part is longer than `limit` only if a single grapheme is. It ends in a
    heading only if headings alone fill it.
    """
    limit = max(1, limit)
    overlap = max(0, min(overlap, limit - 1))
    start, end = trim_blank_lines(lines, start, end)
    if end - start <= limit:
        return [SplitRange(start, end)] if start < end else []
    parts: list[SplitRange] = []
    upcoming = _UpcomingBlocks(blocks)
    cut_points = _CutPoints(lines, start, start, ())
    uncovered = _match_end(_BLANKS, lines, start)  # the first character that is in no part yet
    while uncovered < end:
        if min(start + limit, end) > cut_points.end:
            window_end = min(end, start + limit + _WINDOW_CHARS)
            cut_points = _CutPoints(lines, start, window_end, upcoming.between(start, window_end))
        header = cut_points.table_header_at(start, limit)
        room = limit - (header[1] - header[0])
        if uncovered >= start + room:
            start = uncovered  # the white space before it alone would fill the part
        if end - start <= room:
            parts.append(SplitRange(start, end, header))
            break
        cut = safe_cut_offset(lines, cut_points.best_cut_offset(uncovered, start, start + room), uncovered, end)
        if cut > start + room:
            start = uncovered  # a single grapheme is longer than the limit, so it is a part of its own
        part_end = start + len(lines[start:cut].rstrip())
        parts.append(SplitRange(start, part_end, header))
        uncovered = _match_end(_BLANKS, lines, cut)
        next_start = cut_points.overlap_offset(start, part_end, cut, overlap) if overlap else cut
        start = _match_end(_TRAILING_BLANK_LINES, lines, next_start)
    return parts


def _match_end(pattern: re.Pattern[str], lines: str, position: int) -> int:
    match = pattern.match(lines, position)
    return match.end() if match else position


class _UpcomingBlocks:
    """Takes blocks from an iterator as far as they are needed."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._iterator = iter(blocks)
        self._next = next(self._iterator, None)
        self._taken: list[Block] = []

    def between(self, start: int, stop: int) -> list[Block]:
        """Return the blocks that touch a range, in order; no range begins before an earlier one."""
        while self._next and self._next.start <= stop:
            self._taken.append(self._next)
            self._next = next(self._iterator, None)
        self._taken = [block for block in self._taken if block.end >= start]
        return self._taken


class _CutPoints:
    """The offsets of a window of the text where a part may end: just after a paragraph, a sentence or a line."""

    def __init__(self, lines: str, start: int, end: int, blocks: Sequence[Block]) -> None:
        self.end = end
        self._lines = lines
        self._blocks = [block for block in blocks if not block.is_heading]
        headings = [block for block in blocks if block.is_heading]
        ranges: list[tuple[int, int]] = []
        for heading in headings:
            text_start = _match_end(_BLANKS, lines, heading.end)
            if ranges and ranges[-1][1] >= heading.start:
                ranges[-1] = (ranges[-1][0], text_start)
            else:
                ranges.append((heading.start + 1, text_start))
        self._headings = ranges
        atomic = [(block.start, block.end) for block in self._blocks]
        edges = [edge for block in atomic for edge in (block[0] - 1, block[1])]
        edges += [first - 2 for first, _ in self._headings]
        gaps = [match.start() for match in _PARAGRAPH_GAP.finditer(lines, start, end)]
        gaps = sorted({*_partition_borders(gaps, atomic)[0], *(edge for edge in edges if start < edge < end)})
        # Whether a sentence ends at the end of the window depends on the characters after it.
        ends = [start + offset for offset in sentences.sentence_ends(lines[start : end + _LOOKAHEAD_CHARS])]
        newlines = [match.start() for match in _NEWLINE.finditer(lines, start, end)]
        newlines, self._heading_line_breaks = _partition_borders(newlines, self._headings)
        self._paragraphs = _partition_borders(gaps, self._headings)[0]
        self._sentences = _partition_borders(_partition_borders(ends, atomic)[0], self._headings)[0]
        self._line_breaks, self._inner_line_breaks = _partition_borders(newlines, atomic)

    def table_header_at(self, position: int, limit: int) -> tuple[int, int]:
        """Return the range of the header of the table whose rows are at a position, or an empty range."""
        index = bisect_right(self._blocks, position, key=lambda block: block.start) - 1
        if index >= 0 and self._blocks[index].table_header[1] <= position < self._blocks[index].end:
            header = self._blocks[index].table_header
            # A header that takes most of the limit would leave no space for the rows.
            return header if header[1] - header[0] <= limit // 2 else (0, 0)
        return (0, 0)

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
        headings_end = self._headings_at(stop)[1]
        if headings_end >= stop and (cut := _last_border(self._heading_line_breaks, uncovered + 1, stop)):
            return cut
        middle = max(middle, min(headings_end, stop))
        clause = max(self._lines.rfind(mark, middle, stop) for mark in _CLAUSE_MARKS) + 1
        return clause if clause > middle else stop

    def overlap_offset(self, start: int, part_end: int, cut: int, overlap: int) -> int:
        """Return the start of the next part, so that it repeats the end of the part from `start` to `part_end`."""
        offset = self._repeat_offset(start, part_end, overlap)
        index = bisect_right(self._blocks, cut, key=lambda block: block.start) - 1
        # Table rows and code are not repeated in the next part.
        return cut if index >= 0 and self._blocks[index].end > offset else offset

    def _repeat_offset(self, start: int, part_end: int, overlap: int) -> int:
        low = max(start + 1, part_end - overlap)
        high = max(low, part_end - (overlap + 1) // 2)
        if low < (headings_end := self._headings_at(low)[1]) < part_end:
            return headings_end  # a part begins with the text under a heading, not with half of the heading
        for borders in (self._sentences, self._paragraphs, self._line_breaks):
            index = bisect_left(borders, low)
            if index < len(borders) and borders[index] <= high:
                return safe_cut_offset(self._lines, borders[index], start, part_end)
        clauses = [offset + 1 for mark in _CLAUSE_MARKS if (offset := self._lines.find(mark, low, high)) >= 0]
        return safe_cut_offset(self._lines, min(clauses, default=low), start, part_end)

    def _headings_at(self, position: int) -> tuple[int, int]:
        """Return the last headings that begin before a position, with the blanks after them, or an empty range."""
        index = bisect_right(self._headings, position, key=lambda headings: headings[0]) - 1
        return self._headings[index] if index >= 0 else (0, 0)


def _last_border(borders: Sequence[int], low: int, high: int) -> int:
    """Return the last border from `low` to `high`, or 0 if there is none."""
    index = bisect_right(borders, high) - 1
    return borders[index] if index >= 0 and borders[index] >= low else 0


def _partition_borders(borders: list[int], ranges: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the borders outside of the ranges, and those inside."""
    outside: list[int] = []
    inside: list[int] = []
    position = 0
    for start, end in ranges:
        first = bisect_left(borders, start, position)
        last = bisect_right(borders, end, first)
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


# A chunk takes a few kilobytes with its words and its vector, and twice that where a text has longer ones.
_MAX_UNJOINED = 10_000
_BLANK_LINES = re.compile(r"(?:\s*\n)?")


class ChunkRange(NamedTuple):
    """A range that becomes a chunk."""

    start: int
    end: int
    heading: str = ""
    heading_path: tuple[str, ...] = ()
    first_level: int = 0  # of its first heading; 0: it begins with text
    last_level: int = 0  # of the last heading that splits
    is_part: bool = False  # of a longer section: it is not joined to others
    table_header: tuple[int, int] = (0, 0)  # range of the table header to prepend


def trim_blank_lines(lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without surrounding blank lines; an empty range if all lines are blank."""
    end = start + len(lines[start:end].rstrip())
    match = _BLANK_LINES.match(lines, start, end)
    return (match.end() if match else start), end


def min_length_pattern(min_chars: int) -> re.Pattern[str]:
    """Return a pattern that matches text with at least `min_chars` non-blank characters."""
    return re.compile(rf"(?:\s*+\S){{{max(0, min_chars)}}}")


def join_small_ranges(
    lines: str, ranges: Iterable[ChunkRange], max_chars: int, min_length: re.Pattern[str]
) -> Iterator[ChunkRange]:
    """Join small ranges to the following one, or else to the one before, where they fit in `max_chars`.

    Small ranges in a row are joined only until they are long enough; else a glossary would become one chunk.
    """
    previous: ChunkRange | None = None
    small: ChunkRange | None = None
    for current in ranges:
        if small and current.end - small.start <= max_chars:
            current, small = small._replace(end=current.end), None
        elif small:
            if previous and small.end - previous.start <= max_chars:
                previous = previous._replace(end=small.end)
            else:
                if previous:
                    yield previous
                previous = small
            small = None
        if min_length.match(lines, current.start, current.end) is None:
            small = current
        else:
            if previous:
                yield previous
            previous = current
    if previous and small and small.end - previous.start <= max_chars:
        previous, small = previous._replace(end=small.end), None
    if previous:
        yield previous
    if small:
        yield small


def join_excess_ranges(ranges: Iterable[ChunkRange], max_chars: int) -> Iterator[ChunkRange]:
    """Join neighbours after the first 10,000 ranges, so that a giant list takes no more memory than a giant text."""
    last: ChunkRange | None = None
    for index, current in enumerate(ranges):
        if index < _MAX_UNJOINED:
            yield current
            continue
        if last and (current.table_header == last.table_header or current.table_header == (0, 0)):
            header_size = last.table_header[1] - last.table_header[0]
            if header_size + current.end - last.start <= max_chars:
                last = last._replace(end=max(last.end, current.end))
                continue
        if last:
            yield last
        last = current
    if last:
        yield last


def build_chunks(text: str, lines: str, ranges: Iterable[ChunkRange]) -> list[Chunk]:
    """Return the chunks of the ranges, with their positions and line numbers."""
    chunks = []
    line, position = 1, 0
    for index, chunk_range in enumerate(ranges):
        start, end, header = chunk_range.start, chunk_range.end, chunk_range.table_header
        # Context rows may make a range begin before the previous one.
        line += lines.count("\n", position, start) if start >= position else -lines.count("\n", start, position)
        position = start
        chunks.append(
            Chunk(
                index,
                start,
                end,
                line,
                line + lines.count("\n", start, end),
                text[header[0] : header[1]] + text[start:end],
                chunk_range.heading,
                chunk_range.heading_path,
            )
        )
    return chunks
