"""Watch the folders of a library and import their changes until stopped."""

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
    LibraryUnreachable,
    SourceError,
    UnknownName,
)  # fmt: skip
from bunko.library.library import Library
from bunko.library.tools import catalog
from bunko.library.tools.scan_settings import ScanSettings
from bunko.library.tools.suggested_commands import move_command
from bunko.runtime.observer import ImportProgress, Observer
from bunko.sources import find_kind
from bunko.sources.events import FolderWatcher, StopSignal, remote_file_system
from bunko.sources.gitignore import named_endings
from bunko.types import Problem, Report, Tool
from bunko.types.tool_options import ToolOptions

# Events are hints: an overloaded system drops some, and a folder may be unreadable when the watch starts.
_RECHECK_SECONDS = 60.0
_POLL_SECONDS = 5.0
# How often tools, folders and the library's file are checked for changes; events arrive at once.
_TICK_SECONDS = 1.0
# Subjects of problems that do not belong to a tool; no tool has such a name.
_LIBRARY_SUBJECT, _EVENTS_SUBJECT = "~library", "~events"
# A smaller import finishes too soon to be announced.
_LARGE_IMPORT_FILES = 500

EventKind = Literal["watching", "importing", "imported", "problem", "recovered", "waiting", "stopped"]


@dataclass(frozen=True, slots=True)
class WatchedTool:
    """The folder or file of a tool, and how it is watched."""

    tool: str
    path: str
    poll_reason: str = ""  # why it is polled; empty if file events report changes


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that happened during a watch."""

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
    """Keep one tool of a library, or all active ones, up to date until stopped.

    A library inside its documents folder may disappear with it: then wait for it and open it again.
    """
    reporter = _EventReporter(on_event)
    with open_library() as library:
        if name is not None and not _is_watchable(library.tools.get(name)):
            raise SourceError(f"{name} has no folder or file to watch", hint="Its texts were added by a command.")
        _WatchSession(library, reporter, stop, name, poll).run()
    while not stop.is_set():
        try:
            library = open_library()
        except BunkoError as error:
            if error.code not in ("source", "library", "unreachable"):  # these mean that it is not back yet
                raise
            _sleep(_TICK_SECONDS, stop)
            continue
        with library:
            reporter.report_recovery(_LIBRARY_SUBJECT, "The library is back.")
            _WatchSession(library, reporter, stop, name, poll).run()
    on_event(WatchEvent("stopped"))


@dataclass(frozen=True, slots=True)
class _WatchedSource:
    """The folder or file of a tool as last seen; if anything differs, the watch is restarted."""

    source: str
    kind: str
    options: ToolOptions
    scan: ScanSettings
    root: str  # the real path, without symbolic links
    file_id: tuple[int, int] | None  # None while it does not exist

    def contains(self, path: str) -> bool:
        return path == self.root or path.startswith(self.root.rstrip(os.sep) + os.sep)


def _is_watchable(tool: Tool) -> bool:
    kind = find_kind(tool.kind)
    return kind is not None and kind.is_watchable and bool(tool.source)


class _WatchSession:
    """Watch one open library until it disappears or the watch is stopped."""

    def __init__(
        self, library: Library, reporter: _EventReporter, stop: StopSignal, name: str | None, poll: float | None
    ) -> None:
        self._library, self._reporter, self._stop, self._name, self._poll = library, reporter, stop, name, poll
        self._tool_id = 0  # of the tool of that name, which may get another one
        self._poll_seconds = _POLL_SECONDS if poll is None else poll
        self._sources: dict[str, _WatchedSource] = {}
        self._poll_reasons: dict[str, str] = {}
        self._checked_at: dict[str, float] = {}
        self._due_tools: set[str] = set()
        self._events: FolderWatcher | None = None
        self._retry_events_at = float("inf")  # when to try again after file events were refused
        self._library_folder = os.path.realpath(library.paths.folder)
        self._library_files = library.store.files

    def run(self) -> None:
        needs_watch = True  # a library without tools is reported too
        try:
            while not self._stop.is_set():
                if not self._library_files.still_exist():
                    self._reporter.report_problem(
                        _LIBRARY_SUBJECT,
                        f"{self._library.storage.location} has disappeared; waiting for it to come back.",
                    )
                    return
                try:
                    sources = self._current_sources()
                except LibraryUnreachable:
                    if self._library_files.still_exist():
                        raise
                    continue  # its server has just gone: the next look reports it
                if needs_watch or sources != self._sources:
                    self._start_watch(sources)
                # The watch starts before the check, so every later change causes an event.
                self._check_sources()
                changed = self._wait_for_changes()
                self._due_tools |= {
                    name for name, source in sources.items() if any(self._is_relevant(path, source) for path in changed)
                }
                needs_watch = self._needs_new_watch(changed)
        finally:
            self._stop_watch()

    def _needs_new_watch(self, changed: set[str]) -> bool:
        if self._events is not None:
            return self._events.needs_rewatch(changed)
        return time.monotonic() >= self._retry_events_at

    def _current_sources(self) -> dict[str, _WatchedSource]:
        sources = {}
        for tool in self._selected_tools():
            if _is_watchable(tool):
                root = os.path.realpath(tool.source)
                scan = self._library.scan_settings(tool)
                sources[tool.name] = _WatchedSource(
                    tool.source, tool.kind, tool.options, scan, root, _file_id(Path(root))
                )
        return sources

    def _selected_tools(self) -> list[Tool]:
        tools = self._library.tools()
        if self._name is None:
            return self._library.local_tools()
        named = catalog.find_tool(tools, self._name)
        self._tool_id = named.id if named else self._tool_id
        return [tool for tool in tools if tool.id == self._tool_id]

    def _start_watch(self, sources: dict[str, _WatchedSource]) -> None:
        previous, self._sources = self._sources, sources
        self._due_tools |= {name for name, source in sources.items() if source != previous.get(name)}
        self._due_tools &= sources.keys()
        self._stop_watch()
        self._retry_events_at = float("inf")
        self._poll_reasons = {name: reason for name, source in sources.items() if (reason := self._poll_reason(source))}
        roots = {source.root for name, source in sources.items() if source.file_id and name not in self._poll_reasons}
        if roots:
            try:
                self._events = FolderWatcher(roots, self._all_sources_ignore)
            except SourceError as error:
                self._reporter.report_problem(
                    _EVENTS_SUBJECT, f"{error.message}; polling every {self._poll_seconds:g} s instead.", error.hint
                )
                self._poll_reasons = {name: self._poll_reasons.get(name, error.message) for name in sources}
                self._retry_events_at = time.monotonic() + _RECHECK_SECONDS
            else:
                self._reporter.report_recovery(_EVENTS_SUBJECT, "File events work again.")
        watched_tools = tuple(
            WatchedTool(name, source.source, self._poll_reasons.get(name, ""))
            for name, source in sorted(sources.items())
        )
        self._reporter.report_watching(watched_tools)

    def _poll_reason(self, source: _WatchedSource) -> str:
        if self._poll is not None:
            return "--poll was given"
        if Path(source.root).is_file():
            return "it is one file"  # watching its folder could mean the whole disk
        kind = remote_file_system(Path(source.root)) if source.file_id else ""
        return f"{kind} has no file events" if kind else ""

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
        for name, source in self._sources.items():
            interval = self._poll_seconds if name in self._poll_reasons else _RECHECK_SECONDS
            if name in self._due_tools or now - self._checked_at.get(name, now) >= interval:
                self._due_tools.add(name)
                if self._import_changes(name, source):
                    self._due_tools.discard(name)
                self._checked_at[name] = time.monotonic()
            if self._stop.is_set():
                return

    def _import_changes(self, name: str, source: _WatchedSource) -> bool:
        """Import the changes of one tool; return whether it is up to date for now."""
        if source.file_id is None:
            message = f"{source.source} does not exist; its index is kept, and watching resumes when it is back."
            hint = f"If it has moved: {move_command(self._library.paths, Tool(name))}"
            self._reporter.report_problem(name, message, hint)
            return True
        try:
            report = self._library.import_changes(
                name,
                observer=Observer(
                    on_progress=lambda done: self._reporter.report_large_import(name, done),
                    on_wait=lambda sentence: self._reporter.report_waiting(name, sentence),
                    is_cancelled=self._stop.is_set,
                ),
            )
        except (LibraryDamaged, LibraryReadOnly, LibraryTooNew):
            raise  # retrying would fail every time
        except (LibraryBusy, UnknownName) as error:
            return isinstance(error, UnknownName)  # a tool that was just deleted needs no retry
        except BunkoError as error:
            self._reporter.report_problem(name, error.message, error.hint)
            return True
        self._reporter.report_recovery(name, f"{source.source} is up to date again.")
        self._reporter.report_import(name, report)
        return not report.interrupted

    def _is_relevant(self, path: str, source: _WatchedSource) -> bool:
        """Return whether a changed path may be a document of a tool; the following scan decides."""
        if not source.contains(path) or self._source_ignores(path, source):
            return False
        name = Path(path).name.lower()
        kind = find_kind(source.kind)
        if kind is None or not kind.uses_extensions:
            return True  # its files have other extensions
        # A path that is not a file may have been a folder.
        endings = (*source.scan.endings(), *named_endings(source.options.include))
        return name.endswith(endings) or name == ".gitignore" or not Path(path).is_file()

    def _all_sources_ignore(self, path: str) -> bool:
        return all(self._source_ignores(path, source) for source in self._sources.values() if source.contains(path))

    def _source_ignores(self, path: str, source: _WatchedSource) -> bool:
        excluded = not set(source.scan.exclude_dirs).isdisjoint(Path(path[len(source.root) :]).parts)
        if excluded or self._library_files.contain(path):
            return True
        return (
            source.root != self._library_folder
            and source.contains(self._library_folder)
            and Path(path).is_relative_to(self._library_folder)
        )


class _EventReporter:
    """Report events, each lasting state and problem only once."""

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
        reported, self._document_problems[tool] = self._document_problems.get(tool, set()), set(report.problems)
        for problem in sorted(self._document_problems[tool] - reported, key=lambda problem: problem.uri):
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
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _sleep(seconds: float, stop: StopSignal) -> None:
    deadline = time.monotonic() + seconds
    while not stop.is_set() and (remaining := deadline - time.monotonic()) > 0:
        time.sleep(min(0.1, remaining))
