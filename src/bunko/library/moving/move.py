"""Move a library to another store: copy, verify, and switch the settings only when both are equal."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from bunko import indexes, stores
from bunko.errors import LibraryError, LibraryReadOnly, SettingsError
from bunko.library.admin.index_options import engine_options, index_folder
from bunko.library.importing.importer import hold_lock
from bunko.library.library import Library
from bunko.library.moving.sample_searches import SearchComparison, compare_indexes, sample_searches
from bunko.library.moving.settings_file import SettingsChange, plan_change
from bunko.library.opening.paths import LibraryPaths, paths_for_file
from bunko.library.tools import catalog
from bunko.protocols import Digest, Index, MovingRows, RowPage, Store
from bunko.protocols.store import Key
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now
from bunko.settings import LoadedSettings, Settings
from bunko.types.records import DatabaseServer, StoreAddress, Totals

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
        with exclude_writers(self._store, observer):
            # It may be the copy of an earlier move: whatever says so afterwards is another place.
            self._store.rows.begin_use()
            with self._open_target(destination, observer) as target:
                check_destination(self._store, destination)  # it may have changed since
                result.rows = copy_library(self._store, target, observer, is_finished=False)
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
    def _open_target(self, destination: Destination, observer: Observer) -> Iterator[Store]:
        with closing(stores.build(*destination.address)) as target, exclude_writers(target, observer):
            yield target

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
        check_digests(expected, actual, tool_names(self._store), place)


@contextmanager
def exclude_writers(store: Store, observer: Observer) -> Iterator[None]:
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


def copy_library(source: Store, target: Store, observer: Observer, *, is_finished: bool) -> int:
    """Copy and verify all rows, and return how many there are; the target can be used once it is finished."""
    source_rows, target_rows = source.rows, target.rows
    target_rows.begin_copy(source.id)
    digests = copy_rows(source_rows, target_rows, observer)
    check_digests(digests, read_digests(target_rows, observer), tool_names(source), target.location)
    target_rows.put_last_ids(source_rows.last_ids())
    target_rows.put_values(source_rows.values(), {}, is_finished=is_finished)
    return sum(digest.rows for digest in digests.values())


def tool_names(store: Store) -> dict[int, str]:
    """Return the names of all tools, also of those that a rebuild has not finished, by their ids."""
    return {tool.id: tool.name for tool in store.tools.all()}


# The digest of the rows of a table that belong to a tool, by table and id of the tool, 0 if to none.
Digests = dict[tuple[str, int], Digest]

COPY_STEP, VERIFY_STEP = "Copying", "Verifying"
# What may change without the lock of imports.
SMALL_TABLES = ("tools", "tokens", "audit", "outbox", "domains", "answers", "asked")
# What a library without tools may have that nobody can make again.
_MISSED_TABLES = ("vectors", "tokens", "audit", "outbox", "domains")


def copy_rows(source: MovingRows, target: MovingRows, observer: Observer) -> Digests:
    """Make the rows of all tables of a target those of a source; return the digests of the source.

    What the target has already, as after an interrupted run, is compared and not written again.
    """
    digests: Digests = {}
    last_key: Key = ()
    for table, page in _read_pages(source, source.tables, digests, observer, COPY_STEP):
        if not page.after:  # the first page of a table
            last_key = target.last_key(table)
        target.put_page(table, page, is_new=not last_key or bool(page.after and page.after >= last_key))
    return digests


def read_digests(
    rows: MovingRows, observer: Observer, *, tables: Sequence[str] | None = None, step: str = VERIFY_STEP
) -> Digests:
    """Return the digests of all rows of some tables, by default of all."""
    digests: Digests = {}
    for _ in _read_pages(rows, rows.tables if tables is None else tables, digests, observer, step):
        pass
    return digests


def _read_pages(
    rows: MovingRows, tables: Sequence[str], digests: Digests, observer: Observer, step: str
) -> Iterator[tuple[str, RowPage]]:
    """Yield the pages of tables, and add the digests of their rows."""
    total, done = sum(map(rows.count, tables)), 0
    for table in tables:
        for page in rows.pages(table):
            yield table, page
            for tool_id, digest in rows.digests(table, page).items():
                digests[table, tool_id] = digests.get((table, tool_id), Digest()) + digest
            done += len(page.rows)
            observer.on_step(step, done, total)


def check_digests(source: Digests, target: Digests, tool_names: Mapping[int, str], place: str) -> None:
    """Raise an error that names what differs between a library and its copy."""
    if differences := list(_differences(source, target, tool_names)):
        summary = ", ".join(differences[:5]) + (", …" if len(differences) > 5 else "")
        raise LibraryError(
            f"The copy in {place} differs from the library: {summary}",
            hint="Nothing was switched. Run the same command again: it compares all rows and copies those that differ.",
        )


def _differences(source: Digests, target: Digests, tool_names: Mapping[int, str]) -> Iterator[str]:
    for table, tool_id in sorted(source.keys() | target.keys()):
        expected, actual = (digests.get((table, tool_id), Digest()) for digests in (source, target))
        if expected != actual:
            tool = f" of {tool_names.get(tool_id, tool_id)}" if tool_id else ""
            yield f"{table}{tool} ({expected.rows:,} and {actual.rows:,} rows)"


SETTINGS_KEYS = ("storage.kind", "storage.url", "storage.schema")
PATH_KEYS = ("database.path", "library.path")
_SQLITE_PREFIX, _POSTGRES_SCHEMES = "sqlite:", ("postgresql", "postgres")
_TO_HINT = "Write --to postgresql://USER@HOST/DATABASE or --to sqlite:FILE."


@dataclass(frozen=True, slots=True)
class Destination:
    """A place for a library, and the settings that name it."""

    address: StoreAddress
    changes: dict[str, str | None]  # of settings; None: to be removed

    @property
    def display(self) -> str:
        """The place, for messages."""
        return stores.display_location(*self.address)


# What is at a destination: nothing, a copy that was begun, or what an earlier move left.
Content = Literal["empty", "unfinished", "former"]


def parse_destination(text: str, paths: LibraryPaths, located: LibraryPaths, settings: Settings) -> Destination:
    """Return the place that `--to` names; relative paths begin at the current folder.

    `located` is the library as flags and the environment name it, which the settings may have changed to `paths`.
    """
    if text.startswith(_SQLITE_PREFIX):
        name = text.removeprefix(_SQLITE_PREFIX)
        if not name.strip():
            raise SettingsError("sqlite: names no file", hint=_TO_HINT)
        path = Path(name).expanduser().absolute()
        if path.is_dir():
            raise SettingsError(f"{path} is a folder", hint=f"Name a file: sqlite:{path / paths.database.name}")
        changes: dict[str, str | None] = {"storage.kind": "sqlite", "storage.url": None, "storage.schema": None}
        if path != paths.database:
            changes |= {"database.path": None if path == located.database else str(path), "library.path": None}
        return Destination(StoreAddress("sqlite", path), changes)
    if text.partition("://")[0] not in _POSTGRES_SCHEMES or "://" not in text:
        raise SettingsError("This is not a place for a library", hint=_TO_HINT)  # it may contain a password
    url, schema = _split_schema(text)
    storage = settings.storage
    schema = schema or storage.schema
    server = DatabaseServer(url, schema, storage.password, storage.pool_size)
    address = StoreAddress("postgres", paths.database, server)
    stores.display_location(*address)  # checks the URL before anything is opened
    return Destination(address, dict(zip(SETTINGS_KEYS, ("postgres", url, schema), strict=True)))


def _split_schema(url: str) -> tuple[str, str]:
    """Return a URL without its parameter `schema`, and that schema: the settings have a key for it."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return url, ""  # the store says what is wrong with it
    schema = next((value for name, value in query if name == "schema"), "")
    if not schema:
        return url, ""
    return parts._replace(query=urlencode([pair for pair in query if pair[0] != "schema"])).geturl(), schema


