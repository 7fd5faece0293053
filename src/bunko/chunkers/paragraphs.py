"""Split plain text into paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bunko.chunkers import split
from bunko.chunkers.split import ChunkRange, split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text

_PARAGRAPH_GAP = re.compile(r"\n\s*\n")


class Paragraphs:
    """Splits at blank lines; small paragraphs are joined to a neighbour, long ones are split at sentences."""

    def __init__(self, max_chars: int, min_chars: int, overlap: int = 0) -> None:
        self._max_chars, self._overlap = max_chars, overlap
        self._min_length = split.min_length_pattern(min_chars)

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        lines = unify_line_ends(text.text)
        ranges = split.join_excess_ranges(self.chunk_ranges(lines, text.body_start, len(lines)), self._max_chars)
        return split.build_chunks(text.text, lines, ranges)

    def chunk_ranges(self, lines: str, start: int, end: int) -> Iterator[ChunkRange]:
        """Yield the ranges of the chunks between two offsets."""
        # A short paragraph is most often a title or the start of a list, and belongs to the next one.
        return split.join_small_ranges(
            lines, self._paragraph_ranges(lines, start, end), self._max_chars, self._min_length
        )

    def _paragraph_ranges(self, lines: str, start: int, end: int) -> Iterator[ChunkRange]:
        for gap in _PARAGRAPH_GAP.finditer(lines, start, end):
            yield from self._split_paragraph(lines, start, gap.start())
            start = gap.end()
        yield from self._split_paragraph(lines, start, end)

    def _split_paragraph(self, lines: str, start: int, end: int) -> Iterator[ChunkRange]:
        start, end = split.trim_blank_lines(lines, start, end)
        if end - start <= self._max_chars:
            if start < end:
                yield ChunkRange(start, end)
        else:
            for part in split_range(lines, start, end, self._max_chars, overlap=self._overlap):
                yield ChunkRange(part.start, part.end)


def build(max_chars: int = 3000, min_chars: int = 50, overlap: int = 0) -> Paragraphs:
    """Split plain text at blank lines; the parts of a long paragraph share up to `overlap` characters."""
    return Paragraphs(max_chars, min_chars, overlap)
