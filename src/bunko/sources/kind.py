"""Define the declaration of a kind of source: its paths, its search and its build function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from bunko.protocols import Source
    from bunko.sources.folder import Folder
    from bunko.sources.web.pages import PageStore


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What a source is built from: its root, the rules for its files, and the pages of a tool."""

    root: Path
    extensions: Sequence[str]
    exclude_dirs: Sequence[str]
    include: Sequence[str]
    exclude: Sequence[str]
    respect_gitignore: bool
    max_file_bytes: int
    max_memo_file_bytes: int
    pages: PageStore | None
    # Finds the files that stay as they were indexed, though the rules of this source would not find them.
    keep: Source | None = None

    def folder(self, root: Path, extensions: Sequence[str], **overrides: Any) -> Folder:
        """Return the files below a folder that have one of the extensions."""
        from bunko.sources.folder import Folder

        return Folder(
            root,
            extensions=extensions,
            exclude_dirs=self.exclude_dirs,
            include=self.include,
            exclude=self.exclude,
            respect_gitignore=self.respect_gitignore,
            **{"max_file_bytes": self.max_file_bytes} | overrides,
        )

    def entry_folder(self, extensions: Sequence[str], **overrides: Any) -> Folder:
        """Return the files of many entries below the root, or beside it if it is a single file.

        They are read as streams and may be larger than a document: `max_file_bytes` then limits each entry.
        """
        parent = self.root if self.root.is_dir() else self.root.parent
        limits = {"max_file_bytes": self.max_memo_file_bytes, "limited_by": "memos.max_file_bytes"}
        return self.folder(parent, extensions, **limits | overrides)


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source; each module of `sources` that declares one as `KIND` is found by its name."""

    build: Callable[[SourceSpec], Source]
    root: Literal["folder", "folder or file", "none"] = "folder or file"  # what --source may name
    section: str = ""  # of the settings that override [search] and [chunker]: memos, web or none
    chunker: str = ""  # used if a tool has none of its own; empty: the one in the settings
    uses_extensions: bool = False  # whether scanner.file_extensions selects its files
    is_watchable: bool = True  # whether its folder or file can be watched
    needs_pages: bool = False  # whether its documents are the fetched pages of a tool
    noun: tuple[str, str] = ("entry", "entries")  # one document and many
    label: str = ""  # its documents, in messages
    import_command: str = "bunko build --input FOLDER"  # adds documents of this kind
