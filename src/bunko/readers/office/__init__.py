"""Read what office programs write: Word documents, presentations, workbooks and e-books."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from bunko.readers.reader import Reader

if TYPE_CHECKING:
    from bunko.types import Text


def _reader(module: str) -> Callable[[bytes], Text]:
    """Return the `read` of a module here, which is imported with the first file that needs it."""

    def read(data: bytes) -> Text:
        text: Text = import_module(f"{__name__}.{module}").read(data)
        return text

    return read


READERS = {
    "docx": Reader(
        _reader("docx"),
        suffixes=(".docx", ".docm", ".dotx", ".dotm"),
        media_type="application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        default_suffixes=(".docx", ".docm"),
        label="Word",
    ),
    "epub": Reader(
        _reader("epub"),
        suffixes=(".epub",),
        media_type="application/epub+zip",
        default_suffixes=(".epub",),
        label="EPUB",
    ),
    "pptx": Reader(
        _reader("pptx"),
        suffixes=(".pptx", ".pptm", ".ppsx", ".ppsm", ".potx"),
        media_type="application/vnd.openxmlformats-officedocument.presentationml.presentation",
        default_suffixes=(".pptx", ".pptm", ".ppsx"),
        label="PowerPoint",
    ),
    "xlsx": Reader(
        _reader("xlsx"),
        suffixes=(".xlsx", ".xlsm", ".xltx", ".xltm"),
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        default_suffixes=(".xlsx", ".xlsm"),
        label="Excel",
    ),
}
