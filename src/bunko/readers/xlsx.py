"""Read workbooks (XLSX)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.readers.reader import Reader

if TYPE_CHECKING:
    from bunko.types import Text


def read(data: bytes) -> Text:
    """Return the text of a workbook; raise SourceError if there is none."""
    from bunko.readers.office import sheets

    return sheets.read(data)


READER = Reader(
    read,
    suffixes=(".xlsx", ".xlsm", ".xltx", ".xltm"),
    media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    default_suffixes=(".xlsx", ".xlsm"),
    label="Excel",
)
