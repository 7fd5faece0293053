"""The text of a plain file comes in and goes out as it is: it says nothing about itself."""

from __future__ import annotations

from bunko.types import Text


def read(text: str, encoding: str) -> Text:
    """Return the text, all of it body."""
    return Text(text=text, media_type="text/plain", encoding=encoding)
