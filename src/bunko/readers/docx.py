"""Read Word documents (DOCX)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.readers.reader import Reader

if TYPE_CHECKING:
    from bunko.types import Text


def read(data: bytes) -> Text:
    """Return the text of a document; raise SourceError if there is none."""
    from bunko.readers.office import word

    return word.read(data)


READER = Reader(
    read,
    suffixes=(".docx", ".docm", ".dotx", ".dotm"),
    media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    default_suffixes=(".docx", ".docm"),
    label="Word",
)
