"""Read the parts of a ZIP file, with limits on entries, uncompressed bytes and time."""

from __future__ import annotations

import io
import re
import time
import zipfile
import zlib
from collections.abc import Iterator

from bunko.errors import SourceError

_MAX_ENTRIES = 20_000  # a long e-book has a few thousand
MAX_UNCOMPRESSED_BYTES = 256 << 20  # of all parts that are read together; a book of 1,000 pages has 20 MB of XML
MAX_ELEMENTS = 4_000_000  # of XML; the largest sheets that are read have 3 million, books of 1,000 pages one
MAX_SECONDS = 60.0
# Every feed of the XML parser may start over at the beginning of an unfinished tag, so pieces must not be small.
PIECE_BYTES = 1 << 20
# Exceptions of the standard library at damage to a ZIP file, or at an entry of an unused method.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, LookupError,
    OSError,
)  # fmt: skip
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY_MARK = b"PK\x01\x02"
# Office programs keep a document with a password, and documents of before 2007, in a container of this kind.
_OLD_CONTAINER_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Archive:
    """The parts of a ZIP file by name; nothing is written to disk, and a name never leads out of the file."""

    def __init__(self, data: bytes, kind: str) -> None:
        self.kind = kind  # for messages: Word document, e-book
        self._bytes_left = MAX_UNCOMPRESSED_BYTES
        self._elements_left = MAX_ELEMENTS
        self._deadline = time.monotonic() + MAX_SECONDS
        if data.startswith(_OLD_CONTAINER_MARK):
            raise SourceError(
                f"The {kind} is encrypted, or in the format of before 2007",
                hint="Save a copy without a password in the current format and import that.",
            )
        # Counted before the directory is read: each entry of it costs a hundred times its bytes in memory.
        if data.count(_ENTRY_MARK) > _MAX_ENTRIES:
            raise SourceError(f"The {kind} has more than {_MAX_ENTRIES:,} parts", hint="Exclude it.")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            # Names that differ in case are one part to office programs.
            self._entries = {_normalize_name(entry.filename): entry for entry in self._zip.infolist()}
        except _DAMAGE as error:
            raise self.unreadable(error) from error
        if any(entry.flag_bits & 1 for entry in self._entries.values()):
            raise SourceError(f"The {kind} is encrypted", hint="Save a copy without a password and import that.")

    def __contains__(self, name: str) -> bool:
        return _normalize_name(name) in self._entries

    def read(self, name: str) -> bytes:
        """Return a part; raise SourceError if it is missing, damaged or too large."""
        return b"".join(self.stream(name))

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield a part piece by piece; raise SourceError if it is missing, damaged or too large."""
        entry = self._entries.get(_normalize_name(name))
        if entry is None:
            raise self.unreadable(KeyError(f"{name} is missing"))
        if entry.compress_type not in _METHODS:
            raise self.unreadable(ValueError("a part is compressed by an unknown method"))
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(PIECE_BYTES):
                    self._bytes_left -= len(piece)
                    self.check_limits()
                    yield piece
        except _DAMAGE as error:
            raise self.unreadable(error) from error

    def count_elements(self, count: int) -> None:
        """Raise SourceError if all parts together have more elements than any document."""
        self._elements_left -= count
        if self._elements_left < 0:
            raise SourceError(
                f"The {self.kind} has more than {MAX_ELEMENTS:,} XML elements", hint="Split it, or exclude it."
            )

    def check_limits(self) -> None:
        """Raise SourceError if the file takes too long or turned out too large."""
        if self._bytes_left < 0 or time.monotonic() > self._deadline:
            raise SourceError(
                f"The {self.kind} is too large or too slow to read: it unpacks to more than"
                f" {MAX_UNCOMPRESSED_BYTES >> 20} MB or takes more than {MAX_SECONDS:.0f} seconds",
                hint="Split it, or exclude it.",
            )

    def unreadable(self, error: Exception) -> SourceError:
        """Return the error for a file that is damaged or not of its kind."""
        reason = error.args[0] if isinstance(error, KeyError) and error.args else error
        return SourceError(
            f"The {self.kind} cannot be read: {' '.join(str(reason).split())[:200] or type(error).__name__}",
            hint="Open it and save it again, or exclude it.",
        )


def resolve_name(base: str, target: str) -> str:
    """Return the name of a part that another part refers to; `..` stops at the top."""
    names = [] if target.startswith("/") else base.split("/")[:-1]
    for name in target.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/".join(names)


def _normalize_name(name: str) -> str:
    return re.sub(r"[\\/]+", "/", name).strip("/").lower()
