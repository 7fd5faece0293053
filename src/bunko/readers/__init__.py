"""The bytes and the name of a file come in, its text with title, date and tags goes out."""

from __future__ import annotations

from bunko.readers import markdown, plain
from bunko.readers.encoding import decode
from bunko.types import Text

__all__ = ["read"]

_MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")


def read(data: bytes, name: str) -> Text:
    """Decode a file and read what it says about itself; a SourceError says why it is not text."""
    ending = name.casefold()
    # What these need is loaded where there is a file of their kind.
    if ending.endswith(_HTML_SUFFIXES):
        from bunko.readers import html

        return html.read(data).text
    if ending.endswith(".pdf"):
        from bunko.readers import pdf

        return pdf.read(data)
    text, encoding = decode(data)
    if ending.endswith(_MARKDOWN_SUFFIXES):
        return markdown.read(text, encoding)
    return plain.read(text, encoding)
