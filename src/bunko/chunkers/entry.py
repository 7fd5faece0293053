"""Keep short entries whole, and split only those that are too long."""

from __future__ import annotations

from bunko.chunkers import split
from bunko.chunkers.detect import has_headings
from bunko.chunkers.headings import Headings
from bunko.chunkers.split import ChunkRange, split_range
from bunko.readers.outline import unify_line_ends
from bunko.types import Chunk, Text


class WholeEntry:
    """Keeps an entry whole if it fits; splits longer text at its headings, other text at paragraphs and sentences."""

    def __init__(self, max_chars: int, headings: Headings) -> None:
        self._max_chars = max_chars
        self._headings = headings

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        lines = unify_line_ends(text.text)
        start, end = split.trim_blank_lines(lines, text.body_start, len(lines))
        if end - start > self._max_chars:
            if has_headings(text.media_type):
                return self._headings.chunks(text)
            parts = split_range(lines, start, end, self._max_chars)
            return split.build_chunks(text.text, lines, [ChunkRange(part.start, part.end) for part in parts])
        return split.build_chunks(text.text, lines, [ChunkRange(start, end)] if start < end else [])


def build(max_chars: int, headings: Headings) -> WholeEntry:
    """Keep an entry whole if it fits."""
    return WholeEntry(max_chars, headings)
