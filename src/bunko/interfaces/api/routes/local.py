"""What only the user who started this server may do, on the same machine: choose folders and open documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from bunko.errors import SourceError
from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.documents import find_exactly
from bunko.interfaces.programs import open_command, start_program
from bunko.search.citations import Citation

_MAX_ENTRIES = 2000


class FolderQuery(Shape):
    """A folder."""

    path: Annotated[str, Field(max_length=4000)] = Field("", description="An absolute path; empty: your home folder")
    hidden: bool = Field(False, description="Also what begins with a dot")


class FolderEntry(TypedDict):
    """What is in a folder."""

    name: str
    path: str
    kind: Literal["folder", "file"]


class FolderReply(TypedDict):
    """A folder of the server."""

    path: str
    parent: str  # empty for the uppermost one
    entries: list[FolderEntry]
    truncated: bool


class Place(Shape):
    """Where to open a document."""

    line: int | None = Field(None, ge=1, le=1_000_000_000)


class OpenedReply(TypedDict):
    """What was opened."""

    tool: str
    path: str


def list_folder(call: Call, query: FolderQuery) -> dict[str, object]:
    """List the folders and files of a folder, to choose one to add."""
    folder = Path(query.path).expanduser() if query.path else Path.home()
    if not folder.is_absolute() or "\0" in query.path:
        raise SourceError(f"{query.path[:200]!r} is not an absolute path", hint="Give the whole path.")
    try:
        folder = folder.resolve()
        entries = sorted(
            _entries(folder, hidden=query.hidden), key=lambda entry: (entry["kind"] == "file", entry["name"])
        )
    except OSError as error:
        raise SourceError(f"{folder} cannot be listed: {error.strerror}", hint="Choose another folder.") from error
    return {
        "path": str(folder),
        "parent": str(folder.parent) if folder.parent != folder else "",
        "entries": entries[:_MAX_ENTRIES],
        "truncated": len(entries) > _MAX_ENTRIES,
    }


def _entries(folder: Path, *, hidden: bool) -> Iterator[FolderEntry]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if hidden or not entry.name.startswith("."):
                kind: Literal["folder", "file"] = "folder" if entry.is_dir() else "file"
                yield {"name": entry.name, "path": entry.path, "kind": kind}


def open_document(call: Call, tool: str, path: str, body: Place) -> dict[str, object]:
    """Open a document in the editor of whoever started this server, as `bunko open` does."""
    target = find_exactly(call, tool, path)
    if body.line is not None:
        target = replace(target, citation=Citation(target.uri, body.line, body.line))
    start_program(open_command(target, os.environ), is_browser=bool(target.url))
    return {"tool": target.tool.name, "path": target.uri}


ENDPOINTS = [
    Endpoint("GET", "/folders", list_folder, FolderReply, right="read", needs_local_user=True),
    Endpoint("POST", "/documents/{tool}/{path}/open", open_document, OpenedReply, right="read", needs_local_user=True),
]
