"""Find a document by what a person or an assistant calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple
from unicodedata import normalize

from bunko.errors import UnknownName
from bunko.library.reading.document_files import document_file
from bunko.protocols import Store
from bunko.readers.outline import unify_line_ends
from bunko.readers.places import place_of
from bunko.search.citations import Citation, parse_citation
from bunko.search.reading import section_lines
from bunko.search.wiki_links import resolve_wiki_link
from bunko.sources import find_kind
from bunko.types import Tool
from bunko.types.records import NO_FILTER, ListedDocument, StoredDocument

_WIKI_LINK = re.compile(r"!?\[\[.+\]\]|\(\(.+\)\)")
_PLAIN_NAME = re.compile(
    r"[^/\\:\[\]\n]{1,200}(?<!\.\w\w)(?<!\.\w\w\w)(?<!\.\w\w\w\w)"
)  # without folders or an extension
# As compilers, editors and grep write it: path:12, path:12-30 or path:12:5 with a column.
_LINE_SUFFIX = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})|:\d{1,9})?:?", re.DOTALL)
_WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
# Comparing a misspelled path with more paths would take seconds.
_MAX_COMPARED_PATHS = 20_000
_MAX_SUGGESTIONS = 3


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document, and the lines or the place of it that were named."""

    tool: Tool
    document: StoredDocument
    citation: Citation | None = None  # None: the whole document
    other_tools: tuple[str, ...] = ()  # names of tools with a document of the same path
    is_ambiguous: bool = False  # whether one of those documents has another text

    @property
    def uri(self) -> str:
        """The path of the document in its folder, the URL of a web page, or the id of a memo."""
        return self.document.uri

    @property
    def title(self) -> str:
        """The title of the document; may be empty."""
        return self.document.title

    @property
    def url(self) -> str:
        """The address of a web page; empty for other documents."""
        kind = find_kind(self.tool.kind)
        return self.uri if kind is not None and kind.needs_pages and _WEB_ADDRESS.match(self.uri) else ""

    @property
    def file(self) -> Path | None:
        """The file of the document, whether it still exists or not; None if the tool has no files."""
        return document_file(self.tool, self.uri)

    @property
    def line(self) -> int:
        """The line of the file that was named, or where a memo begins; 0 for neither, or without lines in the file."""
        if not self.is_text:
            return 0
        lines = self.document.lines
        if lines.is_single_line or self.citation is None or not self.citation.first:
            return lines.first if lines.last else 0
        return self.citation.first

    @property
    def place(self) -> str:
        """The page, slide or cell that was named, or that contains the line that was; empty in files without them."""
        if self.citation is None or self.is_text:
            return ""
        text = unify_line_ends(self.document.text)
        return self.citation.place or place_of(text, self.document.media_type, self.citation.first, self.citation.last)

    @property
    def is_text(self) -> bool:
        """Whether its file is a text with the same lines; HTML, PDF and office documents are converted."""
        media_type = self.document.media_type
        return bool(self.document.lines.last) or (media_type.startswith("text/") and media_type != "text/html")


class _Name(NamedTuple):
    """One way to understand a location: a path, and what of it is meant."""

    path: str
    citation: Citation | None = None
    heading: str = ""


def find_document(store: Store, tools: Sequence[Tool], location: str) -> FoundDocument:
    """Return a document of these tools by its path, URL, memo id or wiki link, or by a citation of it.

    A path may be absolute, or the end of a path, with or without its extension, if that names one document only. Lines
    or a heading may follow it: path:L12-L30, path:12, path#heading. A name that no path has may be a title or an alias.
    """
    if _WIKI_LINK.fullmatch(location):
        if linked := _linked_document(store, tools, location):
            return linked
        raise UnknownName(f"{location[:200]!r} leads to no document", hint="Search for the words of the link.")
    names = list(_understand(location))
    for name in names:
        matches = [
            (tool, document)
            for tool in tools
            for uri in dict.fromkeys((name.path, _path_in_folder(tool, name.path)))
            if uri and (document := store.documents.get(tool.id, uri)) is not None
        ]
        if matches:
            tool, document = matches[0]
            other_matches = [
                match for match in matches if _identity(match[0], match[1].uri) != _identity(tool, document.uri)
            ]
            other_tools = tuple(dict.fromkeys(other.name for other, _ in other_matches if other.id != tool.id))
            is_ambiguous = any(other_document.text != document.text for _, other_document in other_matches)
            return FoundDocument(tool, document, _cite(document, name), other_tools, is_ambiguous)
    return _find_by_end(store, tools, location, names)


def _understand(location: str) -> Iterator[_Name]:
    """Yield the ways to understand a location, the most literal one first."""
    yield _Name(location)
    if citation := parse_citation(location):
        yield _Name(citation.uri, citation)
    if match := _LINE_SUFFIX.fullmatch(location):
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if 1 <= first <= last:
            yield _Name(match["path"], Citation(match["path"], first, last))
    path, mark, heading = location.rpartition("#")
    if path and mark and heading.strip():
        yield _Name(path, heading=heading.strip())


