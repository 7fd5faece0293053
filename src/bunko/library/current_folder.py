"""Map the current folder to a tool: a folder with its own index, the folder of a tool, or one below it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.library.add import names_files
from bunko.library.opening.paths import paths_for_docs
from bunko.types import Tool
from bunko.types.records import Filter

if TYPE_CHECKING:
    from bunko.library.library import Library


@dataclass(frozen=True, slots=True)
class FolderScope:
    """The tool whose folder contains the current one, and which of its documents are in the current one."""

    tool: str
    folder: Path
    path: str = ""  # a glob over the documents in the folder; empty: all of the tool's


def find_indexed_folder(folder: Path) -> Path | None:
    """Return the nearest of a folder and those above it that has its own index; None if there is none.

    Only an index that belongs to the user counts: in a folder that others can write to, they could place one.
    """
    for candidate in (folder, *folder.parents):
        database = paths_for_docs(candidate).database
        if all(_is_own(path) for path in (database.parent, database)):
            return candidate
    return None


def find_scope(library: Library, folder: Path) -> FolderScope | None:
    """Return the active tool with the deepest folder that contains this one; None if there is none."""
    tool = _innermost_tool([tool for tool in library.tools() if tool.active], folder)
    if tool is None:
        return None
    below = folder.relative_to(tool.source).as_posix()
    if below == ".":
        return FolderScope(tool.name, folder)
    path = f"{glob.escape(below)}/**"
    # A folder without documents, such as an excluded one, would always give no results.
    if library.documents.stored.select(tool.id, Filter(path)):
        return FolderScope(tool.name, folder, path)
    return FolderScope(tool.name, Path(tool.source))


def disabled_tool_of(library: Library, folder: Path) -> Tool | None:
    """Return the disabled tool with the deepest folder that contains this one; None if there is none."""
    return _innermost_tool([tool for tool in library.tools() if not tool.active], folder)


def _innermost_tool(tools: Sequence[Tool], folder: Path) -> Tool | None:
    # A tool of single files does not stand for their folder, which may be the home folder.
    containing = [
        tool for tool in tools if tool.source and folder.is_relative_to(tool.source) and not names_files(tool)
    ]
    return max(containing, key=lambda tool: len(Path(tool.source).parts), default=None)


def _is_own(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return not path.is_symlink() and (not hasattr(os, "geteuid") or status.st_uid == os.geteuid())
