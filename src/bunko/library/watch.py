"""A way to open a library in, its tools kept up to date until somebody stops it; what happens is told meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bunko.errors import (
    BunkoError,
    LibraryBusy,
    LibraryDamaged,
    LibraryReadOnly,
    LibraryTooNew,
    SourceError,
    UnknownName,
)  # fmt: skip
from bunko.ingest.pipeline import ImportProgress
from bunko.library import catalog
from bunko.library.library import Library
from bunko.sources import WATCHABLE_KINDS
from bunko.sources.events import FolderWatcher, StopSignal, remote_file_system
from bunko.types import Problem, Report

# Events are hints: a system that is flooded drops some, and a folder may be closed to us when they are asked for.
_RECHECK_SECONDS = 60.0
_POLL_SECONDS = 5.0
# How often tools, folders and the library's file are compared with what they were; events come at once.
_TICK_SECONDS = 1.0
# What trouble is about where it is not a tool's; no tool is called so.
_LIBRARY_SUBJECT, _EVENTS_SUBJECT = "~library", "~events"
# An import of fewer files is over before anybody wonders.
_LARGE_IMPORT_FILES = 500

EventKind = Literal["watching", "importing", "imported", "problem", "recovered", "waiting", "stopped"]


@dataclass(frozen=True, slots=True)
class WatchedTool:
    """A tool's folder or file, and what it is looked at by."""

    tool: str
    path: str
    poll_reason: str = ""  # why it is looked at every few seconds; empty where events tell of changes


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that whoever started the watch may want to know."""

    kind: EventKind
    message: str = ""
    tool: str = ""
    hint: str = ""
    report: Report | None = None
    watched_tools: tuple[WatchedTool, ...] = ()


EventHandler = Callable[[WatchEvent], None]


def watch_library(
    open_library: Callable[[], Library],
    on_event: EventHandler,
    stop: StopSignal,
    *,
    name: str | None = None,
    poll: float | None = None,
) -> None:
    """Keep one tool of a library, or all active ones, fresh until stopped.

    The library of a folder may lie in that folder and vanish with it: then it is waited for and opened again.
    """
    voice = _EventReporter(on_event)
    with open_library() as library:
        if name is not None and catalog.get_tool(library.store, name).kind not in WATCHABLE_KINDS:
            raise SourceError(f"{name} has no folder or file to watch", hint="Its texts were put in by a command.")
        _WatchSession(library, voice, stop, name, poll).run()
    while not stop.is_set():
        try:
            library = open_library()
        except BunkoError as error:
            if error.code not in ("source", "library"):  # those two say that it is not back yet
                raise
            _sleep(_TICK_SECONDS, stop)
            continue
        with library:
            voice.report_recovery(_LIBRARY_SUBJECT, "The library is back.")
            _WatchSession(library, voice, stop, name, poll).run()
    on_event(WatchEvent("stopped"))


@dataclass(frozen=True, slots=True)
class _WatchedSource:
    """A tool's folder or file as it was found; where anything of it differs, it is watched and looked at anew."""

    source: str
    kind: str
    options: str
    root: str  # where it really lies
    file_id: tuple[int, int] | None  # None while it is not there

    def contains(self, path: str) -> bool:
        return path == self.root or path.startswith(self.root.rstrip(os.sep) + os.sep)


