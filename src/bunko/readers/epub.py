"""Read e-books (EPUB)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.readers.reader import Reader

if TYPE_CHECKING:
    from bunko.types import Text


def read(data: bytes) -> Text:
    """Return the text of an e-book; raise SourceError if there is none."""
    from bunko.readers.office import book

    return book.read(data)


READER = Reader(
    read,
    suffixes=(".epub",),
    media_type="application/epub+zip",
    default_suffixes=(".epub",),
    label="EPUB",
)
