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
from bunko.ingest.pipeline import Progress
from bunko.library import catalog
from bunko.library.library import Library
from bunko.sources import ON_DISK
from bunko.sources.events import Events, Stop, remote
from bunko.types import Problem, Report

# Events are hints: a system that is flooded drops some, and a folder may be closed to us when they are asked for.
_LOOK_SECONDS = 60.0
_POLL_SECONDS = 5.0
# How often tools, folders and the library's file are compared with what they were; events come at once.
_TICK_SECONDS = 1.0
# What trouble is about where it is not a tool's; no tool is called so.
_LIBRARY, _EVENTS = "~library", "~events"
# An import of fewer files is over before anybody wonders.
_MANY = 500

Kind = Literal["watching", "importing", "imported", "problem", "recovered", "waiting", "stopped"]


@dataclass(frozen=True, slots=True)
class Place:
    """A tool's folder or file, and what it is looked at by."""

    tool: str
    path: str
    polled: str = ""  # why it is looked at every few seconds; empty where events tell of changes


@dataclass(frozen=True, slots=True)
class News:
    """Something that whoever started the watch may want to know."""

    kind: Kind
    message: str = ""
    tool: str = ""
    hint: str = ""
    report: Report | None = None
    places: tuple[Place, ...] = ()


Tell = Callable[[News], None]


def watch(
    open_library: Callable[[], Library],
    tell: Tell,
    stop: Stop,
    *,
    name: str | None = None,
    poll: float | None = None,
) -> None:
    """Keep one tool of a library, or all active ones, fresh until stopped.

    The library of a folder may lie in that folder and vanish with it: then it is waited for and opened again.
    """
    voice = _Voice(tell)
    with open_library() as library:
        if name is not None and catalog.named(library.store, name).kind not in ON_DISK:
            raise SourceError(f"{name} has no folder or file to watch", hint="Its texts were put in by a command.")
        _Round(library, voice, stop, name, poll).run()
    while not stop.is_set():
        try:
            library = open_library()
        except BunkoError as error:
            if error.code not in ("source", "library"):  # those two say that it is not back yet
                raise
            _sleep(_TICK_SECONDS, stop)
            continue
        with library:
            voice.well(_LIBRARY, "The library is back.")
            _Round(library, voice, stop, name, poll).run()
    tell(News("stopped"))


@dataclass(frozen=True, slots=True)
class _Spot:
    """A tool's folder or file as it was found; where anything of it differs, it is watched and looked at anew."""

    source: str
    kind: str
    options: str
    root: str  # where it really lies
    file: tuple[int, int] | None  # None while it is not there

    def holds(self, path: str) -> bool:
        return path == self.root or path.startswith(self.root.rstrip(os.sep) + os.sep)


