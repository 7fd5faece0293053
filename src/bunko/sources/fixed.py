"""Sources without a folder: the documents of an imported pack, and a stand-in for a source that cannot be built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from bunko.errors import SourceError
from bunko.protocols import Scan
from bunko.types import Fingerprint, SourceEntry, Text


class FixedDocuments:
    """The documents of a tool without a source; a scan finds them unchanged."""

    def __init__(self, tool_name: str) -> None:
        self._tool_name = tool_name

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Return that nothing has changed; raise if there is nothing yet, because a rebuild has nothing to read."""
        if not fingerprints:
            raise self._error()
        return Scan(unchanged=len(fingerprints))

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Raise: there is no file to read."""
        raise self._error()

    def text(self, data: bytes, entry: SourceEntry) -> Text:
        """Raise: there is no file to read."""
        raise self._error()

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return False: there is no folder that could be missing."""
        return False

    def _error(self) -> SourceError:
        return SourceError(
            f"{self._tool_name} follows no folder that its documents could be read from",
            hint="Import its pack again with: bunko import-pack FILE --replace. Or choose a folder with:"
            " bunko tool update -s DIR.",
        )


class UnusableSource:
    """A source that raises its error at each question."""

    def __init__(self, error: SourceError) -> None:
        self._error = error

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Raise: the changes are unknown."""
        self._fail()

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Raise: there is nothing to read from."""
        self._fail()

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Raise: it may be there, or not."""
        self._fail()

    def _fail(self) -> NoReturn:
        raise SourceError(self._error.message, hint=self._error.hint)
