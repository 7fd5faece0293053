"""Choose the chunker that suits a text."""

from __future__ import annotations

from bunko.chunkers.detect import MARKDOWN_TYPES, content_type
from bunko.chunkers.headings import Headings
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.tables import Tables
from bunko.types import Chunk, Text


class Auto:
    """Splits Markdown by headings, tables by rows and everything else by paragraphs."""

    def __init__(self, headings: Headings, paragraphs: Paragraphs, tables: Tables) -> None:
        self._headings = headings
        self._paragraphs = paragraphs
        self._tables = tables

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        if text.media_type in MARKDOWN_TYPES:
            sections = self._headings.chunks(text)
            # A document with headings is more than its tables: they stay under their headings.
            if any(chunk.heading for chunk in sections) or content_type(text.text[text.body_start :]) != "table":
                return sections
        elif content_type(text.text[text.body_start :]) != "table":
            return self._paragraphs.chunks(text)
        return self._tables.chunks(text)


def build(headings: Headings, paragraphs: Paragraphs, tables: Tables) -> Auto:
    """Choose by the type of the text."""
    return Auto(headings, paragraphs, tables)
