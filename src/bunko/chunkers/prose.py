"""Running text comes in, chunks of about one size that overlap go out."""

from __future__ import annotations

from bunko.chunkers import merge
from bunko.chunkers.split import split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text


class Prose:
    """Paragraphs, else sentences, else characters, packed up to a size."""

    def __init__(self, size: int, overlap: int) -> None:
        self._size = size
        self._overlap = overlap

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order, each beginning with the end of the one before."""
        lines = unify_line_ends(text.text)
        parts = split_range(lines, text.body_start, len(lines), self._size, overlap=self._overlap)
        return merge.build_chunks(text.text, lines, [merge.ChunkRange(part.start, part.end) for part in parts])


def build(size: int = 200, overlap: int = 30) -> Prose:
    """Cut running text into overlapping chunks of `size` characters at most, the overlap included."""
    return Prose(size, overlap)
