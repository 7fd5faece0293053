"""Find the note that a wiki link means, among the documents of a tool."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from unicodedata import normalize
from urllib.parse import unquote

from bunko.protocols import Store
from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.readers.vault_notes import aliases
from bunko.text.wiki_links import WikiLink, parse_wiki_link
from bunko.types import format_citation
from bunko.types.records import StoredDocument

_NOTE_SUFFIXES = (".md", ".markdown", ".org")
_PAGE_SIZE = 1000
_HEADING_MARKS = re.compile(r"[\[\]#^|:%\\*_`~]+")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
# The page of a day is called Jan 15th, 2024 in Logseq, and its file 2024_01_15.md.
_JOURNAL_NAME = re.compile(r"([a-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})")


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """The document that a link leads to, and the lines of its file if it names a heading or a block."""

    uri: str
    first_line: int = 0  # counted from 1, both inclusive; 0: the whole document
    last_line: int = 0

    @property
    def citation(self) -> str:
        """Where the target is: its path, with lines in the form path:L12-L30 if the link names a part of it."""
        return format_citation(self.uri, self.first_line, self.last_line) if self.first_line else self.uri


def resolve_wiki_link(store: Store, tool_id: int, link: str, *, from_uri: str = "") -> LinkTarget | None:
    """Return the target of a link, or None; `from_uri` is the document that contains it.

    As in Obsidian, a name may be a path from the root, a path from the folder of the note, or the end of a path. Of
    several notes of a name, the one in the same folder is meant, then the one with the shortest path. A name that no
    file has may be the title or an alias of a note. If the note has no such heading or block, the note is returned.
    """
    parsed_link = parse_wiki_link(link)
    if parsed_link.name:
        uri = _find_file(list(_all_uris(store, tool_id)), parsed_link.name, from_uri) or _find_named_note(
            store, tool_id, parsed_link.name
        )
        document = store.documents.get(tool_id, uri) if uri else None
    elif parsed_link.block:
        document = _find_block_owner(store, tool_id, parsed_link.block, from_uri)
    else:
        document = store.documents.get(tool_id, from_uri) if from_uri else None
    if document is None:
        return None
    lines = _find_lines(document, parsed_link)
    return LinkTarget(document.uri, *(document.lines.file_line(line) for line in lines))


def _all_uris(store: Store, tool_id: int) -> Iterator[str]:
    after = ""
    while page := store.documents.uris(tool_id, after=after, limit=_PAGE_SIZE):
        yield from page
        after = page[-1]


def _find_file(uris: list[str], name: str, from_uri: str) -> str:
    """Return the file of a name, or an empty string."""
    folder = posixpath.dirname(from_uri)
    keys = _name_keys(name)
    relative = _fold(posixpath.normpath(posixpath.join(folder, name))) if name.startswith(".") or folder else ""
    root_matches, near_matches, end_matches = [], [], []
    for uri in uris:
        uri_keys = _uri_keys(uri)
        if keys & uri_keys:
            root_matches.append(uri)
        elif relative in uri_keys:
            near_matches.append(uri)
        elif any(uri_key.endswith(f"/{key}") for key in keys for uri_key in uri_keys):
            end_matches.append(uri)

    def preference(uri: str) -> tuple[bool, bool, int, str]:
        return posixpath.dirname(uri) != folder, not uri.lower().endswith(_NOTE_SUFFIXES), uri.count("/"), uri

    # A bare name is looked for in the folder of the note first; a path begins at the root.
    ranked = (
        [root_matches, near_matches, end_matches]
        if "/" in name.strip("./")
        else [near_matches, root_matches, end_matches]
    )
    return next((min(matches, key=preference) for matches in ranked if matches), "")


def _name_keys(name: str) -> set[str]:
    """Return the possible ends of the path of a note of this name."""
    plain = _fold(posixpath.normpath(unquote(name).strip().lstrip("/")))
    keys = {plain, plain.replace("/", "___"), plain.replace("/", "%2f")}
    if match := _JOURNAL_NAME.fullmatch(plain):
        if match[1] in _MONTHS:
            day = f"{match[3]}-{_MONTHS.index(match[1]) + 1:02d}-{int(match[2]):02d}"
            keys |= {day, day.replace("-", "_")}
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", plain):
        keys.add(plain.replace("-", "_"))
    return keys


def _uri_keys(uri: str) -> set[str]:
    """Return the path of a document, with its suffix and, if it is a note, without."""
    path = _fold(uri)
    return {path, path[: -len(PurePosixPath(path).suffix)]} if path.endswith(_NOTE_SUFFIXES) else {path}


def _find_named_note(store: Store, tool_id: int, name: str) -> str:
    """Return the note whose title or alias is a name, or an empty string."""
    folded_name, titled = _fold(name), ""
    for document in _all_documents(store, tool_id):
        if folded_name in (_fold(alias) for alias in aliases(document.text[: document.body_start])):
            return document.uri
        if not titled and folded_name == _fold(document.title):
            titled = document.uri
    return titled


def _find_block_owner(store: Store, tool_id: int, block: str, from_uri: str) -> StoredDocument | None:
    """Return the document that contains a block, the one with the link first."""
    near = store.documents.get(tool_id, from_uri) if from_uri else None
    if near is not None and _block_lines(near, block):
        return near
    return next((document for document in _all_documents(store, tool_id) if _block_lines(document, block)), None)


def _all_documents(store: Store, tool_id: int) -> Iterator[StoredDocument]:
    for uri in _all_uris(store, tool_id):
        if (document := store.documents.get(tool_id, uri)) is not None:
            yield document


def _find_lines(document: StoredDocument, link: WikiLink) -> tuple[int, ...]:
    """Return the first and the last line of a heading's section or of a block, or nothing."""
    if link.block:
        return _block_lines(document, link.block)
    if not link.heading:
        return ()
    lines = unify_line_ends(document.text)
    outline = scan_outline(lines, document.body_start, media_type=document.media_type)
    headings = [mark for mark in outline if isinstance(mark, Heading)]
    wanted_title = _heading_key(link.heading)
    for index, heading in enumerate(headings):
        if _heading_key(heading.title) == wanted_title:
            following = (after.start for after in headings[index + 1 :] if after.level <= heading.level)
            end = heading.start + len(lines[heading.start : next(following, len(lines))].rstrip())
            return lines.count("\n", 0, heading.start) + 1, lines.count("\n", 0, end) + 1
    return ()


