"""Ranges of a text come in; they are trimmed, joined where they are too small, and go out as chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bunko.types import Chunk

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")


class Piece(NamedTuple):
    """A range that becomes a chunk."""

    start: int
    end: int
    heading: str = ""
    path: tuple[str, ...] = ()
    level: int = 0  # of the heading it begins with; 0: it begins with text
    bare: bool = False  # nothing but a heading
    weight: int = 0  # how long the part is that the heading belongs to
    header: tuple[int, int] = (0, 0)  # the range of the table header to put in front


def trimmed(lines: str, start: int, end: int) -> tuple[int, int]:
    """Return the range without blank lines around it; an empty range if nothing is left."""
    end = start + len(lines[start:end].rstrip())
    match = _BLANK_LINES.match(lines, start, end)
    return (match.end() if match else start), end


def enough(min_chars: int) -> re.Pattern[str]:
    """Return a pattern that matches where at least so many non-blank characters follow."""
    return re.compile(rf"(?:\s*+\S){{{max(0, min_chars)}}}")


def waits(piece: Piece, following: Piece) -> bool:
    """Say whether a small piece reads better in front of the following one than behind the last."""
    return piece.bare or 0 < piece.level < following.level


def joined(
    lines: str,
    pieces: Sequence[Piece],
    max_chars: int,
    full: re.Pattern[str],
    wait: Callable[[Piece, Piece], bool] = waits,
) -> list[Piece]:
    """Join small pieces to a neighbour where the two fit; none is dropped."""
    small = [full.match(lines, piece.start, piece.end) is None for piece in pieces]
    if not any(small):
        return list(pieces)
    out: list[Piece] = []
    hungry = False  # the last piece is still too small
    for number, piece in enumerate(pieces):
        follows = number + 1 < len(pieces)
        # Several small ones in a row gather until they are enough; else a glossary would end up in one lump.
        stays = follows and (small[number + 1] or wait(piece, pieces[number + 1]))
        if out and _fits(out[-1], piece, max_chars) and (hungry or (small[number] and not stays)):
            out[-1] = _join(out[-1], piece)
            hungry = full.match(lines, out[-1].start, out[-1].end) is None
            continue
        if hungry:
            _settle(out, max_chars)
        out.append(piece)
        hungry = small[number]
    if hungry:
        _settle(out, max_chars)
    return out


def _settle(out: list[Piece], max_chars: int) -> None:
    """Join the last piece backwards, since it found no place in what follows."""
    if len(out) > 1 and _fits(out[-2], out[-1], max_chars):
        last = out.pop()
        out[-1] = _join(out[-1], last)


def _fits(first: Piece, second: Piece, max_chars: int) -> bool:
    return second.end - first.start <= max_chars


def _join(first: Piece, second: Piece) -> Piece:
    larger = second if second.weight > first.weight else first
    return Piece(
        first.start,
        second.end,
        larger.heading,
        larger.path,
        first.level,
        False,
        larger.weight,
        first.header,
    )


def chunks(text: str, lines: str, pieces: Sequence[Piece]) -> list[Chunk]:
    """Number the pieces and count their lines."""
    out = []
    line, at = 1, 0
    for index, piece in enumerate(pieces):
        start, end, header = piece.start, piece.end, piece.header
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
                piece.path,
            )
        )
    return out
