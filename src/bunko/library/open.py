"""A place, flags and the environment in, an opened library with the settings that hold there out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from bunko.errors import LibraryError, LibraryMismatch, LibraryReadOnly
from bunko.library.catalog import SHADOW
from bunko.library.library import Library
from bunko.library.paths import DOCUMENTS, Home, in_file, in_folder, user_config_folder
from bunko.protocols import Store
from bunko.settings import Loaded, load
from bunko.stores import sqlite
from bunko.timing import now
from bunko.types import Tool


def open_library(
    home: Home,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
    read_only: bool = False,
    create: bool = True,
) -> Library:
    """Open the library at a place with the settings that hold there; a folder becomes its tool `documents`."""
    loaded = settings_for(home, environ=environ, flags=flags, config=config)
    home = _named_by_settings(home, loaded)
    try:
        missing = _missing(home)
    except OSError as error:  # a folder above is closed to us, or a name is too long
        raise _unmakeable(home, error.strerror or str(error)) from error
    if not create and missing:
        add = f"bunko tool add -n NAME -d TEXT -s DIR{home.flags() if home.docs_dir is None else ''}"
        raise LibraryError(
            f"There is no library at {home.place}",
            hint=f"Add a folder: {add}; or index one: bunko reindex --docs-dir DIR.",
        )
    try:
        store: Store = sqlite.build(home.database, read_only=read_only)
    except LibraryReadOnly as error:
        if not home.database.exists():
            why = getattr(error.__cause__, "strerror", None) or error.__cause__ or error.message
            raise _unmakeable(home, str(why)) from error
        # What is there can still be read; whoever wants to change it is told then why that is not possible.
        store = sqlite.build(home.database, read_only=True)
    library = Library(home, loaded.settings, store, read_only=read_only, notices=tuple(loaded.notices), made=missing)
    if home.docs_dir is not None:
        _claim(library, home.docs_dir)
    return library


def _missing(home: Home) -> tuple[Path, ...]:
    """Return the file of a library and the folders above that are not there, and refuse a place where none can be."""
    if home.database.is_dir():
        raise LibraryError(
            f"{home.database} is a folder, not the file of a library",
            hint="Name a library in a folder with --library DIR, one in a file with --database FILE.",
        )
    if home.folder.is_file():
        raise LibraryError(
            f"{home.folder} is a file, not the folder of a library",
            hint="Name a library in a file with --database FILE, one in a folder with --library DIR.",
        )
    return tuple(path for path in (home.database, *home.database.parents) if not path.exists())


def _unmakeable(home: Home, why: str) -> LibraryReadOnly:
    return LibraryReadOnly(
        f"{home.place} cannot be opened or made: {why}",
        hint="Check that its folder is there and yours to write in, or choose another place with --library, --database"
        " or --data-dir.",
    )


@contextmanager
def unmade_if_refused(library: Library) -> Iterator[None]:
    """Let a library that was just made be as if it never was, if what it was made for fails and it holds no tool."""
    try:
        yield
    except BaseException:
        if library.made and not library.store.tools():
            home = library.home
            library.close()
            for name in ("", "-wal", "-shm", ".lock"):
                home.database.with_name(home.database.name + name).unlink(missing_ok=True)
            with suppress(OSError):  # one that holds something else stays
                for folder in library.made[1:]:
                    folder.rmdir()
        raise


def settings_for(
    home: Home,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config: Path | None = None,
) -> Loaded:
    """Return the settings that hold for a library: from beside the documents, the library, or the user's own."""
    places = [home.folder, user_config_folder()]
    if home.docs_dir is not None:
        places.insert(0, home.docs_dir)
    return load(
        flags=flags or {},
        environ=environ,
        config=config,
        folders=places,
        dotenv_folders=[home.folder],
        guarded=home.docs_dir,
    )


def tool_names(home: Home, *, environ: Mapping[str, str], config: Path | None = None) -> list[str]:
    """Return the names of a library's tools, without making a file or changing one."""
    from bunko.stores.sqlite.peek import tool_names as names

    place = _named_by_settings(home, settings_for(home, environ=environ, config=config))
    return [name for name in names(place.database) if not name.startswith(SHADOW)]


def _named_by_settings(home: Home, loaded: Loaded) -> Home:
    """Return the library a config file names, where no flag and no environment named one.

    The config file in a library may say what its database is called; one that lies with documents may not.
    """
    base = loaded.config_file.parent if loaded.config_file else Path()
    if home.chosen:
        own = home.docs_dir is None and base == home.folder and in_folder(base).database == home.database
        from_file = loaded.config_file is not None and str(loaded.config_file) in loaded.origins["database.path"]
        if not (own and from_file and loaded.settings.database.path):
            return home
        return replace(in_file(base / Path(loaded.settings.database.path).expanduser()), flagged=home.flagged)
    if loaded.settings.library.path:
        return in_folder(base / Path(loaded.settings.library.path).expanduser())
    if loaded.settings.database.path:
        return in_file(base / Path(loaded.settings.database.path).expanduser())
    return home


def _claim(library: Library, docs_dir: Path) -> None:
    """Make sure that the library of a folder is about that folder."""
    tool = next((tool for tool in library.tools() if tool.name == DOCUMENTS), None)
    if tool is not None and tool.source == str(docs_dir):
        return
    if tool is not None and Path(tool.source).is_dir() and library.home.folder.parent != docs_dir:
        raise LibraryMismatch(
            f"The index in {library.home.folder} is about {tool.source}, not about {docs_dir}",
            hint="Give each folder a --data-dir of its own.",
        )
    if library.read_only:
        return
    if library.home.folder != docs_dir and library.home.folder.is_relative_to(docs_dir):
        with suppress(OSError):  # texts and a token lie there: nobody should commit them by accident
            (library.home.folder / ".gitignore").write_text("*\n", encoding="ascii")
    with suppress(LibraryReadOnly):
        if tool is not None:
            library.store.put_tool(replace(tool, source=str(docs_dir)))
        else:
            made = Tool(DOCUMENTS, "folder", f"Documents in {docs_dir.name}", str(docs_dir), created_at=now())
            library.store.ensure_tool(made)
