"""Count the files of a folder that are not read, to say why an import found little or nothing."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from bunko.sources.walk import MACHINE_FOLDERS, is_vault_internal

# A longer one, or one with blanks, is part of a name: "1. What we did".
_ENDING = re.compile(r"\.\w{1,12}")
_SNIFFED_BYTES = 4096


@dataclass(slots=True)
class Survey:
    """The files below a folder, by whether their names say that they are read."""

    unread: Counter[str] = field(default_factory=Counter)  # by ending in lower case; empty for none
    examples: dict[str, Path] = field(default_factory=dict)  # one file of each of these endings
    readable: int = 0  # files whose ending is read, though a pattern or .gitignore may leave them out
    skipped_folders: list[str] = field(default_factory=list)  # relative to the folder


def survey_folder(
    root: Path, *, endings: tuple[str, ...], exclude_dirs: Sequence[str], own_folder: Path | None = None
) -> Survey:
    """Count the files below a folder; those of `own_folder` and hidden ones are no documents."""
    survey, excluded = Survey(), {name.rstrip("/") for name in exclude_dirs}
    for folder, folders, files in os.walk(root):
        prefix = "" if Path(folder) == root else f"{PurePath(os.path.relpath(folder, root)).as_posix()}/"
        is_hidden = prefix.startswith(".") or "/." in prefix
        survey.skipped_folders += sorted(prefix + name for name in folders if name in excluded - MACHINE_FOLDERS)
        folders[:] = sorted(
            name
            for name in folders
            if name not in excluded and not is_vault_internal(prefix + name) and Path(folder, name) != own_folder
        )
        for name in sorted(files):
            if name.lower().endswith(endings):
                survey.readable += 1
            elif not is_hidden and not name.startswith((".", "~$")):
                suffix = PurePath(name).suffix.lower()
                ending = suffix if _ENDING.fullmatch(suffix) else ""
                survey.unread[ending] += 1
                survey.examples.setdefault(ending, Path(folder, name))
    return survey


def is_text(path: Path) -> bool:
    """Return whether a file looks like text by its beginning."""
    try:
        with open(path, "rb") as file:
            beginning = file.read(_SNIFFED_BYTES)
    except OSError:
        return False
    return bool(beginning) and b"\0" not in beginning
