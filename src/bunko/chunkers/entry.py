"""A short entry of any kind comes in, one chunk goes out; only what is too long is cut."""

from __future__ import annotations

from bunko.chunkers import merge
from bunko.chunkers.detect import MARKDOWN
from bunko.chunkers.headings import Headings
from bunko.chunkers.merge import Piece
from bunko.chunkers.split import split
from bunko.readers.outline import unify
from bunko.types import Chunk, Text


class Entry:
    """One chunk as long as it fits; past that Markdown is cut at headings, other text at paragraphs and sentences."""

    def __init__(self, max_chars: int, headings: Headings) -> None:
        self._max_chars = max_chars
        self._headings = headings

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order."""
        lines = unify(text.text)
        start, end = merge.trimmed(lines, text.body, len(lines))
        if end - start > self._max_chars:
            if text.media_type in MARKDOWN:
                return self._headings.chunks(text)
            parts = split(lines, start, end, self._max_chars)
            return merge.chunks(text.text, lines, [Piece(part.start, part.end) for part in parts])
        return merge.chunks(text.text, lines, [Piece(start, end)] if start < end else [])


def build(max_chars: int, headings: Headings) -> Entry:
    """Keep an entry whole as long as it fits."""
    return Entry(max_chars, headings)
