"""Repeat the last look at a folder for as long as nothing happens in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bunko.errors import SourceError
from bunko.protocols import Look, Scan, Source, WatchableSource
from bunko.sources.events import FolderEvents, remote_file_system
from bunko.types import Fingerprint, Tool

_log = logging.getLogger("bunko.ingest")

# A file that is written through a memory map, or through a hard link elsewhere, has no event in its folder.
RECHECK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _PastLook:
    key: object
    root_id: tuple[int, int]
    look: Look
    seconds: float  # when it began, on the monotonic clock


class WatchedFolders:
    """The last look at the folder of each tool, and whether anything has happened in it since.

    A folder without events, such as one on a network drive, is looked at each time.
    """

    def __init__(self) -> None:
        self._events: FolderEvents | None = None
        self._past: dict[int, _PastLook] = {}  # by tool id
        self._problems: dict[int, SourceError] = {}  # why there are no events, by tool id

    def last_look(self, tool: Tool, source: Source) -> Look | None:
        """Return the last look if nothing has happened since; it cannot be compared again."""
        if self._events is not None:
            for tool_id in self._events.take():
                self._past.pop(tool_id, None)
        past = self._past.get(tool.id)
        if past is None or not isinstance(source, WatchableSource):
            return None
        is_current = (
            time.monotonic() - past.seconds < RECHECK_SECONDS
            and past.key == source.watch_key()
            and past.root_id == _file_id(source.watch_root())  # else a folder above it was renamed
        )
        return past.look if is_current else None

    def look(self, tool: Tool, source: WatchableSource) -> Look:
        """Look at a folder, and watch it from now on."""
        self._past.pop(tool.id, None)
        root = source.watch_root()
        if root is None or tool.id in self._problems:
            return source.look()
        watch = _Watch(self, tool, root)
        look = source.look(watch.add)
        if watch.problem is not None:
            self._problems[tool.id] = watch.problem
            if self._events is not None:
                self._events.release(tool.id)
            _log.info("%s is listed before each search: %s", root, watch.problem.message)
        elif look.state and watch.root_id is not None:
            # Without the list of its files, which may be long.
            shown = replace(look, compare=_refuse_to_compare)
            self._past[tool.id] = _PastLook(source.watch_key(), watch.root_id, shown, watch.seconds)
        return look

    def problem(self, tool: Tool) -> SourceError | None:
        """Return why the folder of a tool has no events, if that is so since its last look."""
        return self._problems.get(tool.id)

    def add_watch(self, folder: str, tool: Tool) -> None:
        """Watch one folder of a tool; raise SourceError if that is not possible."""
        if self._events is None:
            self._events = FolderEvents()
        self._events.watch(folder, tool.id)

    def close(self) -> None:
        """Stop watching."""
        self._past.clear()
        if self._events is not None:
            self._events.close()
            self._events = None


class _Watch:
    """Watches the folders of one look; `problem` says why that is not possible."""

    def __init__(self, folders: WatchedFolders, tool: Tool, root: Path) -> None:
        self._folders, self._tool = folders, tool
        self.seconds = time.monotonic()
        self.root_id = _file_id(root)
        kind = remote_file_system(root)
        self.problem = SourceError(f"{kind} has no file events") if kind else None

    def add(self, folder: str) -> None:
        """Watch a folder before it is listed: what happens later is an event."""
        if self.problem is not None:
            return
        try:
            if self.root_id is not None and Path(folder).stat().st_dev != self.root_id[0]:
                raise SourceError(f"{folder} is on another file system")
            self._folders.add_watch(folder, self._tool)
        except SourceError as error:
            self.problem = error
        except OSError:
            return  # it is gone, and its parent has an event


def _refuse_to_compare(fingerprints: Mapping[str, Fingerprint]) -> Scan:
    raise NotImplementedError  # a look of the past has no list of files


def _file_id(path: Path | None) -> tuple[int, int] | None:
    try:
        status = path.stat() if path is not None else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status is not None else None
