"""Decide when a search imports the changes of a tool's folder first, and for how long it waits for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from bunko import ingest
from bunko.errors import DiskFull, LibraryBusy, LibraryReadOnly, SourceError
from bunko.ingest.changes import find_changes
from bunko.ingest.policy import ImportPolicy
from bunko.library.importing.importer import Importer, SourceCheck
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools.build_config import ToolConfig
from bunko.library.tools.suggested_commands import move_command
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now, timer
from bunko.sources import builtin_kind_names, find_kind, plugin_errors
from bunko.types import Tool

_log = logging.getLogger("bunko.library")

# How long closing a library waits for an import: one that is busy with a large file in this process is left behind.
_STOP_SECONDS = 10.0
_PAID_SECONDS = 3.0
# How long a search waits for the vectors of documents that it already finds by their words.
_VECTOR_WAIT_SECONDS = 2.0
# A search has no time for services, and shows what its reader can do about a tool in words of its own.
_BEFORE_SEARCH = ImportPolicy(uses_services=False, rebuilds_outdated=False, adds_notices=False)


class Refresher:
    """Checks for changes before a search, at most once per interval, and continues long imports in the background."""

    def __init__(
        self,
        paths: LibraryPaths,
        store: Store,
        tool_config: ToolConfig,
        importer: Importer,
        *,
        refresh_interval: float,  # seconds between two checks for changes by searches
        wait_seconds: float,  # how long a search waits for an import
    ) -> None:
        self._paths, self._store, self._tool_config, self._importer = paths, store, tool_config, importer
        self._refresh_interval, self._wait_seconds = refresh_interval, wait_seconds
        self._watched: ingest.WatchedFolders | None = None
        self._check_lock = threading.Lock()
        self._running_import: _ImportThread | None = None

    def refresh_tool(self, tool: Tool, *, vectors: bool = False, observer: Observer = NO_OBSERVER) -> list[str]:
        """Import the changes of a tool's folder, with `vectors` also those missing; return notices for the user.

        The observer is told of an import that this call starts, also after it has returned.
        """
        if self._is_fresh(tool):
            return []
        notices = self._import_changes(tool, observer)
        if vectors and not self.is_importing() and self._importer.missing_vectors.can_embed(tool):
            # Unless a check in another thread is about to start an import.
            if self._check_lock.acquire(blocking=False):
                try:
                    if not self.is_importing():
                        policy = ImportPolicy(lock_seconds=self._wait_seconds)
                        self._start_import(tool, partial(self._importer.embed_missing, tool), policy)
                finally:
                    self._check_lock.release()
            if self._running_import is not None:
                self._running_import.join(min(self._wait_seconds, _VECTOR_WAIT_SECONDS))
        return notices

    def _is_fresh(self, tool: Tool) -> bool:
        """Return whether a tool, as just read from the store, needs neither a check nor vectors, and none is going on.

        Most searches end here. The last check is looked up first: whoever starts an import records its check before.
        """
        last_check = self._importer.checks.get(tool.id)
        return (
            last_check is not None
            and time.monotonic() - last_check.monotonic_seconds < self._refresh_interval
            and not tool.built.lacks_vectors
            and not self._check_lock.locked()
            and not self.is_importing()
        )

    def _start_import(self, tool: Tool, work: Callable[[ImportPolicy], None], policy: ImportPolicy) -> _ImportThread:
        self._running_import = _ImportThread(work, tool.name, policy)
        self._running_import.start()
        return self._running_import

    def _import_changes(self, tool: Tool, observer: Observer) -> list[str]:
        if find_kind(tool.kind) is None:
            return []
        if not self._store.tools.is_local(tool.id):
            self._importer.checks[tool.id] = SourceCheck(time.monotonic(), tool.checked_at, 0)
            return self._moved_notices()
        try:
            with plugin_errors(tool.kind):
                return self._import_what_changed(tool, observer)
        except SourceError as error:
            if tool.kind in builtin_kind_names():
                raise
            # A source of another package must not keep its tool and all others from being searched.
            return [f"{error.message}; results come from the existing index."]

    def _import_what_changed(self, tool: Tool, observer: Observer) -> list[str]:
        # One check at a time: a second import would only wait for the first. A check may hang on a dead network drive.
        if not self._check_lock.acquire(timeout=self._wait_seconds):
            return [f"{tool.source} is still being checked for changes; results come from the existing index."]
        try:
            running = self._running_import if self.is_importing() else None
            if running is None:
                last_check = self._importer.checks.get(tool.id)
                if last_check and time.monotonic() - last_check.monotonic_seconds < self._refresh_interval:
                    return []
                if notices := self._moved_notices():
                    return notices
                source, generation = self._tool_config.source(tool), self._store.generation()
                if source.has_vanished(self._known_uris(tool)):
                    return [
                        f"{tool.source} is missing or empty; results come from the existing index."
                        f" If it has moved: {move_command(self._paths, tool)}"
                    ]
                with timer("file_scan", _log):
                    scan = find_changes(self._store, tool, source, self._watched_folders(is_first=last_check is None))
                changed = len(scan.added) + len(scan.updated) + len(scan.deleted) - len(scan.moved)
                self._importer.checks[tool.id] = SourceCheck(time.monotonic(), now(), changed)
                if not scan.has_changes:
                    return []
                policy = replace(_BEFORE_SEARCH, observer=observer, lock_seconds=self._wait_seconds)
                running = self._start_import(tool, partial(self._importer.import_scan, tool, scan, generation), policy)
        finally:
            self._check_lock.release()
        # A search that joins a running import waits until the same deadline as the search that started it.
        running.join(max(0.0, self._wait_seconds - running.age()))
        return self._import_notices(tool, running)

    def _moved_notices(self) -> list[str]:
        place = self._store.moved_to()
        return [f"This library has moved to {place}. Start this program again to search it there."] if place else []

    def _watched_folders(self, *, is_first: bool) -> ingest.WatchedFolders | None:
        """Return the watched folders from the second check of a tool on: a command checks only once."""
        if self._watched is None and not is_first:
            self._watched = ingest.WatchedFolders()
        return None if is_first else self._watched

    def _known_uris(self, tool: Tool) -> Iterator[str]:
        yield from self._store.documents.uris(tool.id, limit=1)
        yield from (problem.uri for problem in self._store.documents.failures(tool.id))

    def _import_notices(self, tool: Tool, running: _ImportThread) -> list[str]:
        missing = self.last_check(tool).missing_files
        if running.tool != tool.name:
            # Without its name and its error: whoever searches may not be allowed to read that tool.
            if running.is_alive():
                return [f"Another tool is still being indexed; {tool.name} was not checked for changes."]
            return []
        if running.is_alive():
            subject = "Changed files are"
            if missing:
                subject = "1 changed file is" if missing == 1 else f"{missing} changed files are"
            return [f"{subject} still being indexed; results come from the existing index."]
        if isinstance(running.error, LibraryBusy):
            return [f"{running.error.message}; results come from the existing index."]
        if isinstance(running.error, LibraryReadOnly | DiskFull):
            # If only file times were to be updated, nothing is missing from the answer.
            if not missing:
                return []
            files = "1 changed file" if missing == 1 else f"{missing} changed files"
            return [f"{files} could not be indexed: {running.error.message}."]
        if running.error is not None:
            raise running.error
        return []

    def last_check(self, tool: Tool) -> SourceCheck:
        """Return the last check of a tool's folder, by this process or by the last import."""
        return self._importer.checks.get(tool.id, SourceCheck(0.0, tool.checked_at, 0))

    def is_importing(self) -> bool:
        """Return whether an import started by a search is still running."""
        return self._running_import is not None and self._running_import.is_alive()

    def stop(self) -> None:
        """Stop the background import; what it has written stays."""
        if self._running_import is not None:
            self._running_import.stop_event.set()
            self._running_import.join(_PAID_SECONDS)  # the answer to a request in flight is paid for
            self._tool_config.cancel_embedding()
            self._running_import.join(_STOP_SECONDS)
        # A check that hangs on a dead drive keeps its watches: they end with the process.
        if self._check_lock.acquire(blocking=False):
            try:
                if self._watched is not None:
                    self._watched.close()
            finally:
                self._check_lock.release()


class _ImportThread(threading.Thread):
    """An import started by a search, which may continue after the search has returned."""

    def __init__(self, work: Callable[[ImportPolicy], None], tool: str, policy: ImportPolicy) -> None:
        super().__init__(name="bunko-import", daemon=True)
        self._work, self.tool, self._policy = work, tool, policy
        self._started_at = time.monotonic()
        self.stop_event = threading.Event()
        self.error: Exception | None = None

    def age(self) -> float:
        """Return how many seconds ago it started."""
        return time.monotonic() - self._started_at

    def run(self) -> None:
        """Import, and store an exception for the searching thread."""
        try:
            observer = replace(self._policy.observer, is_cancelled=self.stop_event.is_set)
            self._work(replace(self._policy, observer=observer))
        except Exception as error:
            self.error = error
