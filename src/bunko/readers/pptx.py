"""Read presentations (PPTX)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.readers.reader import Reader

if TYPE_CHECKING:
    from bunko.types import Text


def read(data: bytes) -> Text:
    """Return the text of a presentation; raise SourceError if there is none."""
    from bunko.readers.office import slides

    return slides.read(data)


READER = Reader(
    read,
    suffixes=(".pptx", ".pptm", ".ppsx", ".ppsm", ".potx"),
    media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
    default_suffixes=(".pptx", ".pptm", ".ppsx"),
    label="PowerPoint",
)
