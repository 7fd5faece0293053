"""Plain text comes in, a chunk for each paragraph goes out."""

from __future__ import annotations

import re

from bunko.chunkers import merge
from bunko.chunkers.merge import Piece
from bunko.chunkers.split import split
from bunko.readers.outline import unify
from bunko.types import Chunk, Text

_GAP = re.compile(r"\n(?:[^\S\n]*+\n)++")


class Paragraphs:
    """What blank lines part; small paragraphs are joined to a neighbour, long ones are split at sentences."""

    def __init__(self, max_chars: int, min_chars: int, overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._full = merge.enough(min_chars)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order."""
        lines = unify(text.text)
        return merge.chunks(text.text, lines, self.pieces(lines, text.body, len(lines)))

    def pieces(self, lines: str, start: int, end: int) -> list[Piece]:
        """Return the pieces of one stretch of a text."""
        found: list[Piece] = []
        for gap in _GAP.finditer(lines, start, end):
            self._add(found, lines, start, gap.start())
            start = gap.end()
        self._add(found, lines, start, end)
        # A short paragraph is most often a title or the start of a list, and belongs to what follows.
        return merge.joined(lines, found, self._max_chars, self._full, lambda piece, following: True)

    def _add(self, found: list[Piece], lines: str, start: int, end: int) -> None:
        start, end = merge.trimmed(lines, start, end)
        if end - start <= self._max_chars:
            if start < end:
                found.append(Piece(start, end))
        else:
            parts = split(lines, start, end, self._max_chars, overlap=self._overlap)
            found += [Piece(part.start, part.end) for part in parts]


def build(max_chars: int = 3000, min_chars: int = 50, overlap: int = 0) -> Paragraphs:
    """Cut plain text at blank lines; parts of a paragraph that is too long share up to `overlap` characters."""
    return Paragraphs(max_chars, min_chars, overlap)
