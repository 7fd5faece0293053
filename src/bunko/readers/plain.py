"""Read plain text files."""

from __future__ import annotations

from bunko.readers.encoding import decode
from bunko.readers.reader import Reader
from bunko.types import Text


def read(text: str, encoding: str) -> Text:
    """Return the text unchanged, without metadata."""
    return Text(text=text, media_type="text/plain", encoding=encoding)


def read_file(data: bytes) -> Text:
    """Read a file in any encoding; raise SourceError if it is not text."""
    return read(*decode(data))


READER = Reader(
    read_file,
    suffixes=(".txt", ".text", ".changelog"),
    media_type="text/plain",
    default_suffixes=(".txt",),
    label="text",
)
