"""Open a library with its settings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from bunko import stores
from bunko.errors import LibraryError, LibraryMismatch, LibraryReadOnly, moved_error, rebuild_hint, unfinished_error
from bunko.library.library import Library
from bunko.library.opening.last_build import last_build_command
from bunko.library.opening.load_settings import (
    check_database_flag,
    load_library_settings,
    paths_from_settings,
    store_address,
)
from bunko.library.opening.paths import DOCUMENTS_TOOL, LibraryPaths
from bunko.library.rights.docs_tools import DocsCache, DocsTokens, DocsTools
from bunko.library.tools.catalog import tools
from bunko.protocols import Store
from bunko.runtime.timing import now
from bunko.settings import Settings
from bunko.types import Tool
from bunko.types.records import StoreAddress


def open_library(
    paths: LibraryPaths,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
    current_folder: Path | None = None,
    read_only: bool = False,
    create: bool = True,
    allow_moved: bool = False,
) -> Library:
    """Open a library with the settings that apply to it; a `docs_dir` becomes its tool `documents`.

    One that has moved to another place is opened only with `allow_moved`.
    """
    load = partial(
        load_library_settings, paths, environ=environ, flags=flags, config=config, current_folder=current_folder
    )
    loaded = load()
    check_database_flag(paths, loaded)
    paths = paths_from_settings(paths, loaded)
    address = store_address(paths, loaded.settings)
    try:
        _check_paths(paths, address)
        missing, exists = stores.missing_paths(*address), create or stores.exists(*address)
        is_empty = not exists and paths.database.is_file()
    except OSError as error:  # a parent folder is not accessible, or a name is too long
        raise _creation_error(paths, error.strerror or str(error)) from error
    if not exists:
        command = f"bunko add DIR{paths.cli_flags() if paths.docs_dir is None else ''}"
        last_command = "" if paths.is_explicit else last_build_command()
        hint = f"Search the library that was built last: {last_command}\n" if last_command else ""
        place = paths.display_path if address.server is None else stores.display_location(*address)
        raise LibraryError(
            f"{paths.database} is an empty file" if is_empty else f"There is no library at {place}",
            hint=f"{hint}Add a folder: {command}; or keep the index in the folder: bunko reindex --docs-dir DIR.",
        )
    try:
        store = stores.build(*address, read_only=read_only)
    except LibraryReadOnly as error:
        if stores.missing_paths(*address):
            reason = getattr(error.__cause__, "strerror", None) or error.__cause__ or error.message
            raise _creation_error(paths, str(reason)) from error
        # The library can still be read; an attempt to write to it will raise the reason.
        store = stores.build(*address, read_only=True)
    try:
        _check_marks(store, allow_moved=allow_moved)
        notices = [*loaded.notices, *_prepare_documents_tool(store, paths, read_only=read_only)]
        return Library(
            paths, loaded.settings, store, read_only=read_only, notices=tuple(notices), created_paths=missing,
            setting_origins=loaded.origins, current_folder_notices=tuple(loaded.current_folder_notices),
            settings_file=config, reload_settings=partial(load, all_providers=True),
        )  # fmt: skip
    except BaseException:
        store.close()
        raise


def _check_marks(store: Store, *, allow_moved: bool) -> None:
    """Raise an error if a library is somewhere else now, or not complete yet."""
    if not allow_moved and (place := store.moved_to()):
        raise moved_error(store.location, place)
    if store.rows.is_unfinished():
        raise unfinished_error(store.location)


def _check_paths(paths: LibraryPaths, address: StoreAddress) -> None:
    """Raise an error if a library cannot be there."""
    if paths.is_among_documents:
        # Files of a library among documents that are links: writing would change another file.
        assert paths.docs_dir is not None
        inner_folders = [folder for folder in (paths.folder, *paths.folder.parents) if paths.docs_dir in folder.parents]
        files = (paths.index_folder, *stores.file_paths(*address))
        for path in (*reversed(inner_folders), *files):
            if path.is_symlink():
                raise LibraryError(
                    f"{path} is a link, which could lead to any of your files",
                    hint="Delete it, or name the folder for the index with --data-dir.",
                )
    if paths.database.exists() and not (paths.database.is_file() or paths.database.is_dir()):
        raise LibraryError(f"{paths.database} is not a file", hint=rebuild_hint(paths.database))
    if paths.database.is_dir():
        raise LibraryError(
            f"{paths.database} is a folder, not a library file",
            hint="Use --library DIR for a library in a folder, --database FILE for one in a file.",
        )
    if paths.folder.is_file():
        raise LibraryError(
            f"{paths.folder} is a file, not a library folder",
            hint="Use --database FILE for a library in a file, --library DIR for one in a folder.",
        )


def _creation_error(paths: LibraryPaths, reason: str) -> LibraryReadOnly:
    return LibraryReadOnly(
        f"{paths.display_path} cannot be opened or created: {reason}",
        hint="Check that its folder exists and is writable, or choose another one with --library, --database or"
        " --data-dir.",
    )


def with_settings(library: Library, settings: Settings) -> Library:
    """Return the same library with other settings; both share one store, so only the first is closed."""
    return Library(library.paths, settings, library.store)


@contextmanager
def remove_new_library_on_error(library: Library) -> Iterator[None]:
    """Delete a library that was just created if the block fails and the library has no tool."""
    try:
        yield
    except BaseException:
        if library.created_paths and not library.store.tools.all():
            library.close()
            stores.delete(*library.storage.address)
            with suppress(OSError):  # a folder that is not empty stays
                for folder in library.created_paths[1:]:
                    folder.rmdir()
        raise


def _check_server_documents(store: Store, tool: Tool | None, docs_dir: Path) -> None:
    """Raise an error if a library on a server holds something else than the documents of this folder."""
    hint = "Set storage.schema to another name for this folder, or add it to the library: bunko tool add."
    if tool is None and tools(store):
        # Others search it: nothing of this folder is shown to them unless somebody says so.
        raise LibraryMismatch(f"{store.location} has other tools, and would get the documents of {docs_dir}", hint=hint)
    if tool is not None and tool.source and docs_dir != Path(tool.source):
        # Its folder may be on another machine: nobody here can say that it is gone.
        raise LibraryMismatch(
            f"{DOCUMENTS_TOOL} in {store.location} was built from {tool.source}, not from {docs_dir}", hint=hint
        )


def _prepare_documents_tool(store: Store, paths: LibraryPaths, *, read_only: bool) -> list[str]:
    """Create or update the tool `documents` of a `docs_dir`, and return notices; raise if it indexes another folder."""
    docs_dir = paths.docs_dir
    if docs_dir is None:
        return []
    tool = next((tool for tool in tools(store) if tool.name == DOCUMENTS_TOOL), None)
    is_on_server = store.address.server is not None
    if is_on_server:
        _check_server_documents(store, tool, docs_dir)
    if (
        tool is not None
        and tool.source
        and Path(tool.source).is_dir()
        and docs_dir not in (Path(tool.source), paths.folder.parent)
    ):
        raise LibraryMismatch(
            f"The index in {paths.folder} was built from {tool.source}, not from {docs_dir}",
            hint="Use a separate --data-dir for each folder.",
        )
    if not read_only and (tool is None or (tool.kind, tool.source) != ("folder", str(docs_dir))):
        if store.is_persistent and paths.folder != docs_dir and paths.folder.is_relative_to(docs_dir):
            # It holds texts, which must not be committed by accident. A file or link of that name is left alone.
            with suppress(OSError), open(paths.folder / ".gitignore", "x", encoding="ascii") as file:
                file.write("*\n")
        with suppress(LibraryReadOnly):
            if tool is not None:
                store.tools.put(replace(tool, kind="folder", source=str(docs_dir)))
            else:
                store.tools.ensure(
                    Tool(DOCUMENTS_TOOL, "folder", f"Documents in {docs_dir.name}", str(docs_dir), created_at=now())
                )
    if not (store.is_persistent and paths.is_among_documents) or is_on_server:
        return []
    store.cache = DocsCache(store.cache)
    store.tools = docs_tools = DocsTools(store.tools, docs_dir)
    store.tokens = DocsTokens()
    if not (ignored := docs_tools.count_ignored()):
        return []
    # Without their names, which assistants would read and somebody else may have written.
    return [
        f"{ignored} other tool{'s' if ignored > 1 else ''} in {paths.folder} {'are' if ignored > 1 else 'is'} ignored:"
        " an index among documents is for that folder only. If you added it yourself, use it with:"
        f" {shlex.join(['--library', str(paths.folder)])}"
    ]
