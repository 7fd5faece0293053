"""Verify citations: is the cited passage the same, moved, changed or deleted?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bunko.errors import QueryError
from bunko.protocols import Store
from bunko.readers.outline import unify_line_ends
from bunko.records import StoredDocument
from bunko.search.passages import lines_hash, parse_passage_hash
from bunko.types import format_citation

_CITATION = re.compile(r"(?P<uri>.+):L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", re.DOTALL)

_MAX_HASHED_LINES = 2_000_000

CitationStatus = Literal["same", "moved", "changed", "deleted"]
CITATION_STATUSES: tuple[CitationStatus, ...] = ("same", "moved", "changed", "deleted")


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The status of a cited passage."""

    status: CitationStatus
    citation: str  # the current location, or the last known one


class Citation(NamedTuple):
    """The lines of a document that a citation names."""

    uri: str
    first: int
    last: int


def parse_citation(text: str) -> Citation | None:
    """Return what a citation names (path:L12-L30), or None if the text is not one."""
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        return None
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
    (uri, first, last), (document_hash, lines_digest) = location, hashes
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
