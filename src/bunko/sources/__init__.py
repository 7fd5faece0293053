"""Build a source from its kind, its root and the rules for its files."""

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
# Kinds whose folder or file can be watched.
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
    """Return the source of a kind, whether its root exists or not; `extensions` are for folders only.

    A file of many entries is read as a stream and may be larger than a document: `max_file_bytes` then limits each of
    its entries. Web pages have no root: they come from `pages`.
    """

    def folder(root: Path, extensions: Sequence[str], **overrides: Any) -> Folder:
        return Folder(
            root,
            extensions=extensions,
            exclude_dirs=exclude_dirs,
            include=include,
            exclude=exclude,
            respect_gitignore=respect_gitignore,
            **{"max_file_bytes": max_file_bytes} | overrides,
        )

    # The folder of a single file is its parent.
    parent = root if root.is_dir() else root.parent
    stream_limits = {"max_file_bytes": max_memo_file_bytes, "limited_by": "memos.max_file_bytes"}
    match kind:
        case "folder":
            return folder(root, extensions)
        case "memos":
            from bunko.sources import memos

            files = folder(parent, memos.EXTENSIONS, names=memos.NAME_PATTERN, **stream_limits)
            return memos.build(root, files, max_file_bytes)
        case "jsonl":
            from bunko.sources import jsonl

            return jsonl.build(root, folder(parent, jsonl.EXTENSIONS, **stream_limits), max_file_bytes)
        case "web" if pages is not None:
            from bunko.sources.web import pages as web

            return web.build(pages)
    raise UnknownName(f"There is no source of the kind {kind!r}", hint=f"Choose one of: {', '.join(KINDS)}.")
