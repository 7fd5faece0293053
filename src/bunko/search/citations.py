"""Verify citations: is the cited passage the same, moved, changed or deleted?"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bunko.errors import QueryError
from bunko.protocols import Store
from bunko.readers.outline import unify_line_ends
from bunko.readers.places import PLACE_PATTERN, find_place
from bunko.search.passages import lines_hash, parse_passage_hash
from bunko.types import format_citation
from bunko.types.records import StoredDocument

_CITATION = re.compile(
    rf"(?P<uri>.+):(?:L(?P<first>\d{{1,9}})(?:-L?(?P<last>\d{{1,9}}))?|(?P<place>{PLACE_PATTERN}))", re.DOTALL
)

_MAX_HASHED_LINES = 2_000_000

CitationStatus = Literal["same", "moved", "changed", "deleted"]
CITATION_STATUSES: tuple[CitationStatus, ...] = ("same", "moved", "changed", "deleted")


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The status of a cited passage."""

    status: CitationStatus
    citation: str  # the current location, or the last known one


class Citation(NamedTuple):
    """The lines or the place of a document that a citation names."""

    uri: str
    first: int = 0  # line of the file, counted from 1; 0 if a place is named
    last: int = 0
    place: str = ""  # pages, slides or cells: p12, slide3-slide4, Sheet1!B5


def parse_citation(text: str) -> Citation | None:
    """Return the parts of a citation (path:L12-L30 or path:p12), or None if the text is not one."""
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
    if match["place"]:
        return Citation(match["uri"], place=match["place"])
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return Citation(match["uri"], first, last) if 1 <= first <= last else None


def verify_citation(store: Store, tool_id: int, citation: str, digest: str) -> CitationCheck:
    """Compare a cited passage with the current documents."""
    location, hashes = parse_citation(citation), parse_passage_hash(digest)
    if location is None:
        raise QueryError(f"{citation[:80]!r} is not a citation", hint="Give it as it was returned: path:L12-L30.")
    if hashes is None:
        raise QueryError(
            f"{digest[:80]!r} is not a citation's hash", hint="Give `hash` as it was returned with the result."
        )
    (uri, first, last, place), (document_hash, lines_digest) = location, hashes
    if place:
        return _verify_place(store, tool_id, uri, place, hashes)
    document = store.documents.get(tool_id, uri)
    if document is not None and (lines := _find_passage(document, first, last, lines_digest)):
        return CitationCheck("same" if lines == (first, last) else "moved", format_citation(uri, *lines))
    for other_uri in store.documents.uris_with_hash(tool_id, document_hash):
        other_document = store.documents.get(tool_id, other_uri) if other_uri != uri else None
        if other_document is not None and (lines := _find_passage(other_document, first, last, lines_digest)):
            return CitationCheck("moved", format_citation(other_uri, *lines))
    if document is None:
        return CitationCheck("deleted", citation)
    return CitationCheck("changed", format_citation(uri, first, last))


def _verify_place(store: Store, tool_id: int, uri: str, place: str, hashes: tuple[str, str]) -> CitationCheck:
    """Compare a passage that was cited by its page, slide or cells: it may be any lines of them."""
    document_hash, lines_digest = hashes
    other_uris = store.documents.uris_with_hash(tool_id, document_hash)
    for document_uri in dict.fromkeys((uri, *other_uris)):
        document = store.documents.get(tool_id, document_uri)
        if document is None:
            continue
        lines = find_place(document.text, document.media_type, place, whole_section=True)
        if lines and _has_passage(unify_line_ends(document.text).split("\n")[lines[0] - 1 : lines[1]], lines_digest):
            return CitationCheck("same" if document_uri == uri else "moved", f"{document_uri}:{place}")
    is_deleted = store.documents.get(tool_id, uri) is None
    return CitationCheck("deleted" if is_deleted else "changed", f"{uri}:{place}")


def _has_passage(lines: list[str], digest: str) -> bool:
    """Return whether any lines that follow each other have a hash."""
    encoded = [line.rstrip().encode("utf-8", "surrogatepass") for line in lines[: int((2 * _MAX_HASHED_LINES) ** 0.5)]]
    for begin in range(len(encoded)):
        running = hashlib.sha256()
        for line in encoded[begin:]:
            running.update(line)
            if running.hexdigest()[: len(digest)] == digest:
                return True
            running.update(b"\n")
    return False


def _find_passage(document: StoredDocument, first: int, last: int, digest: str) -> tuple[int, int] | None:
    """Return the lines of the file that hold a cited passage: the cited ones if unchanged, else the first match."""
    lines, file_lines, height = unify_line_ends(document.text).split("\n"), document.lines, last - first
    if file_lines.is_single_line:
        return (file_lines.first, file_lines.first) if lines_hash(lines).startswith(digest) else None
    begin = first - file_lines.first
    if begin >= 0 and lines_hash(lines[begin : begin + height + 1]).startswith(digest):
        return first, last
    # Searching hashes every window of the passage's height; above this limit a made-up citation would cost too much.
    windows = range(len(lines) - height) if len(lines) * (height + 1) <= _MAX_HASHED_LINES else range(0)
    for begin in windows:
        if lines_hash(lines[begin : begin + height + 1]).startswith(digest):
            return file_lines.first + begin, file_lines.first + begin + height
    return None
