"""Markdown comes in, a chunk for each section goes out, with the headings it stands under."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.chunkers import merge
from bunko.chunkers.merge import Piece
from bunko.chunkers.split import Solid, split
from bunko.chunkers.tables import markdown_tables
from bunko.readers.outline import Heading, Verbatim, scan, unify
from bunko.types import Chunk, Text

_NO_HEADING = Heading(0, 0, 0, "", "")


class Headings:
    """What headings part, the heading included; deeper headings than those given do not cut."""

    def __init__(self, max_chars: int, min_chars: int, levels: Sequence[int], overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._full = merge.enough(min_chars)
        self._levels = frozenset(levels)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order."""
        lines = unify(text.text)
        found: list[Piece] = []
        open_headings: list[Heading] = []
        start, heading, verbatim = text.body, _NO_HEADING, []
        for mark in scan(lines, text.body):
            if isinstance(mark, Verbatim):
                verbatim.append(mark)
            elif mark.level in self._levels:
                self._section(found, lines, start, mark.start, heading, open_headings, verbatim)
                while open_headings and open_headings[-1].level >= mark.level:
                    open_headings.pop()
                open_headings.append(mark)
                start, heading, verbatim = mark.start, mark, []
        self._section(found, lines, start, len(lines), heading, open_headings, verbatim)
        return merge.chunks(text.text, lines, merge.joined(lines, found, self._max_chars, self._full))

    def _section(
        self,
        found: list[Piece],
        lines: str,
        start: int,
        end: int,
        heading: Heading,
        open_headings: Sequence[Heading],
        verbatim: Sequence[Verbatim],
    ) -> None:
        start, end = merge.trimmed(lines, start, end)
        if start >= end:
            return
        path = tuple(heading.title for heading in open_headings if heading.title)
        weight = end - start
        if weight <= self._max_chars:
            bare = end <= heading.end
            found.append(Piece(start, end, heading.source, path, heading.level, bare, weight))
            return
        solids = _solids(lines, start, end, verbatim)
        level = heading.level
        for part in split(lines, start, end, self._max_chars, overlap=self._overlap, solids=solids):
            size = part.end - part.start
            found.append(Piece(part.start, part.end, heading.source, path, level, False, size, part.header))
            level = 0


def _solids(lines: str, start: int, end: int, verbatim: Sequence[Verbatim]) -> list[Solid]:
    """Return the stretches that are better not cut, in order and apart from each other."""
    solids = [Solid(block.start, block.end) for block in verbatim]
    between = [start, *(edge for block in verbatim for edge in block), end]
    for low, high in zip(between[::2], between[1::2], strict=True):
        for table in markdown_tables(lines, low, high):
            solids.append(Solid(table.start, table.end, (table.start, table.rows)))
    return sorted(solids)


def build(max_chars: int = 3000, min_chars: int = 50, levels: Sequence[int] = (1, 2, 3), overlap: int = 0) -> Headings:
    """Cut Markdown at its headings; parts of a section that is too long share up to `overlap` characters."""
    return Headings(max_chars, min_chars, levels, overlap)
