"""Flags and environment in, where a library lies out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

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
    is_explicit: bool = True  # False where nobody named a library and the user's own is meant
    from_flag: bool = False  # a flag named it, so that the next command needs one too
    is_file_path: bool = False  # it was named by its file, not by its folder

    @property
    def display_path(self) -> Path:
        """What users call it by: its folder, or its file."""
        return self.database if self.is_file_path else self.folder

    @property
    def folder(self) -> Path:
        """Where a config file and `.env` of this library lie."""
        return self.database.parent

    def cli_arguments(self) -> list[str]:
        """Return the flags that name this library to any command."""
        if self.docs_dir is None:
            return (
                ["--library", str(self.folder)]
                if self.database.name == _DATABASE_NAME
                else ["--database", str(self.database)]
            )
        data = [] if self.folder == self.docs_dir / _DATA_FOLDER else ["--data-dir", str(self.folder)]
        return ["--docs-dir", str(self.docs_dir), *data]

    def cli_flags(self) -> str:
        """Return what the next command has to be told to mean this library, after a space; often nothing."""
        return f" {shlex.join(self.cli_arguments())}" if self.from_flag else ""

    @property
    def lock_file(self) -> Path:
        """What a writer holds."""
        return self.database.with_name(f"{self.database.name}.lock")


def locate_library(
    *,
    library: Path | None = None,
    database: Path | None = None,
    docs_dir: Path | None = None,
    data_dir: Path | None = None,
    environ: Mapping[str, str],
) -> LibraryPaths:
    """Return the library that flags name, else the one the environment names, else the user's own."""
    if docs_dir is not None:
        if library is not None or database is not None:
            raise SettingsError(
                "--docs-dir has a library of its own, so --library and --database do not go with it",
                hint="Use --data-dir to say where the index of that folder lies.",
            )
        docs_dir = docs_dir.expanduser()
        if not docs_dir.is_dir():
            raise SourceError(
                f"There is no folder {docs_dir}" if not docs_dir.exists() else f"{docs_dir} is not a folder",
                hint="Check the path given with --docs-dir.",
            )
        docs_dir = docs_dir.resolve()
        if (shown := escape_surrogates(str(docs_dir))) != str(docs_dir):
            raise SourceError(f"The name of {shown} is not valid Unicode", hint="Rename the folder.")
        folder = data_dir.expanduser().absolute() if data_dir else docs_dir / _DATA_FOLDER
        return replace(paths_for_folder(folder, docs_dir=docs_dir), from_flag=True)
    if data_dir is not None:
        raise SettingsError("--data-dir goes with --docs-dir", hint="Use --library to name a library.")
    if library is not None and database is not None:
        raise SettingsError("--library and --database both name a library", hint="Give one of them.")
    if database is not None:
        return replace(paths_for_file(database), from_flag=True)
    if library is not None:
        return replace(paths_for_folder(library), from_flag=True)
    if named := environ.get("BUNKO_LIBRARY_PATH") or environ.get("BUNKO_LIBRARY"):
        return paths_for_folder(Path(named))
    if named := environ.get("BUNKO_DATABASE_PATH"):
        return paths_for_file(Path(named))
    import platformdirs

    return paths_for_folder(Path(platformdirs.user_data_dir("bunko", appauthor=False)), is_explicit=False)


def paths_for_folder(folder: Path, *, docs_dir: Path | None = None, is_explicit: bool = True) -> LibraryPaths:
    """Return the library of a folder."""
    folder = folder.expanduser().absolute()
    return LibraryPaths(folder / _DATABASE_NAME, folder / "index", docs_dir, is_explicit)


def paths_for_file(database: Path) -> LibraryPaths:
    """Return the library in a file, its derived files beside it."""
    database = database.expanduser().absolute()
    return LibraryPaths(database, database.with_name(f"{database.name}.d"), is_file_path=True)


def user_config_folder() -> Path:
    """Return where the user keeps settings for all libraries."""
    import platformdirs

    return Path(platformdirs.user_config_dir("bunko", appauthor=False))
