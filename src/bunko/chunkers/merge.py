"""Trim ranges of a text, join small ones, and turn them into chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    lines: str, ranges: Sequence[ChunkRange], max_chars: int, min_length: re.Pattern[str]
) -> list[ChunkRange]:
    """Join small ranges to the following one, or else to the one before, where they fit in `max_chars`."""
    joined: list[ChunkRange] = []
    last_is_small = False  # the last joined range is still too small
    for index, current in enumerate(ranges):
        is_small = min_length.match(lines, current.start, current.end) is None
        # Small ranges in a row are joined only until they are long enough; else a glossary would become one chunk.
        if (
            joined
            and _fits(joined[-1], current, max_chars)
            and (last_is_small or (is_small and index + 1 == len(ranges)))
        ):
            joined[-1] = joined[-1]._replace(end=current.end)
            last_is_small = min_length.match(lines, joined[-1].start, joined[-1].end) is None
            continue
        if last_is_small:
            _join_backwards(joined, max_chars)
        joined.append(current)
        last_is_small = is_small
    if last_is_small:
        _join_backwards(joined, max_chars)
    return joined


def _join_backwards(ranges: list[ChunkRange], max_chars: int) -> None:
    """Join the last range to the one before it, since it does not fit with the following one."""
    if len(ranges) > 1 and _fits(ranges[-2], ranges[-1], max_chars):
        last = ranges.pop()
        ranges[-1] = ranges[-1]._replace(end=last.end)


def _fits(first: ChunkRange, second: ChunkRange, max_chars: int) -> bool:
    return second.end - first.start <= max_chars


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