def _block_lines(document: StoredDocument, block: str) -> tuple[int, ...]:
    """Return the lines of the paragraph or list item that has an id, or nothing."""
    if block not in document.text.casefold():
        return ()
    mark = re.compile(rf"(?i)(?:^|\s)\^{re.escape(block)}\s*$|^\s*(?:-\s+)?(?:id::|:ID:)\s*{re.escape(block)}\s*$")
    lines = unify_line_ends(document.text).split("\n")
    for index, line in enumerate(lines):
        if not mark.search(line):
            continue
        if re.match(r"\s*:ID:", line, re.IGNORECASE):
            return _property_owner_lines(document, lines, index)
        first = index
        # The id of an Obsidian block ends its paragraph; that of Logseq is a line below the first one of its item.
        while first > 0 and lines[first - 1].strip() and not re.match(r"\s*(?:[-*+]|\d+[.)])\s|#", lines[first]):
            first -= 1
        return first + 1, index + 1
    return ()


def _property_owner_lines(document: StoredDocument, lines: list[str], index: int) -> tuple[int, ...]:
    """Return the lines of the Org section whose drawer is at a line; of the whole file if it is above all headlines."""
    text = "\n".join(lines)
    position = sum(len(line) + 1 for line in lines[:index])
    headings = [mark for mark in scan_outline(text, 0, media_type=document.media_type) if isinstance(mark, Heading)]
    above = [heading for heading in headings if heading.start <= position]
    if not above:
        return 1, len(lines)
    following = (after.start for after in headings if after.start > position and after.level <= above[-1].level)
    end = next(following, len(text))
    return text.count("\n", 0, above[-1].start) + 1, text.count("\n", 0, len(text[:end].rstrip())) + 1


def _heading_key(title: str) -> str:
    return _fold(_HEADING_MARKS.sub(" ", title))


def _fold(name: str) -> str:
    return " ".join(normalize("NFC", name).casefold().split())
