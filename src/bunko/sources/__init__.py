"""The kind of a source, its place and which files count come in, the source itself goes out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bunko.errors import UnknownName
from bunko.protocols import Source
from bunko.sources.folder import Folder

__all__ = ["KINDS", "build"]

KINDS = ("folder", "memos", "jsonl")


def build(
    kind: str,
    root: Path,
    *,
    extensions: Sequence[str],
    exclude_dirs: Sequence[str],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    respect_gitignore: bool = True,
    max_file_bytes: int,
) -> Source:
    """Return the source of a kind, whether its place is there or not; `extensions` are for folders only."""

    def files(place: Path, own: Sequence[str]) -> Folder:
        return Folder(
            place,
            extensions=own,
            exclude_dirs=exclude_dirs,
            include=include,
            exclude=exclude,
            respect_gitignore=respect_gitignore,
            max_file_bytes=max_file_bytes,
        )

    # A file is looked at on its own, in the folder it stands in.
    place = root if root.is_dir() else root.parent
    match kind:
        case "folder":
            return files(root, extensions)
        case "memos":
            from bunko.sources import memos

            return memos.build(root, files(place, memos.EXTENSIONS))
        case "jsonl":
            from bunko.sources import jsonl

            return jsonl.build(root, files(place, jsonl.EXTENSIONS))
    raise UnknownName(f"There is no source of the kind {kind!r}", hint=f"Choose one of: {', '.join(KINDS)}.")
