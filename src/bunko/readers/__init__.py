"""The bytes and the name of a file come in, its text with title, date and tags goes out."""

from __future__ import annotations

from bunko.readers import markdown, plain
from bunko.readers.encoding import decode
from bunko.types import Text

__all__ = ["read"]

_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")


def read(data: bytes, name: str) -> Text:
    """Decode a file and read what it says about itself; a SourceError says why it is not text."""
    text, encoding = decode(data)
    if name.casefold().endswith(_MARKDOWN):
        return markdown.read(text, encoding)
    return plain.read(text, encoding)