class _Round:
    """One opened library, watched until it goes away or somebody stops us."""

    def __init__(self, library: Library, voice: _Voice, stop: Stop, name: str | None, poll: float | None) -> None:
        self._library, self._voice, self._stop, self._name, self._poll = library, voice, stop, name, poll
        self._every = _POLL_SECONDS if poll is None else poll
        self._spots: dict[str, _Spot] = {}
        self._polled: dict[str, str] = {}
        self._looked: dict[str, float] = {}
        self._due: set[str] = set()
        self._events: Events | None = None
        self._try_again = float("inf")  # when to ask once more for events that were refused
        self._own = os.path.realpath(library.home.folder)
        self._database = str(Path(self._own, library.home.database.name))  # and what SQLite writes beside it
        scanner = library.settings.scanner
        self._excluded = frozenset(scanner.exclude_dirs)
        self._endings = tuple(f".{ending.lower().removeprefix('.')}" for ending in scanner.file_extensions)

    def run(self) -> None:
        database = self._library.home.database
        file = _file(database)
        outdated = True  # a library without tools says so too
        try:
            while not self._stop.is_set():
                if _file(database) != file:
                    self._voice.trouble(_LIBRARY, f"{database} is not there any more; waiting for it to come back.")
                    return
                spots = self._found()
                if outdated or spots != self._spots:
                    self._arm(spots)
                # The watch stands before we look: what changes from here on is an event.
                self._look()
                changed = self._wait()
                self._due |= {name for name, spot in spots.items() if any(self._matters(p, spot) for p in changed)}
                outdated = self._outdated(changed)
        finally:
            self._disarm()

    def _outdated(self, changed: set[str]) -> bool:
        if self._events is not None:
            return self._events.outdated_by(changed)
        return time.monotonic() >= self._try_again

    def _found(self) -> dict[str, _Spot]:
        found = {}
        for tool in self._library.tools():
            if tool.kind in ON_DISK and (tool.active if self._name is None else tool.name == self._name):
                root = os.path.realpath(tool.source)
                found[tool.name] = _Spot(tool.source, tool.kind, repr(tool.options), root, _file(Path(root)))
        return found

    def _arm(self, spots: dict[str, _Spot]) -> None:
        before, self._spots = self._spots, spots
        self._due |= {name for name, spot in spots.items() if spot != before.get(name)}
        self._due &= spots.keys()
        self._disarm()
        self._try_again = float("inf")
        self._polled = {name: why for name, spot in spots.items() if (why := self._without_events(spot))}
        roots = {spot.root for name, spot in spots.items() if spot.file and name not in self._polled}
        if roots:
            try:
                self._events = Events(roots, self._passed_over)
            except SourceError as error:
                self._voice.trouble(_EVENTS, f"{error.message}; looking every {self._every:g} s instead.", error.hint)
                self._polled = {name: self._polled.get(name, error.message) for name in spots}
                self._try_again = time.monotonic() + _LOOK_SECONDS
            else:
                self._voice.well(_EVENTS, "File events are possible again.")
        places = tuple(Place(name, spot.source, self._polled.get(name, "")) for name, spot in sorted(spots.items()))
        self._voice.watching(places)

    def _without_events(self, spot: _Spot) -> str:
        if self._poll is not None:
            return "as asked"
        if Path(spot.root).is_file():
            return "it is one file"  # its folder may hold the whole disk
        kind = remote(Path(spot.root)) if spot.file else ""
        return f"{kind} gives no events" if kind else ""

    def _disarm(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def _wait(self) -> set[str]:
        if self._events is not None:
            return self._events.wait(self._stop)
        _sleep(min(_TICK_SECONDS, self._every), self._stop)
        return set()

    def _look(self) -> None:
        now = time.monotonic()
        for name, spot in self._spots.items():
            seconds = self._every if name in self._polled else _LOOK_SECONDS
            if name in self._due or now - self._looked.get(name, now) >= seconds:
                self._due.add(name)
                if self._is_done(name, spot):
                    self._due.discard(name)
                self._looked[name] = time.monotonic()
            if self._stop.is_set():
                return

    def _is_done(self, name: str, spot: _Spot) -> bool:
        """Take in what changed for one tool; say whether that is all for now."""
        if spot.file is None:
            message = f"{spot.source} is not there; what was indexed is kept, and it is watched once it is back."
            self._voice.trouble(name, message)
            return True
        try:
            report = self._library.catch_up(
                name,
                progress=lambda done: self._voice.importing(name, done),
                waiting=lambda sentence: self._voice.waiting(name, sentence),
                stopped=self._stop.is_set,
            )
        except (LibraryDamaged, LibraryReadOnly, LibraryTooNew):
            raise  # going on would only say so for ever
        except (LibraryBusy, UnknownName) as error:
            return isinstance(error, UnknownName)  # deleted a moment ago, and not to be looked at again
        except BunkoError as error:
            self._voice.trouble(name, error.message, error.hint)
            return True
        self._voice.well(name, f"{spot.source} is kept up to date again.")
        self._voice.imported(name, report)
        return not report.interrupted

    def _matters(self, path: str, spot: _Spot) -> bool:
        """Say whether a change of a path may be one of a tool's documents; the scan that follows knows."""
        if not spot.holds(path) or self._is_passed_over(path, spot):
            return False
        name = Path(path).name.lower()
        if spot.kind != "folder":
            return True  # memos and entries have endings of their own
        # Whatever is no file was perhaps a folder.
        return name.endswith(self._endings) or name == ".gitignore" or not Path(path).is_file()

    def _passed_over(self, path: str) -> bool:
        return all(self._is_passed_over(path, spot) for spot in self._spots.values() if spot.holds(path))

    def _is_passed_over(self, path: str, spot: _Spot) -> bool:
        if not self._excluded.isdisjoint(Path(path[len(spot.root) :]).parts) or path.startswith(self._database):
            return True
        return spot.root != self._own and spot.holds(self._own) and Path(path).is_relative_to(self._own)


class _Voice:
    """Tells what happens, and what stays as it is only once."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._places: tuple[Place, ...] | None = None
        self._troubles: dict[str, str] = {}
        self._problems: dict[str, set[Problem]] = {}

    def watching(self, places: tuple[Place, ...]) -> None:
        if places != self._places:
            self._places = places
            self._tell(News("watching", places=places))

    def importing(self, tool: str, done: Progress) -> None:
        if not done.files and done.total_files >= _MANY:
            self._tell(News("importing", f"{done.total_files:,} files to import", tool))

    def waiting(self, tool: str, sentence: str) -> None:
        self._tell(News("waiting", sentence, tool))

    def imported(self, tool: str, report: Report) -> None:
        if report.added or report.updated or report.deleted or report.moved:
            self._tell(News("imported", tool=tool, report=report))
        for notice in report.notices:
            self._tell(News("problem", notice, tool))
        before, self._problems[tool] = self._problems.get(tool, set()), set(report.problems)
        for problem in sorted(self._problems[tool] - before, key=lambda one: one.uri):
            self._tell(News("problem", f"{problem.uri}: {problem.reason}", tool))

    def trouble(self, about: str, message: str, hint: str = "") -> None:
        if self._troubles.get(about) != message:
            self._troubles[about] = message
            self._tell(News("problem", message, _tool(about), hint))

    def well(self, about: str, message: str) -> None:
        if self._troubles.pop(about, None) is not None:
            self._tell(News("recovered", message, _tool(about)))


def _tool(about: str) -> str:
    return "" if about in (_LIBRARY, _EVENTS) else about


def _file(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _sleep(seconds: float, stop: Stop) -> None:
    end = time.monotonic() + seconds
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        time.sleep(min(0.1, left))
