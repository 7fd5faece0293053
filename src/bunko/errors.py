"""Define the errors that are shown to the user: a message, a hint what to do next, and a stable code.

BunkoError
├── SettingsError      settings      a setting is unknown, of the wrong type or out of range
├── SourceError        source        a folder or file cannot be read at all
│   ├── AddressRefused   refused       an address may not be fetched
│   └── FetchFailed      fetch         a page could not be fetched
├── QueryError         query         a search request is not valid
├── EmbedderError      embedder      embeddings cannot be computed
├── ModelError         model         a local model cannot be fetched, read or run
├── PackageError       package       a package that bunko needs cannot be used
├── IndexFailure       index         an index server or the files of an index cannot be used
├── ClusterError       cluster       a cluster that should run an import cannot be used
├── UnknownName        unknown       no such tool, document or provider
├── AccessDenied       denied        the rights of a token do not allow it
└── LibraryError       library       the library cannot be used
    ├── LibraryBusy      busy          another process is writing and did not finish in time
    ├── LibraryTooNew    too-new       the library was made by a newer bunko
    ├── LibraryDamaged   damaged       the library file is damaged or not a library
    ├── LibraryMismatch  mismatch      the library was built with different settings
    ├── LibraryReadOnly  read-only     the library cannot be written
    ├── DiskFull         disk-full     the disk is full
    ├── LibraryUnreachable  unreachable  the server of the library does not answer
    └── LibraryMoved     moved         the library is somewhere else now

Any other exception is a bug in bunko and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal


class BunkoError(Exception):
    """An error with a message for the user."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class SettingsError(BunkoError):
    """A setting is unknown, of the wrong type or out of range."""

    code = "settings"


class SourceError(BunkoError):
    """A folder or file cannot be read at all."""

    code = "source"


RefusalReason = Literal["private-address", "robots", "crawl-delay", "invalid-url", "port", "threat", "other"]
FailureReason = Literal["timeout", "no-text", "robots", "unresolved", "media-type", "other"]


class AddressRefused(SourceError):
    """An address may not be fetched; no request was sent."""

    code = "refused"

    def __init__(self, message: str, *, hint: str = "", reason: RefusalReason = "other") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class FetchFailed(SourceError):
    """A page could not be fetched."""

    code = "fetch"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int = 0,
        location: str = "",
        retry_after: float = 0.0,
        reason: FailureReason = "other",
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.status = status  # 0: the server did not answer
        self.location = location
        self.retry_after = retry_after  # in seconds


class QueryError(BunkoError):
    """A search request is not valid."""

    code = "query"


class EmbedderError(BunkoError):
    """Embeddings cannot be computed."""

    code = "embedder"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        # The vectors that were computed before the error, by the position of their text.
        self.partial_vectors: Mapping[int, Any] = {}


class ModelError(BunkoError):
    """A local model cannot be fetched, read or run."""

    code = "model"


class PackageError(BunkoError):
    """A package that bunko needs is missing or cannot be used."""

    code = "package"


class IndexFailure(BunkoError):
    """An index server or the files of an index cannot be used; the library itself is not affected."""

    code = "index"

    def __init__(self, message: str, *, hint: str = "", is_away: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_away = is_away  # a server did not answer: the next search should not wait for it again


class ClusterError(BunkoError):
    """A cluster that should run an import cannot be used; what was imported before is kept."""

    code = "cluster"

    def __init__(self, message: str, *, hint: str = "", is_lost: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_lost = is_lost  # it stopped answering during the import


class UnknownName(BunkoError):
    """No such tool, document or provider."""

    code = "unknown"


class AccessDenied(BunkoError):
    """The rights of a token do not allow it."""

    code = "denied"


class LibraryError(BunkoError):
    """The library cannot be used."""

    code = "library"


class LibraryBusy(LibraryError):
    """Another process is writing and did not finish in time."""

    code = "busy"


class LibraryTooNew(LibraryError):
    """The library was made by a newer bunko."""

    code = "too-new"


class LibraryDamaged(LibraryError):
    """The library file is damaged or not a library."""

    code = "damaged"


class LibraryMismatch(LibraryError):
    """The library was built with different settings."""

    code = "mismatch"


class LibraryReadOnly(LibraryError):
    """The library cannot be written."""

    code = "read-only"


class DiskFull(LibraryError):
    """The disk is full."""

    code = "disk-full"


def name_taken_error(name: str) -> SettingsError:
    """Return the error for a name that another tool has."""
    return SettingsError(f"A tool named {name!r} already exists", hint="Choose another name.")


class LibraryUnreachable(LibraryError):
    """The server of the library does not answer."""

    code = "unreachable"

    was_committing = False  # if so, nobody knows whether the transaction was committed
    is_overloaded = False  # it answers, but has no connection left


class LibraryMoved(LibraryError):
    """The library is somewhere else now, and what is left here may not be changed."""

    code = "moved"


def moved_error(location: str, place: str) -> LibraryMoved:
    """Return the error for a library that is somewhere else now."""
    return LibraryMoved(
        f"{location} has moved to {place}",
        hint="Start servers and watchers again, and name the new place in the settings of other machines. If that is"
        " lost, use what is left here: bunko move --undo.",
    )


def unfinished_error(location: str) -> LibraryError:
    """Return the error for a copy that a move or a restore has not finished."""
    return LibraryError(
        f"{location} is an unfinished copy of a library",
        hint="Run the same bunko move or bunko restore again: it continues.",
    )


# For a library that lacks what an import can read again.
INCOMPLETE_HINT = (
    "Rebuild the index: bunko reindex --force, with the same --docs-dir or --library. Your documents are not affected."
)


def rebuild_hint(location: Path | str) -> str:
    """Return the hint for a library that no command can repair."""
    if str(location).startswith("postgresql:"):
        return (
            "Restore the database from its backup, or name an empty schema with storage.schema and import again."
            " Your documents are not affected."
        )
    if location == "memory":
        return "Close it and open it again: it begins empty. Your documents are not affected."
    return (
        f"Delete {location} or move it away, then import again: bunko reindex --docs-dir DIR, or bunko tool add and"
        " bunko import. Your documents are not affected."
    )
