"""Find the file on this machine that contains a document."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from bunko.sources import find_kind
from bunko.sources.entries import containing_file
from bunko.types import Tool


def document_file(tool: Tool, uri: str) -> Path | None:
    """Return the absolute path of the file of a document, None for a web page or a tool that follows no folder.

    The file may be gone by now. A path that would leave the tool's folder has no file: a library that came with
    documents must not lead to other files.
    """
    if not tool.source:
        return None
    root, kind = Path(tool.source), find_kind(tool.kind)
    is_folder = root.is_dir() or (kind is not None and kind.root == "folder")
    relative = PurePosixPath(containing_file(uri, "" if is_folder else root.name))
    if relative.is_absolute() or ".." in relative.parts:
        return None
    if not is_folder:
        return root if str(relative) == root.name else None
    file = root.joinpath(*relative.parts)
    return file if file.resolve().is_relative_to(root.resolve()) else None  # a link may lead out of the folder
