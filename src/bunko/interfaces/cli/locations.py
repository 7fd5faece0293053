"""Find the document that a person names on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import UnknownName
from bunko.interfaces.cli.options import print_stderr

if TYPE_CHECKING:
    from bunko.library.find_document import FoundDocument
    from bunko.library.library import Library

# What may follow a path: lines, a page or cells after a colon, or a heading after a hash.
_SUFFIX_START = re.compile(r"[:#]")


def find_document(library: Library, location: str, tool: str | None) -> FoundDocument:
    """Return the document of a citation, path, URL, memo id or wiki link, and say if other tools have it too.

    A path is first understood as a search prints it, then as a path on this machine; one that begins with a dot, a
    tilde or a slash is a path on this machine.
    """
    path = _path_on_this_machine(location)
    try:
        target = library.documents.find(path if path and is_local_path(location) else location, tool=tool)
    except UnknownName:
        if path is None:
            raise
        target = _find_file(library, path, tool)
    if target.other_tools:
        other_names = ", ".join(target.other_tools)
        print_stderr(f"{target.uri} of {target.tool.name} is meant. Choose another tool with -n: {other_names}")
    return target


def is_local_path(text: str) -> bool:
    """Return whether a text can only be a path on this machine: absolute, or from this folder or a home."""
    return text in (".", "..") or text.startswith(("./", "../", ".\\", "..\\", "~")) or Path(text).is_absolute()


def _find_file(library: Library, path: str, tool: str | None) -> FoundDocument:
    try:
        return library.documents.find(path, tool=tool)
    except UnknownName as error:
        if not Path(path).exists():
            raise
        raise UnknownName(
            f"{path} is not indexed",
            hint="No tool has its folder, or the file is left out. See what is indexed with: bunko status, bunko ls",
        ) from error


def _path_on_this_machine(location: str) -> str | None:
    """Return a location that begins with a path of an existing file, with that path made absolute; else None."""
    ends = [len(location), *(match.start() for match in reversed(list(_SUFFIX_START.finditer(location))))]
    for end in ends:
        path = Path(location[:end]).expanduser() if location[:end] else None
        try:
            if path is not None and path.is_file():
                return f"{path.resolve()}{location[end:]}"
        except (OSError, ValueError, RuntimeError):  # too long for a path, or the home of no user
            continue
    return None
