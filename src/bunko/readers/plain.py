"""Read plain text files."""

from __future__ import annotations

from bunko.types import Text


def read(text: str, encoding: str) -> Text:
    """Return the text unchanged, without metadata."""
    return Text(text=text, media_type="text/plain", encoding=encoding)
