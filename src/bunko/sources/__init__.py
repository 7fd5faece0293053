"""The kind of a source, its place and which files count come in, the source itself goes out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.errors import UnknownName
from bunko.protocols import Source
from bunko.sources.folder import Folder

if TYPE_CHECKING:
    from bunko.sources.web.pages import PageStore

__all__ = ["KINDS", "WATCHABLE_KINDS", "build"]

KINDS = ("folder", "memos", "jsonl", "web")
# Of these a folder or file can be watched.
WATCHABLE_KINDS = ("folder", "memos", "jsonl")


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
    max_memo_file_bytes: int = 1_000_000_000,
    pages: PageStore | None = None,
) -> Source:
    """Return the source of a kind, whether its place is there or not; `extensions` are for folders only.

    A file of many entries is read as a stream and may be larger than one that is a document: `max_file_bytes` then is
    the most that one of its entries may have. Web pages have no place: they are those that `pages` holds.
    """

    def files(place: Path, own: Sequence[str], **how: Any) -> Folder:
        return Folder(
            place,
            extensions=own,
            exclude_dirs=exclude_dirs,
            include=include,
            exclude=exclude,
            respect_gitignore=respect_gitignore,
            **{"max_file_bytes": max_file_bytes} | how,
        )

    # A file is looked at on its own, in the folder it stands in.
    place = root if root.is_dir() else root.parent
    streamed = {"max_file_bytes": max_memo_file_bytes, "limited_by": "memos.max_file_bytes"}
    match kind:
        case "folder":
            return files(root, extensions)
        case "memos":
            from bunko.sources import memos

            return memos.build(
                root, files(place, memos.EXTENSIONS, names=memos.NAME_PATTERN, **streamed), max_file_bytes
            )
        case "jsonl":
            from bunko.sources import jsonl

            return jsonl.build(root, files(place, jsonl.EXTENSIONS, **streamed), max_file_bytes)
        case "web" if pages is not None:
            from bunko.sources.web import pages as web

            return web.build(pages)
    raise UnknownName(f"There is no source of the kind {kind!r}", hint=f"Choose one of: {', '.join(KINDS)}.")
