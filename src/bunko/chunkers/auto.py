"""Choose the chunker that suits a text."""

from __future__ import annotations

from bunko.chunkers.detect import WHOLE_TYPES, content_type, has_headings
from bunko.chunkers.entry import WholeEntry
from bunko.chunkers.headings import Headings
from bunko.chunkers.paragraphs import Paragraphs
from bunko.chunkers.tables import Tables
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.types import Chunk, Text


class Auto:
    """Splits text with headings by these, tables by rows and everything else by paragraphs; keeps messages whole."""

    def __init__(self, headings: Headings, paragraphs: Paragraphs, tables: Tables, whole: WholeEntry) -> None:
        self._headings = headings
        self._paragraphs = paragraphs
        self._tables = tables
        self._whole = whole

    def chunks(self, text: Text) -> list[Chunk]:
        """Return the chunks in order."""
        if text.media_type in WHOLE_TYPES:
            return self._whole.chunks(text)
        if has_headings(text.media_type):
            # A document with headings is more than its tables: they stay under their headings.
            outline = scan_outline(unify_line_ends(text.text), text.body_start, media_type=text.media_type)
            if (
                any(isinstance(block, Heading) for block in outline)
                or content_type(text.text[text.body_start :]) != "table"
            ):
                return self._headings.chunks(text)
        elif content_type(text.text[text.body_start :]) != "table":
            return self._paragraphs.chunks(text)
        return self._tables.chunks(text)


def build(headings: Headings, paragraphs: Paragraphs, tables: Tables, whole: WholeEntry) -> Auto:
    """Choose by the type of the text."""
    return Auto(headings, paragraphs, tables, whole)