def address_argument(address: StoreAddress) -> str:
    """Return what `--to` must be to move a library to an address."""
    if address.server is None:
        return f"{_SQLITE_PREFIX}{address.location}"
    url, schema = _split_schema(address.server.url)
    return f"{url}{'&' if '?' in url else '?'}schema={schema or address.server.schema}"


def check_destination(source: Store, destination: Destination) -> Content:
    """Return what is at a destination; raise an error if it is neither empty nor this library's."""
    place = destination.display
    is_file = destination.address.server is None
    if place == source.location or (is_file and source.files.contain(os.path.realpath(destination.address.location))):
        raise _here_already_error(place)
    if not stores.exists(*destination.address):
        return "empty"
    try:
        store = stores.build(*destination.address, read_only=True)
    except LibraryReadOnly as error:  # its tables are older than those of this bunko
        raise _holds_other_error(place) from error
    with closing(store):
        copy_of = store.rows.copy_of()
        if copy_of:
            if copy_of != source.id:
                raise LibraryError(
                    f"{place} holds a copy of another library",
                    hint="Finish that move, delete what is there, or name another place.",
                )
            return "unfinished"
        if store.id == source.id:
            if store.moved_to():
                return "former"
            raise _here_already_error(place)
        if holds_rows(store):
            raise _holds_other_error(place)
    return "empty"


def holds_rows(store: Store) -> bool:
    """Return whether a library has anything that would be missed."""
    return bool(store.tools.all()) or any(map(store.rows.count, _MISSED_TABLES))


def _here_already_error(place: str) -> LibraryError:
    return LibraryError(f"This library is in {place} already", hint="Name another place.")


def _holds_other_error(place: str) -> LibraryError:
    return LibraryError(
        f"{place} holds another library, which was not changed",
        hint="Name a file that does not exist, or another schema: postgresql://…?schema=NAME.",
    )
