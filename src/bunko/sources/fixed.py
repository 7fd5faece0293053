"""Documents that follow no folder, such as those of an imported pack: they change only when they are imported again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
