"""Move a library to another store: copy, verify, and switch the settings only when both are equal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bunko import indexes, stores
from bunko.errors import LibraryError, SettingsError
from bunko.library.admin.index_options import engine_options, index_folder
from bunko.library.importing.lock import hold_lock
from bunko.library.library import Library
from bunko.library.moving.copy_rows import SMALL_TABLES, check_digests, copy_rows, read_digests
from bunko.library.moving.destination import (
    PATH_KEYS,
    Content,
    Destination,
    address_argument,
    check_destination,
    parse_destination,
)
from bunko.library.moving.sample_searches import SearchComparison, compare_indexes, sample_searches
from bunko.library.moving.settings_file import SettingsChange, plan_change
from bunko.library.opening.paths import LibraryPaths, paths_for_file
from bunko.library.tools import catalog
from bunko.protocols import Index, MovingRows, Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now
from bunko.settings import LoadedSettings
from bunko.types.records import StoreAddress, Totals

# How long a move waits for an import to finish; a crawl may take hours.
LOCK_WAIT_SECONDS = 600.0
_CHECK_PREFIX = "moving-"  # of folders in which the index of a copy is built to compare searches


@dataclass(slots=True)
class MovePlan:
    """What a move would do."""

    source: StoreAddress
    destination: Destination
    content: Content  # of the destination
    settings: SettingsChange | None  # None: a flag names the library, and has to name the new place
    tools: dict[str, Totals]  # by name
    rows: int
    bytes: int

    @property
    def way_back(self) -> str:
        """What `--to` must be to move back."""
        return address_argument(self.source)


@dataclass(slots=True)
class MoveResult:
    """What a move has done."""

    plan: MovePlan
    rows: int = 0
    comparison: SearchComparison = field(default_factory=SearchComparison)
    backup: Path | None = None  # of the settings
    notices: list[str] = field(default_factory=list)


class Mover:
    """Moves one library; its searches go on meanwhile, and nobody can write to it."""

    def __init__(
        self, library: Library, located: LibraryPaths, loaded: LoadedSettings, config: Path | None = None
    ) -> None:
        # `located` is the library as flags and the environment name it; the settings may say that it is elsewhere.
        self._library, self._store = library, library.store
        self._located, self._loaded, self._config = located, loaded, config

    def plan(self, to: str) -> MovePlan:
        """Check where the library should move to, and return what would be done; nothing is changed."""
        if not self._store.is_persistent:
            raise SettingsError(
                "A library in memory ends with its process and cannot be moved", hint="Set storage.kind to sqlite."
            )
        rows = self._store.rows
        destination = parse_destination(to, self._library.paths, self._located, self._library.settings)
        content = check_destination(self._store, destination)
        tools = {tool.name: self._store.stats.totals(tool.id) for tool in catalog.tools(self._store)}
        total = sum(rows.count(table) for table in rows.tables)
        settings = self._plan_settings(destination)
        return MovePlan(self._store.address, destination, content, settings, tools, total, self._store.size())

    def move(self, to: str, *, observer: Observer = NO_OBSERVER) -> MoveResult:
        """Copy the library to a place, compare both, and let the settings name the new one."""
        result = MoveResult(self.plan(to))
        destination = result.plan.destination
        with self._exclude_writers(self._store, observer):
            # It may be the copy of an earlier move: whatever says so afterwards is another place.
            self._store.rows.begin_use()
            with self._open_target(destination, observer) as target:
                check_destination(self._store, destination)  # it may have changed since
                result.rows = self._copy(target, observer)
            # Opened again, because its id and its generation are now those of the library.
            with (
                self._open_target(destination, observer) as target,
                self._build_index(target, self._new_index_folder(destination)) as index,
            ):
                result.comparison = self._compare_searches(target, index, observer)
                self._switch(target, result)
                if self._new_index_folder(destination) is not None:
                    for tool in catalog.tools(target):
                        index.sync(tool.id)
        return result

    def undo(self) -> str:
        """Let a library that has moved be used again as it was then; return where it had moved to."""
        place = self._store.moved_to()
        if not place:
            raise SettingsError(
                f"{self._store.location} has not moved", hint="Move it back with: bunko move --to PLACE."
            )
        self._store.rows.stay()
        return place

    def _plan_settings(self, destination: Destination) -> SettingsChange | None:
        changes = destination.changes
        if any(key in changes for key in PATH_KEYS):
            if self._located.docs_dir is not None:
                raise SettingsError(
                    f"The index of {self._located.docs_dir} belongs in one folder",
                    hint=f"Name that file: sqlite:{self._library.paths.database}",
                )
            if self._located.is_file_path:
                return None
        return plan_change(self._located, self._loaded, self._config, changes, place_keys=PATH_KEYS)

    @contextmanager
    def _exclude_writers(self, store: Store, observer: Observer) -> Iterator[None]:
        """Hold the locks of imports and of crawls."""
        with ExitStack() as locks:
            for purpose, seconds, activity in (
                ("web", 0.0, "collecting pages for"),
                ("import", LOCK_WAIT_SECONDS, "writing to"),
            ):
                locks.enter_context(
                    hold_lock(store.lock(purpose), wait_seconds=seconds, observer=observer, activity=activity)
                )
            yield

    @contextmanager
    def _open_target(self, destination: Destination, observer: Observer) -> Iterator[Store]:
        with closing(stores.build(*destination.address)) as target, self._exclude_writers(target, observer):
            yield target

    def _copy(self, target: Store, observer: Observer) -> int:
        """Copy and verify all rows; return how many there are."""
        source_rows, target_rows = self._store.rows, target.rows
        target_rows.begin_copy(self._store.id)
        digests = copy_rows(source_rows, target_rows, observer)
        check_digests(digests, read_digests(target_rows, observer), self._tool_names(), target.location)
        target_rows.put_last_ids(source_rows.last_ids())
        target_rows.put_values(source_rows.values(), {}, is_finished=False)
        return sum(digest.rows for digest in digests.values())

    def _new_index_folder(self, destination: Destination) -> Path | None:
        """Return the folder of index files of the new place; None if it is the present one, whose files stay valid."""
        path, settings = destination.address.location, self._library.settings
        if path == self._library.paths.database or self._index_kind() != "embedded":
            return None
        new_paths = self._located if path == self._located.database else paths_for_file(path)
        folder = index_folder(new_paths, settings)
        return None if folder == index_folder(self._library.paths, settings) else folder

    def _index_kind(self) -> str:
        """Return the index whose answers are compared: that of the library, or for Chroma the segments that it uses.

        Chroma finds vectors approximately; words and vectors are the same in its segments.
        """
        return "milvus" if self._library.settings.index.kind == "milvus" else "embedded"

    @contextmanager
    def _build_index(self, store: Store, folder: Path | None = None) -> Iterator[Index]:
        """Open an index of a copy, by default in a folder that is deleted afterwards."""
        paths, settings = self._library.paths, self._library.settings
        current_folder = index_folder(paths, settings)
        options = engine_options(paths, settings, current_folder)
        with ExitStack() as stack:
            if folder is None:
                current_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                for leftover in current_folder.glob(f"{_CHECK_PREFIX}*"):
                    shutil.rmtree(leftover, ignore_errors=True)
                temporary = tempfile.TemporaryDirectory(prefix=_CHECK_PREFIX, dir=current_folder)
                folder = Path(stack.enter_context(temporary))
            yield stack.enter_context(closing(indexes.build(self._index_kind(), store, folder, options)))

    def _compare_searches(self, target: Store, index: Index, observer: Observer) -> SearchComparison:
        """Compare the searches of the library with those of its copy, whose index is built from its own rows."""
        samples = sample_searches(self._store, catalog.tools(self._store))
        with self._build_index(self._store, index_folder(self._library.paths, self._library.settings)) as old_index:
            return compare_indexes((self._store, old_index), (target, index), samples, observer)

    def _switch(self, target: Store, result: MoveResult) -> None:
        """Make the copy the library, while nobody can write to the old one."""
        plan, generation = result.plan, self._store.generation()
        source_rows, target_rows = self._store.rows, target.rows
        is_switched = False
        try:
            with source_rows.leave(f"{target.location} ({now()})"):
                if self._store.generation() != generation or target.generation() != generation:
                    raise LibraryError(
                        "The library changed while it was copied", hint="Nothing was switched. Run the command again."
                    )
                self._copy_small_tables(source_rows, target_rows, target.location)
                files = {tool.id: self._store.changes.index_file(tool.id) for tool in self._store.tools.all()}
                target_rows.put_values(source_rows.values(), files, is_finished=True)
                try:
                    result.backup = plan.settings.write() if plan.settings else None
                except BaseException:
                    target_rows.begin_copy(self._store.id)
                    raise
                is_switched = True
        except LibraryError as error:
            if not is_switched:
                raise
            result.notices.append(f"The old library could not be marked as moved: {error.message}.")

    def _copy_small_tables(self, source: MovingRows, target: MovingRows, place: str) -> None:
        """Copy once more what may have changed: searches are logged and tools edited without the lock of imports."""
        for table in SMALL_TABLES:
            for page in source.pages(table):
                target.put_page(table, page, is_new=False)
        target.put_last_ids(source.last_ids())
        expected, actual = (read_digests(rows, NO_OBSERVER, tables=SMALL_TABLES) for rows in (source, target))
        check_digests(expected, actual, self._tool_names(), place)

    def _tool_names(self) -> dict[int, str]:
        return {tool.id: tool.name for tool in self._store.tools.all()}
