"""Split prose into overlapping chunks of similar size."""

from __future__ import annotations

from bunko.chunkers import split
from bunko.chunkers.split import split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text


class Prose:
    """Packs paragraphs, else sentences, else characters into chunks up to a size."""

    def __init__(self, size: int, overlap: int) -> None:
        self._size = size
        self._overlap = overlap

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order; each begins with the end of the previous one."""
        lines = unify_line_ends(text.text)
        parts = split_range(lines, text.body_start, len(lines), self._size, overlap=self._overlap)
        return split.build_chunks(text.text, lines, [split.ChunkRange(part.start, part.end) for part in parts])


def build(size: int = 200, overlap: int = 30) -> Prose:
    """Split prose into overlapping chunks of at most `size` characters, including the overlap."""
    return Prose(size, overlap)
