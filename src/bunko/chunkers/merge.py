"""Trim ranges of a text, join small ones, and turn them into chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bunko.types import Chunk

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")


class ChunkRange(NamedTuple):
    """A range that becomes a chunk."""

    start: int
    end: int
    heading: str = ""
    heading_path: tuple[str, ...] = ()
    level: int = 0  # of its first heading; 0: it begins with text
    is_heading_only: bool = False
    section_chars: int = 0  # length of the section under the heading
    table_header: tuple[int, int] = (0, 0)  # range of the table header to prepend


def trim_blank_lines(lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without surrounding blank lines; an empty range if all lines are blank."""
    end = start + len(lines[start:end].rstrip())
    match = _BLANK_LINES.match(lines, start, end)
    return (match.end() if match else start), end


def min_length_pattern(min_chars: int) -> re.Pattern[str]:
    """Return a pattern that matches text with at least `min_chars` non-blank characters."""
    return re.compile(rf"(?:\s*+\S){{{max(0, min_chars)}}}")


def belongs_to_next(current: ChunkRange, following: ChunkRange) -> bool:
    """Return whether a small range should be joined to the following one rather than to the previous one."""
    return current.is_heading_only or 0 < current.level < following.level


def join_small_ranges(
    lines: str,
    ranges: Sequence[ChunkRange],
    max_chars: int,
    min_length: re.Pattern[str],
    joins_next: Callable[[ChunkRange, ChunkRange], bool] = belongs_to_next,
) -> list[ChunkRange]:
    """Join small ranges to a neighbour where the two fit in `max_chars`; none is dropped."""
    is_small = [min_length.match(lines, current.start, current.end) is None for current in ranges]
    if not any(is_small):
        return list(ranges)
    joined: list[ChunkRange] = []
    last_is_small = False  # the last joined range is still too small
    for index, current in enumerate(ranges):
        has_next = index + 1 < len(ranges)
        # Consecutive small ranges are joined only until they are long enough; else a glossary would become one chunk.
        joins_following = has_next and (is_small[index + 1] or joins_next(current, ranges[index + 1]))
        if (
            joined
            and _fits(joined[-1], current, max_chars)
            and (last_is_small or (is_small[index] and not joins_following))
        ):
            joined[-1] = _join_ranges(joined[-1], current)
            last_is_small = min_length.match(lines, joined[-1].start, joined[-1].end) is None
            continue
        if last_is_small:
            _join_backwards(joined, max_chars)
        joined.append(current)
        last_is_small = is_small[index]
    if last_is_small:
        _join_backwards(joined, max_chars)
    return joined


def _join_backwards(ranges: list[ChunkRange], max_chars: int) -> None:
    """Join the last range to the one before it, since it does not fit with the following one."""
    if len(ranges) > 1 and _fits(ranges[-2], ranges[-1], max_chars):
        last = ranges.pop()
        ranges[-1] = _join_ranges(ranges[-1], last)


def _fits(first: ChunkRange, second: ChunkRange, max_chars: int) -> bool:
    return second.end - first.start <= max_chars


def _join_ranges(first: ChunkRange, second: ChunkRange) -> ChunkRange:
    larger = second if second.section_chars > first.section_chars else first
    return ChunkRange(
        first.start,
        second.end,
        larger.heading,
        larger.heading_path,
        first.level,
        False,
        larger.section_chars,
        first.table_header,
    )


def build_chunks(text: str, lines: str, ranges: Sequence[ChunkRange]) -> list[Chunk]:
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
