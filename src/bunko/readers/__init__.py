"""Read files of any supported format as text with title, date and tags."""

from __future__ import annotations

from bunko.readers import markdown, plain
from bunko.readers.encoding import decode
from bunko.types import Text

__all__ = ["read"]

_MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")


def read(data: bytes, name: str) -> Text:
    """Read a file by the suffix of its name; raise SourceError if it holds no text."""
    file_name = name.casefold()
    # The parsers are imported only when a file needs them.
    if file_name.endswith(_HTML_SUFFIXES):
        from bunko.readers import html

        return html.read(data).text
    if file_name.endswith(".pdf"):
        from bunko.readers import pdf

        return pdf.read(data)
    text, encoding = decode(data)
    if file_name.endswith(_MARKDOWN_SUFFIXES):
        return markdown.read(text, encoding)
    return plain.read(text, encoding)
