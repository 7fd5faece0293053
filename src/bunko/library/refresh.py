"""A tool about to be searched in, its folder's changes absorbed out, as far as that is quick."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from bunko.errors import DiskFull, LibraryBusy, LibraryReadOnly
from bunko.protocols import Scan, Source, Store
from bunko.sources import KINDS
from bunko.timing import now, timer
from bunko.types import Tool

_log = logging.getLogger("bunko.library")

# Imports what a scan found, unless the library has moved on from the generation it was made at.
ImportScan = Callable[[Tool, Scan, int, Callable[[], bool]], None]


class SourceCheck(NamedTuple):
    """One look at a tool's folder."""

    monotonic_seconds: float  # on the clock that never goes back
    checked_at: str  # the same for people
    missing_files: int  # changed files that the index did not have


class Refresher:
    """Looks for changes before a search, at most once in a moment, and lets long imports go on behind it."""

    def __init__(
        self,
        store: Store,
        source_of: Callable[[Tool], Source],
        import_scan: ImportScan,
        *,
        refresh_interval: float,
        wait_seconds: float,
    ) -> None:
        self._store, self._source_of, self._import_scan = store, source_of, import_scan
        self._refresh_interval, self._wait_seconds = refresh_interval, wait_seconds
        self._checks: dict[int, SourceCheck] = {}
        self._check_lock = threading.Lock()
        self._running_import: _ImportThread | None = None

    def refresh_tool(self, tool: Tool) -> list[str]:
        """Absorb what changed in a tool's folder; return what the user should know about it."""
        if tool.kind not in KINDS:
            return []
        with self._check_lock:  # one look at a time: a second import would only wait for the first
            running = self._running_import if self.is_importing() else None
            if running is None:
                looked = self._checks.get(tool.id)
                if looked and time.monotonic() - looked.monotonic_seconds < self._refresh_interval:
                    return []
                source, generation, known = (
                    self._source_of(tool),
                    self._store.generation(),
                    self._store.fingerprints(tool.id),
                )
                if source.has_vanished(known):
                    return [f"{tool.source} has vanished or is empty; this answers from what was indexed before."]
                with timer("file_scan", _log):
                    scan = source.scan(known)
                changed = len(scan.added) + len(scan.updated) + len(scan.deleted) - len(scan.moved)
                self._checks[tool.id] = SourceCheck(time.monotonic(), now(), changed)
                if not changed and not scan.touched:
                    return []
                running = self._running_import = _ImportThread(
                    lambda stopped: self._import_scan(tool, scan, generation, stopped)
                )
                running.start()
        # Whoever comes while an import is young waits as long as the one that began it.
        running.join(max(0.0, self._wait_seconds - running.age()))
        return self._import_notices(tool, running)

    def _import_notices(self, tool: Tool, running: _ImportThread) -> list[str]:
        missing = self.last_check(tool).missing_files
        if running.is_alive():
            number = f"{missing} changed files are" if missing else "Changed files are"
            return [f"{number} still being indexed; this answers from what there is already."]
        if isinstance(running.error, LibraryBusy):
            return ["Another process is importing into this library; this answers from what there is already."]
        if isinstance(running.error, LibraryReadOnly | DiskFull):
            # Where only times were to be written down, nothing is missing from the answer.
            return [f"{missing} changed files could not be indexed: {running.error.message}."] if missing else []
        if running.error is not None:
            raise running.error
        return []

    def last_check(self, tool: Tool) -> SourceCheck:
        """Return the last look at a tool's folder, by us or by whoever imported it."""
        return self._checks.get(tool.id, SourceCheck(0.0, tool.checked_at, 0))

    def mark_fresh(self, tool: Tool) -> None:
        """Note that an import has just taken everything in."""
        self._checks[tool.id] = SourceCheck(time.monotonic(), now(), 0)

    def is_importing(self) -> bool:
        """Say whether an import that a search began is still going on."""
        return self._running_import is not None and self._running_import.is_alive()

    def stop(self) -> None:
        """End what goes on behind a search; what was written stays."""
        if self._running_import is not None:
            self._running_import.stop_event.set()
            self._running_import.join()


class _ImportThread(threading.Thread):
    """An import that a search started and does not wait for to the end."""

    def __init__(self, work: Callable[[Callable[[], bool]], None]) -> None:
        super().__init__(name="bunko-import", daemon=True)
        self._work = work
        self._started_at = time.monotonic()
        self.stop_event = threading.Event()
        self.error: Exception | None = None

    def age(self) -> float:
        """Return for how many seconds it has been going on."""
        return time.monotonic() - self._started_at

    def run(self) -> None:
        """Import, and keep what goes wrong for the thread that searches."""
        try:
            self._work(self.stop_event.is_set)
        except Exception as error:
            self.error = error
