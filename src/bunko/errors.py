"""Errors that a user can act on: a message says what happened, a hint what to do, a code is what programs match.

BunkoError
├── SettingsError      settings      a setting is unknown, of the wrong type or impossible
├── SourceError        source        a folder or file cannot be read at all
│   ├── Refused          refused       an address that may not be fetched
│   └── FetchFailed      fetch         a page could not be fetched
├── QueryError         query         a search asks for something that makes no sense
├── EmbedderError      embedder      vectors cannot be made
├── UnknownName        unknown       no such tool, document or provider
└── LibraryError       library       the library itself is in the way
    ├── LibraryBusy      busy          another process is writing and did not finish in time
    ├── LibraryTooNew    too-new       made by a newer bunko
    ├── LibraryDamaged   damaged       the library file is not readable
    ├── LibraryMismatch  mismatch      built with other settings than the ones in force
    ├── LibraryReadOnly  read-only     the place cannot be written
    └── DiskFull         disk-full     no room left

Anything else that is raised is our bug and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class BunkoError(Exception):
    """Something went wrong that the user should read about."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class SettingsError(BunkoError):
    """A setting is unknown, of the wrong type or impossible."""

    code = "settings"


class SourceError(BunkoError):
    """A folder or file cannot be read at all."""

    code = "source"


class AddressRefused(SourceError):
    """An address that may not be fetched; nothing was sent to it."""

    code = "refused"


class FetchFailed(SourceError):
    """A page could not be fetched: `status` is what the server answered (0: nothing), `retry_after` in seconds."""

    code = "fetch"

    def __init__(
        self, message: str, *, hint: str = "", status: int = 0, location: str = "", retry_after: float = 0.0
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.location = location
        self.retry_after = retry_after


class QueryError(BunkoError):
    """A search asks for something that makes no sense."""

    code = "query"


class EmbedderError(BunkoError):
    """Vectors cannot be made; `came` are those that were made all the same, by the place of their texts."""

    code = "embedder"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.partial_vectors: Mapping[int, Any] = {}


class UnknownName(BunkoError):
    """No such tool, document or provider."""

    code = "unknown"


class LibraryError(BunkoError):
    """The library itself is in the way."""

    code = "library"


class LibraryBusy(LibraryError):
    """Another process is writing and did not finish in time."""

    code = "busy"


class LibraryTooNew(LibraryError):
    """The library was made by a newer bunko."""

    code = "too-new"


class LibraryDamaged(LibraryError):
    """The library file is not readable as a library."""

    code = "damaged"


class LibraryMismatch(LibraryError):
    """The library was built with other settings than the ones in force."""

    code = "mismatch"


class LibraryReadOnly(LibraryError):
    """The library's place cannot be written."""

    code = "read-only"


class DiskFull(LibraryError):
    """There is no room left for the library."""

    code = "disk-full"
