"""Choose the chunker that suits a text."""

from __future__ import annotations

from bunko.chunkers.detect import MARKDOWN_TYPES, content_type
from bunko.chunkers.headings import Headings
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.tables import Tables
from bunko.readers.outline import Heading, scan_outline, unify_line_ends
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
            # A document with headings is more than its tables: they stay under their headings.
            if _has_heading(text) or content_type(text.text[text.body_start :]) != "table":
                return self._headings.chunks(text)
        elif content_type(text.text[text.body_start :]) != "table":
            return self._paragraphs.chunks(text)
        return self._tables.chunks(text)


def _has_heading(text: Text) -> bool:
    return any(isinstance(block, Heading) for block in scan_outline(unify_line_ends(text.text), text.body_start))


def build(headings: Headings, paragraphs: Paragraphs, tables: Tables) -> Auto:
    """Choose by the type of the text."""
    return Auto(headings, paragraphs, tables)
