"""Ranges of a text come in; they are trimmed, joined where they are too small, and go out as chunks."""

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
    level: int = 0  # of the heading it begins with; 0: it begins with text
    is_heading_only: bool = False  # nothing but a heading
    section_chars: int = 0  # how long the part is that the heading belongs to
    table_header: tuple[int, int] = (0, 0)  # the range of the table header to put in front


def trim_blank_lines(lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without blank lines around it; an empty range if nothing is left."""
    end = start + len(lines[start:end].rstrip())
    match = _BLANK_LINES.match(lines, start, end)
    return (match.end() if match else start), end


def min_length_pattern(min_chars: int) -> re.Pattern[str]:
    """Return a pattern that matches where at least so many non-blank characters follow."""
    return re.compile(rf"(?:\s*+\S){{{max(0, min_chars)}}}")


def belongs_to_next(current: ChunkRange, following: ChunkRange) -> bool:
    """Say whether a small piece reads better in front of the following one than behind the last."""
    return current.is_heading_only or 0 < current.level < following.level


def join_small_ranges(
    lines: str,
    ranges: Sequence[ChunkRange],
    max_chars: int,
    min_length: re.Pattern[str],
    joins_next: Callable[[ChunkRange, ChunkRange], bool] = belongs_to_next,
) -> list[ChunkRange]:
    """Join small pieces to a neighbour where the two fit; none is dropped."""
    small = [min_length.match(lines, piece.start, piece.end) is None for piece in ranges]
    if not any(small):
        return list(ranges)
    out: list[ChunkRange] = []
    hungry = False  # the last piece is still too small
    for number, piece in enumerate(ranges):
        follows = number + 1 < len(ranges)
        # Several small ones in a row gather until they are enough; else a glossary would end up in one lump.
        stays = follows and (small[number + 1] or joins_next(piece, ranges[number + 1]))
        if out and _fits(out[-1], piece, max_chars) and (hungry or (small[number] and not stays)):
            out[-1] = _join_ranges(out[-1], piece)
            hungry = min_length.match(lines, out[-1].start, out[-1].end) is None
            continue
        if hungry:
            _join_backwards(out, max_chars)
        out.append(piece)
        hungry = small[number]
    if hungry:
        _join_backwards(out, max_chars)
    return out


def _join_backwards(ranges: list[ChunkRange], max_chars: int) -> None:
    """Join the last piece backwards, since it found no place in what follows."""
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
    """Number the pieces and count their lines."""
    out = []
    line, at = 1, 0
    for index, piece in enumerate(ranges):
        start, end, header = piece.start, piece.end, piece.table_header
        # Context rows may make a piece begin before the last one.
        line += lines.count("\n", at, start) if start >= at else -lines.count("\n", start, at)
        at = start
        out.append(
            Chunk(
                index,
                start,
                end,
                line,
                line + lines.count("\n", start, end),
                text[header[0] : header[1]] + text[start:end],
                piece.heading,
                piece.heading_path,
            )
        )
    return out
