"""Flags and environment in, where a library lies out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bunko.errors import SettingsError, SourceError
from bunko.text.normalise import printable

# The name of the tool that a folder given with --docs-dir becomes.
DOCUMENTS = "documents"
_NAME, _DATA = "library.db", ".rag-index"


@dataclass(frozen=True, slots=True)
class Home:
    """The files of one library."""

    database: Path
    derived: Path
    docs_dir: Path | None = None
    chosen: bool = True  # False where nobody named a library and the user's own is meant
    flagged: bool = False  # a flag named it, so that the next command needs one too
    in_file: bool = False  # it was named by its file, not by its folder

    @property
    def place(self) -> Path:
        """What users call it by: its folder, or its file."""
        return self.database if self.in_file else self.folder

    @property
    def folder(self) -> Path:
        """Where a config file and `.env` of this library lie."""
        return self.database.parent

    def arguments(self) -> list[str]:
        """Return the flags that name this library to any command."""
        if self.docs_dir is None:
            return (
                ["--library", str(self.folder)] if self.database.name == _NAME else ["--database", str(self.database)]
            )
        data = [] if self.folder == self.docs_dir / _DATA else ["--data-dir", str(self.folder)]
        return ["--docs-dir", str(self.docs_dir), *data]

    def flags(self) -> str:
        """Return what the next command has to be told to mean this library, after a space; often nothing."""
        return f" {shlex.join(self.arguments())}" if self.flagged else ""

    @property
    def lock(self) -> Path:
        """What a writer holds."""
        return self.database.with_name(f"{self.database.name}.lock")


def locate(
    *,
    library: Path | None = None,
    database: Path | None = None,
    docs_dir: Path | None = None,
    data_dir: Path | None = None,
    environ: Mapping[str, str],
) -> Home:
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
        if (shown := printable(str(docs_dir))) != str(docs_dir):
            raise SourceError(f"The name of {shown} is not valid Unicode", hint="Rename the folder.")
        folder = data_dir.expanduser().absolute() if data_dir else docs_dir / _DATA
        return replace(in_folder(folder, docs_dir=docs_dir), flagged=True)
    if data_dir is not None:
        raise SettingsError("--data-dir goes with --docs-dir", hint="Use --library to name a library.")
    if library is not None and database is not None:
        raise SettingsError("--library and --database both name a library", hint="Give one of them.")
    if database is not None:
        return replace(in_file(database), flagged=True)
    if library is not None:
        return replace(in_folder(library), flagged=True)
    if named := environ.get("BUNKO_LIBRARY_PATH") or environ.get("BUNKO_LIBRARY"):
        return in_folder(Path(named))
    if named := environ.get("BUNKO_DATABASE_PATH"):
        return in_file(Path(named))
    import platformdirs

    return in_folder(Path(platformdirs.user_data_dir("bunko", appauthor=False)), chosen=False)


def in_folder(folder: Path, *, docs_dir: Path | None = None, chosen: bool = True) -> Home:
    """Return the library of a folder."""
    folder = folder.expanduser().absolute()
    return Home(folder / _NAME, folder / "index", docs_dir, chosen)


def in_file(database: Path) -> Home:
    """Return the library in a file, its derived files beside it."""
    database = database.expanduser().absolute()
    return Home(database, database.with_name(f"{database.name}.d"), in_file=True)


def user_config_folder() -> Path:
    """Return where the user keeps settings for all libraries."""
    import platformdirs

    return Path(platformdirs.user_config_dir("bunko", appauthor=False))
