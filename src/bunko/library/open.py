"""A place, flags and the environment in, an opened library with the settings that hold there out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from bunko.errors import LibraryError, LibraryMismatch, LibraryReadOnly
from bunko.library.catalog import SHADOW_PREFIX
from bunko.library.library import Library
from bunko.library.paths import DOCUMENTS_TOOL, LibraryPaths, paths_for_file, paths_for_folder, user_config_folder
from bunko.protocols import Store
from bunko.settings import LoadedSettings, load_settings
from bunko.stores import sqlite
from bunko.timing import now
from bunko.types import Tool


def open_library(
    paths: LibraryPaths,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
    read_only: bool = False,
    create: bool = True,
) -> Library:
    """Open the library at a place with the settings that hold there; a folder becomes its tool `documents`."""
    loaded = load_library_settings(paths, environ=environ, flags=flags, config=config)
    paths = _paths_from_settings(paths, loaded)
    try:
        missing = _missing_paths(paths)
    except OSError as error:  # a folder above is closed to us, or a name is too long
        raise _creation_error(paths, error.strerror or str(error)) from error
    if not create and missing:
        add = f"bunko tool add -n NAME -d TEXT -s DIR{paths.cli_flags() if paths.docs_dir is None else ''}"
        raise LibraryError(
            f"There is no library at {paths.display_path}",
            hint=f"Add a folder: {add}; or index one: bunko reindex --docs-dir DIR.",
        )
    try:
        store: Store = sqlite.build(paths.database, read_only=read_only)
    except LibraryReadOnly as error:
        if not paths.database.exists():
            why = getattr(error.__cause__, "strerror", None) or error.__cause__ or error.message
            raise _creation_error(paths, str(why)) from error
        # What is there can still be read; whoever wants to change it is told then why that is not possible.
        store = sqlite.build(paths.database, read_only=True)
    library = Library(
        paths, loaded.settings, store, read_only=read_only, notices=tuple(loaded.notices), created_paths=missing
    )
    if paths.docs_dir is not None:
        _ensure_documents_tool(library, paths.docs_dir)
    return library


def _missing_paths(paths: LibraryPaths) -> tuple[Path, ...]:
    """Return the file of a library and the folders above that are not there, and refuse a place where none can be."""
    if paths.database.is_dir():
        raise LibraryError(
            f"{paths.database} is a folder, not the file of a library",
            hint="Name a library in a folder with --library DIR, one in a file with --database FILE.",
        )
    if paths.folder.is_file():
        raise LibraryError(
            f"{paths.folder} is a file, not the folder of a library",
            hint="Name a library in a file with --database FILE, one in a folder with --library DIR.",
        )
    return tuple(path for path in (paths.database, *paths.database.parents) if not path.exists())


def _creation_error(paths: LibraryPaths, reason: str) -> LibraryReadOnly:
    return LibraryReadOnly(
        f"{paths.display_path} cannot be opened or made: {reason}",
        hint="Check that its folder is there and yours to write in, or choose another place with --library, --database"
        " or --data-dir.",
    )


@contextmanager
def remove_new_library_on_error(library: Library) -> Iterator[None]:
    """Let a library that was just made be as if it never was, if what it was made for fails and it holds no tool."""
    try:
        yield
    except BaseException:
        if library.created_paths and not library.store.tools():
            home = library.paths
            library.close()
            for name in ("", "-wal", "-shm", ".lock"):
                home.database.with_name(home.database.name + name).unlink(missing_ok=True)
            with suppress(OSError):  # one that holds something else stays
                for folder in library.created_paths[1:]:
                    folder.rmdir()
        raise


def load_library_settings(
    paths: LibraryPaths,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
) -> LoadedSettings:
    """Return the settings that hold for a library: from beside the documents, the library, or the user's own."""
    places = [paths.folder, user_config_folder()]
    if paths.docs_dir is not None:
        places.insert(0, paths.docs_dir)
    return load_settings(
        flags=flags or {},
        environ=environ,
        config=config,
        config_folders=places,
        dotenv_folders=[paths.folder],
        untrusted_folder=paths.docs_dir,
    )


def tool_names(paths: LibraryPaths, *, environ: Mapping[str, str], config: Path | None = None) -> list[str]:
    """Return the names of a library's tools, without making a file or changing one."""
    from bunko.stores.sqlite.peek import tool_names as names

    place = _paths_from_settings(paths, load_library_settings(paths, environ=environ, config=config))
    return [name for name in names(place.database) if not name.startswith(SHADOW_PREFIX)]


def _paths_from_settings(paths: LibraryPaths, loaded: LoadedSettings) -> LibraryPaths:
    """Return the library a config file names, where no flag and no environment named one.

    The config file in a library may say what its database is called; one that lies with documents may not.
    """
    base = loaded.config_file.parent if loaded.config_file else Path()
    if paths.is_explicit:
        own = paths.docs_dir is None and base == paths.folder and paths_for_folder(base).database == paths.database
        from_file = loaded.config_file is not None and str(loaded.config_file) in loaded.origins["database.path"]
        if not (own and from_file and loaded.settings.database.path):
            return paths
        return replace(
            paths_for_file(base / Path(loaded.settings.database.path).expanduser()), from_flag=paths.from_flag
        )
    if loaded.settings.library.path:
        return paths_for_folder(base / Path(loaded.settings.library.path).expanduser())
    if loaded.settings.database.path:
        return paths_for_file(base / Path(loaded.settings.database.path).expanduser())
    return paths


def _ensure_documents_tool(library: Library, docs_dir: Path) -> None:
    """Make sure that the library of a folder is about that folder."""
    tool = next((tool for tool in library.tools() if tool.name == DOCUMENTS_TOOL), None)
    if tool is not None and tool.source == str(docs_dir):
        return
    if tool is not None and Path(tool.source).is_dir() and library.paths.folder.parent != docs_dir:
        raise LibraryMismatch(
            f"The index in {library.paths.folder} is about {tool.source}, not about {docs_dir}",
            hint="Give each folder a --data-dir of its own.",
        )
    if library.read_only:
        return
    if library.paths.folder != docs_dir and library.paths.folder.is_relative_to(docs_dir):
        with suppress(OSError):  # texts and a token lie there: nobody should commit them by accident
            (library.paths.folder / ".gitignore").write_text("*\n", encoding="ascii")
    with suppress(LibraryReadOnly):
        if tool is not None:
            library.store.put_tool(replace(tool, source=str(docs_dir)))
        else:
            made = Tool(DOCUMENTS_TOOL, "folder", f"Documents in {docs_dir.name}", str(docs_dir), created_at=now())
            library.store.ensure_tool(made)
