"""Trim ranges of a text, join small ones, and turn them into chunks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bunko.types import Chunk

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
