"""Locate the files of a library from flags and the environment."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bunko import stores
from bunko.errors import SettingsError, SourceError
from bunko.text.normalise import escape_surrogates

# The name of the tool that a folder given with --docs-dir becomes.
DOCUMENTS_TOOL = "documents"
_DATABASE_NAME, _DATA_FOLDER = "library.db", ".rag-index"


@dataclass(frozen=True, slots=True)
class LibraryPaths:
    """The files of one library."""

    database: Path
    index_folder: Path
    docs_dir: Path | None = None
    is_explicit: bool = True  # False if nothing named a library and this is the user's default one
    from_flag: bool = False  # named by a flag, so the next command needs that flag too
    is_file_path: bool = False  # named by its file, not by its folder

    @property
    def display_path(self) -> Path:
        """The path shown to users: its folder, or its file if that named it."""
        return self.database if self.is_file_path else self.folder

    @property
    def folder(self) -> Path:
        """The folder that holds the config file and `.env` of this library."""
        return self.database.parent

    @property
    def is_among_documents(self) -> bool:
        """Whether the library lies in the folder of its documents, and may have come with them from somebody else."""
        if self.docs_dir is None:
            return False
        return any(folder.is_relative_to(self.docs_dir) for folder in (self.folder, self.folder.resolve()))

    def digest(self) -> str:
        """Return what names this library in the user's data folder: links to it have the same name."""
        return hashlib.sha256(os.fsencode(os.path.realpath(self.database))).hexdigest()

    def cli_arguments(self) -> list[str]:
        """Return the flags that select this library in any command."""
        if self.docs_dir is None:
            return (
                ["--library", str(self.folder)]
                if self.database.name == _DATABASE_NAME
                else ["--database", str(self.database)]
            )
        data = [] if self.folder == self.docs_dir / _DATA_FOLDER else ["--data-dir", str(self.folder)]
        return ["--docs-dir", str(self.docs_dir), *data]

    def cli_flags(self) -> str:
        """Return the flags the next command needs to select this library, after a space; empty if it needs none."""
        return f" {shlex.join(self.cli_arguments())}" if self.from_flag else ""


def locate_library(
    *,
    library: Path | None = None,
    database: Path | None = None,
    docs_dir: Path | None = None,
    data_dir: Path | None = None,
    environ: Mapping[str, str],
) -> LibraryPaths:
    """Return the library named by flags, else by the environment, else the user's default one."""
    if docs_dir is not None:
        if library is not None or database is not None:
            raise SettingsError(
                "--docs-dir cannot be used with --library or --database",
                hint="Use --data-dir to choose where the index of that folder is stored.",
            )
        docs_dir = docs_dir.expanduser()
        if not docs_dir.is_dir():
            raise SourceError(
                f"There is no folder {docs_dir}" if not docs_dir.exists() else f"{docs_dir} is not a folder",
                hint="Check the path given with --docs-dir.",
            )
        docs_dir = docs_dir.resolve()
        if (printable := escape_surrogates(str(docs_dir))) != str(docs_dir):
            raise SourceError(f"The name of {printable} is not valid Unicode", hint="Rename the folder.")
        paths = paths_for_folder(data_dir, docs_dir=docs_dir) if data_dir else paths_for_docs(docs_dir)
        return replace(paths, from_flag=True)
    if data_dir is not None:
        raise SettingsError("--data-dir requires --docs-dir", hint="Use --library to choose a library.")
    if library is not None and database is not None:
        raise SettingsError("--library and --database cannot be used together", hint="Give one of them.")
    if database is not None:
        return replace(paths_for_file(database), from_flag=True)
    if library is not None:
        return replace(paths_for_folder(library), from_flag=True)
    if path := environ.get("BUNKO_LIBRARY_PATH") or environ.get("BUNKO_LIBRARY"):
        return paths_for_folder(Path(path))
    if path := environ.get("BUNKO_DATABASE_PATH"):
        return paths_for_file(Path(path))
    return paths_for_folder(user_data_folder(), is_explicit=False)


def locate_from_path(path: Path | None, *, environ: Mapping[str, str]) -> LibraryPaths:
    """Return the library that a path names: its own folder or file, a folder of documents, or None for the default."""
    if path is None:
        return locate_library(environ=environ)
    path = path.expanduser()
    if path.is_file() or path.suffix in (".db", ".sqlite"):
        return locate_library(database=path, environ=environ)
    # A library on a server has a file of its own here too, once this machine has opened it.
    if (path / _DATABASE_NAME).is_file() or stores.file_paths("postgres", path / _DATABASE_NAME):
        return locate_library(library=path, environ=environ)
    if not path.is_dir():
        raise SourceError(f"There is no folder {path}", hint="Check the path, or create the folder first.")
    if not (path / _DATA_FOLDER).exists() and _names_server(path):
        # Its file may have come with documents from somebody else: only its user can say that it is a library.
        raise SettingsError(
            f"{path} has settings of a library on a server, which this machine has not opened yet",
            hint=f"If they are yours: {shlex.join(['bunko', 'status', '--library', str(path)])}",
        )
    return locate_library(docs_dir=path, environ=environ)


def _names_server(folder: Path) -> bool:
    from bunko.settings.files import find_configs

    for config in find_configs([folder], lambda _: True, []):
        storage = config.table.get("storage")
        if isinstance(storage, dict) and storage.get("kind") == "postgres":
            return True
    return False


def paths_for_folder(folder: Path, *, docs_dir: Path | None = None, is_explicit: bool = True) -> LibraryPaths:
    """Return the paths of a library in a folder."""
    folder = folder.expanduser().absolute()
    return LibraryPaths(folder / _DATABASE_NAME, folder / "index", docs_dir, is_explicit)


def paths_for_docs(docs_dir: Path) -> LibraryPaths:
    """Return the paths of the index in a folder of documents."""
    return paths_for_folder(docs_dir / _DATA_FOLDER, docs_dir=docs_dir)


def paths_for_file(database: Path) -> LibraryPaths:
    """Return the paths of a library in a database file, with its derived files beside it."""
    database = database.expanduser().absolute()
    return LibraryPaths(database, database.with_name(f"{database.name}.d"), is_file_path=True)


def user_config_folder() -> Path:
    """Return the folder of the user's settings for all libraries."""
    import platformdirs

    return Path(platformdirs.user_config_dir("bunko", appauthor=False))


def user_data_folder() -> Path:
    """Return the folder of the user's default library and secrets."""
    import platformdirs

    return Path(platformdirs.user_data_dir("bunko", appauthor=False)).absolute()
