"""A text of any kind comes in, the chunks of the chunker that suits it go out."""

from __future__ import annotations

from bunko.chunkers.detect import MARKDOWN_TYPES, content_type
from bunko.chunkers.headings import Headings
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.tables import Tables
from bunko.types import Chunk, Text


class Auto:
    """Markdown by headings, tables row by row, everything else by paragraphs."""

    def __init__(self, headings: Headings, paragraphs: Paragraphs, tables: Tables) -> None:
        self._headings = headings
        self._paragraphs = paragraphs
        self._tables = tables

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the pieces in order."""
        if text.media_type in MARKDOWN_TYPES:
            found = self._headings.chunks(text)
            # A document with headings is more than its tables: they keep their place under them.
            if any(chunk.heading for chunk in found) or content_type(text.text[text.body_start :]) != "table":
                return found
        elif content_type(text.text[text.body_start :]) != "table":
            return self._paragraphs.chunks(text)
        return self._tables.chunks(text)


def build(headings: Headings, paragraphs: Paragraphs, tables: Tables) -> Auto:
    """Choose by what the text is."""
    return Auto(headings, paragraphs, tables)