def _cite(document: StoredDocument, name: _Name) -> Citation | None:
    if not name.heading:
        return name.citation
    try:
        first, last = section_lines(document, name.heading)
    except UnknownName:
        if _WEB_ADDRESS.match(document.uri):
            return None  # the anchor of a page is rarely the text of a heading
        raise
    return Citation(document.uri, first, last)


def _path_in_folder(tool: Tool, path: str) -> str:
    """Return the path below the folder of a tool, or beside its file; empty if it is not there."""
    if not tool.source or not PurePath(path).is_absolute():
        return ""
    source = Path(tool.source)
    folder = source.parent if source.is_file() else source
    return PurePath(path).relative_to(folder).as_posix() if PurePath(path).is_relative_to(folder) else ""


def _linked_document(store: Store, tools: Sequence[Tool], link: str) -> FoundDocument | None:
    for tool in tools:
        target = resolve_wiki_link(store, tool.id, link)
        if target is not None and (document := store.documents.get(tool.id, target.uri)) is not None:
            return FoundDocument(tool, document, parse_citation(target.citation) if target.first_line else None)
    return None


def _find_by_end(store: Store, tools: Sequence[Tool], location: str, names: Sequence[_Name]) -> FoundDocument:
    """Return the only document whose path ends with these names, with or without its extension."""
    listed = [(tool, entry) for tool in tools for entry in store.documents.find(tool.id, NO_FILTER)]
    endings = [(tool, entry, *_endings(entry.uri)) for tool, entry in listed]
    for name in names:
        name_parts = _parts(name.path)
        matches = [
            (tool, entry)
            for tool, entry, parts, stem in endings
            if name_parts and name_parts in (parts[-len(name_parts) :], stem[-len(name_parts) :])
        ] or _find_entries(tools, listed, name)
        if len({_identity(tool, entry.uri) for tool, entry in matches}) > 1:
            examples = ", ".join(entry.uri for _, entry in matches[:5])
            raise UnknownName(f"{name.path[:200]!r} names several documents", hint=f"Give the whole path: {examples}.")
        for tool, entry in matches:
            if (document := store.documents.get(tool.id, entry.uri)) is not None:
                return FoundDocument(tool, document, _cite(document, name))
    # Not for what looks like a path: titles and aliases stand in the texts, and all of them are read.
    if _PLAIN_NAME.fullmatch(location) and (named := _linked_document(store, tools, location)):
        return named
    near_paths = _near_paths(names[-1].path, [entry.uri for _, entry in listed])
    raise UnknownName(
        f"There is no document or passage {location[:200]!r}",
        hint=f"Did you mean {' or '.join(map(repr, near_paths))}?"
        if near_paths
        else "Give a path or citation as a search returned it.",
    )


def _identity(tool: Tool, uri: str) -> tuple[object, ...]:
    """Return what is the same for a document that two tools have, because their folders share its file."""
    file = document_file(tool, uri)
    return (tool.id, uri) if file is None else (file, tool.kind, PurePosixPath(uri).name)


def _find_entries(
    tools: Sequence[Tool], listed: Sequence[tuple[Tool, ListedDocument]], name: _Name
) -> list[tuple[Tool, ListedDocument]]:
    """Return the entries of a file of memos that contain a line, or all if no line is named."""
    first = name.citation.first if name.citation else 0
    parts_by_tool = {tool.id: _parts(_path_in_folder(tool, name.path) or name.path) for tool in tools}
    return [
        (tool, entry)
        for tool, entry in listed
        if entry.lines.last
        and (not first or entry.lines.first <= first <= entry.lines.last)
        and (path := parts_by_tool[tool.id])
        and _parts(entry.uri.rpartition("#")[0])[-len(path) :] == path
    ]


def _endings(uri: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names in a path, and the same without the extension."""
    parts = _parts(uri)
    return parts, (*parts[:-1], PurePosixPath(parts[-1]).stem) if parts else ()


def _parts(path: str) -> tuple[str, ...]:
    # A Mac stores ガ as two characters, and a keyboard types it as one.
    return PurePosixPath(normalize("NFC", path).replace("\\", "/").strip("/")).parts


def _near_paths(path: str, uris: Sequence[str]) -> list[str]:
    """Return the paths that a misspelled one may mean: those that look alike, or whose last name does."""
    compared = uris[:_MAX_COMPARED_PATHS]
    whole_path = "/".join(_parts(path))
    near = get_close_matches(whole_path, compared, n=_MAX_SUGGESTIONS, cutoff=0.75)
    by_name: dict[str, str] = {}
    for uri in compared:
        by_name.setdefault(uri.rpartition("/")[2], uri)
    near += [by_name[name] for name in get_close_matches(whole_path.rpartition("/")[2], by_name, n=_MAX_SUGGESTIONS)]
    return list(dict.fromkeys(near))[:_MAX_SUGGESTIONS]