class _WatchSession:
    """One opened library, watched until it goes away or somebody stops us."""

    def __init__(
        self, library: Library, reporter: _EventReporter, stop: StopSignal, name: str | None, poll: float | None
    ) -> None:
        self._library, self._reporter, self._stop, self._name, self._poll = library, reporter, stop, name, poll
        self._poll_seconds = _POLL_SECONDS if poll is None else poll
        self._sources: dict[str, _WatchedSource] = {}
        self._poll_reasons: dict[str, str] = {}
        self._checked_at: dict[str, float] = {}
        self._due_tools: set[str] = set()
        self._events: FolderWatcher | None = None
        self._retry_events_at = float("inf")  # when to ask once more for events that were refused
        self._library_folder = os.path.realpath(library.paths.folder)
        self._database = str(
            Path(self._library_folder, library.paths.database.name)
        )  # and what SQLite writes beside it
        scanner = library.settings.scanner
        self._exclude_dirs = frozenset(scanner.exclude_dirs)
        self._extensions = tuple(f".{ending.lower().removeprefix('.')}" for ending in scanner.file_extensions)

    def run(self) -> None:
        database = self._library.paths.database
        file = _file_id(database)
        outdated = True  # a library without tools says so too
        try:
            while not self._stop.is_set():
                if _file_id(database) != file:
                    self._reporter.report_problem(
                        _LIBRARY_SUBJECT, f"{database} is not there any more; waiting for it to come back."
                    )
                    return
                spots = self._current_sources()
                if outdated or spots != self._sources:
                    self._start_watch(spots)
                # The watch stands before we look: what changes from here on is an event.
                self._check_sources()
                changed = self._wait_for_changes()
                self._due_tools |= {
                    name for name, spot in spots.items() if any(self._is_relevant(p, spot) for p in changed)
                }
                outdated = self._needs_new_watch(changed)
        finally:
            self._stop_watch()

    def _needs_new_watch(self, changed: set[str]) -> bool:
        if self._events is not None:
            return self._events.needs_rewatch(changed)
        return time.monotonic() >= self._retry_events_at

    def _current_sources(self) -> dict[str, _WatchedSource]:
        found = {}
        for tool in self._library.tools():
            if tool.kind in WATCHABLE_KINDS and (tool.active if self._name is None else tool.name == self._name):
                root = os.path.realpath(tool.source)
                found[tool.name] = _WatchedSource(
                    tool.source, tool.kind, repr(tool.options), root, _file_id(Path(root))
                )
        return found

    def _start_watch(self, sources: dict[str, _WatchedSource]) -> None:
        before, self._sources = self._sources, sources
        self._due_tools |= {name for name, spot in sources.items() if spot != before.get(name)}
        self._due_tools &= sources.keys()
        self._stop_watch()
        self._retry_events_at = float("inf")
        self._poll_reasons = {name: why for name, spot in sources.items() if (why := self._poll_reason(spot))}
        roots = {spot.root for name, spot in sources.items() if spot.file_id and name not in self._poll_reasons}
        if roots:
            try:
                self._events = FolderWatcher(roots, self._all_sources_ignore)
            except SourceError as error:
                self._reporter.report_problem(
                    _EVENTS_SUBJECT, f"{error.message}; looking every {self._poll_seconds:g} s instead.", error.hint
                )
                self._poll_reasons = {name: self._poll_reasons.get(name, error.message) for name in sources}
                self._retry_events_at = time.monotonic() + _RECHECK_SECONDS
            else:
                self._reporter.report_recovery(_EVENTS_SUBJECT, "File events are possible again.")
        places = tuple(
            WatchedTool(name, spot.source, self._poll_reasons.get(name, "")) for name, spot in sorted(sources.items())
        )
        self._reporter.report_watching(places)

    def _poll_reason(self, source: _WatchedSource) -> str:
        if self._poll is not None:
            return "as asked"
        if Path(source.root).is_file():
            return "it is one file"  # its folder may hold the whole disk
        kind = remote_file_system(Path(source.root)) if source.file_id else ""
        return f"{kind} gives no events" if kind else ""

    def _stop_watch(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def _wait_for_changes(self) -> set[str]:
        if self._events is not None:
            return self._events.wait(self._stop)
        _sleep(min(_TICK_SECONDS, self._poll_seconds), self._stop)
        return set()

    def _check_sources(self) -> None:
        now = time.monotonic()
        for name, spot in self._sources.items():
            seconds = self._poll_seconds if name in self._poll_reasons else _RECHECK_SECONDS
            if name in self._due_tools or now - self._checked_at.get(name, now) >= seconds:
                self._due_tools.add(name)
                if self._import_changes(name, spot):
                    self._due_tools.discard(name)
                self._checked_at[name] = time.monotonic()
            if self._stop.is_set():
                return

    def _import_changes(self, name: str, source: _WatchedSource) -> bool:
        """Take in what changed for one tool; say whether that is all for now."""
        if source.file_id is None:
            message = f"{source.source} is not there; what was indexed is kept, and it is watched once it is back."
            self._reporter.report_problem(name, message)
            return True
        try:
            report = self._library.import_changes(
                name,
                progress=lambda done: self._reporter.report_large_import(name, done),
                waiting=lambda sentence: self._reporter.report_waiting(name, sentence),
                stopped=self._stop.is_set,
            )
        except (LibraryDamaged, LibraryReadOnly, LibraryTooNew):
            raise  # going on would only say so for ever
        except (LibraryBusy, UnknownName) as error:
            return isinstance(error, UnknownName)  # deleted a moment ago, and not to be looked at again
        except BunkoError as error:
            self._reporter.report_problem(name, error.message, error.hint)
            return True
        self._reporter.report_recovery(name, f"{source.source} is kept up to date again.")
        self._reporter.report_import(name, report)
        return not report.interrupted

    def _is_relevant(self, path: str, source: _WatchedSource) -> bool:
        """Say whether a change of a path may be one of a tool's documents; the scan that follows knows."""
        if not source.contains(path) or self._source_ignores(path, source):
            return False
        name = Path(path).name.lower()
        if source.kind != "folder":
            return True  # memos and entries have endings of their own
        # Whatever is no file was perhaps a folder.
        return name.endswith(self._extensions) or name == ".gitignore" or not Path(path).is_file()

    def _all_sources_ignore(self, path: str) -> bool:
        return all(self._source_ignores(path, spot) for spot in self._sources.values() if spot.contains(path))

    def _source_ignores(self, path: str, source: _WatchedSource) -> bool:
        if not self._exclude_dirs.isdisjoint(Path(path[len(source.root) :]).parts) or path.startswith(self._database):
            return True
        return (
            source.root != self._library_folder
            and source.contains(self._library_folder)
            and Path(path).is_relative_to(self._library_folder)
        )


class _EventReporter:
    """Tells what happens, and what stays as it is only once."""

    def __init__(self, on_event: EventHandler) -> None:
        self._on_event = on_event
        self._watched_tools: tuple[WatchedTool, ...] | None = None
        self._open_problems: dict[str, str] = {}
        self._document_problems: dict[str, set[Problem]] = {}

    def report_watching(self, watched_tools: tuple[WatchedTool, ...]) -> None:
        if watched_tools != self._watched_tools:
            self._watched_tools = watched_tools
            self._on_event(WatchEvent("watching", watched_tools=watched_tools))

    def report_large_import(self, tool: str, progress: ImportProgress) -> None:
        if not progress.files and progress.total_files >= _LARGE_IMPORT_FILES:
            self._on_event(WatchEvent("importing", f"{progress.total_files:,} files to import", tool))

    def report_waiting(self, tool: str, sentence: str) -> None:
        self._on_event(WatchEvent("waiting", sentence, tool))

    def report_import(self, tool: str, report: Report) -> None:
        if report.added or report.updated or report.deleted or report.moved:
            self._on_event(WatchEvent("imported", tool=tool, report=report))
        for notice in report.notices:
            self._on_event(WatchEvent("problem", notice, tool))
        before, self._document_problems[tool] = self._document_problems.get(tool, set()), set(report.problems)
        for problem in sorted(self._document_problems[tool] - before, key=lambda one: one.uri):
            self._on_event(WatchEvent("problem", f"{problem.uri}: {problem.reason}", tool))

    def report_problem(self, subject: str, message: str, hint: str = "") -> None:
        if self._open_problems.get(subject) != message:
            self._open_problems[subject] = message
            self._on_event(WatchEvent("problem", message, _tool_name(subject), hint))

    def report_recovery(self, subject: str, message: str) -> None:
        if self._open_problems.pop(subject, None) is not None:
            self._on_event(WatchEvent("recovered", message, _tool_name(subject)))


def _tool_name(subject: str) -> str:
    return "" if subject in (_LIBRARY_SUBJECT, _EVENTS_SUBJECT) else subject


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _sleep(seconds: float, stop: StopSignal) -> None:
    end = time.monotonic() + seconds
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        time.sleep(min(0.1, left))
