"""Verify citations: is the cited passage the same, moved, changed or deleted?"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Literal

from bunko.errors import QueryError
from bunko.protocols import Store
from bunko.readers.outline import unify_line_ends
from bunko.readers.places import PLACE_PATTERN, find_place
from bunko.records import StoredDocument
from bunko.search.passages import lines_hash
from bunko.types import format_citation

_CITATION = re.compile(
    rf"(?P<uri>.+):(?:L(?P<first>\d{{1,9}})(?:-L?(?P<last>\d{{1,9}}))?|(?P<place>{PLACE_PATTERN}))", re.DOTALL
)
_HASH = re.compile(r"(?P<document>[0-9a-f]{12})\.(?P<lines>[0-9a-f]{12})")


_MAX_HASHED_LINES = 2_000_000

CitationStatus = Literal["same", "moved", "changed", "deleted"]
CITATION_STATUSES: tuple[CitationStatus, ...] = ("same", "moved", "changed", "deleted")


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """The status of a cited passage."""

    status: CitationStatus
    citation: str  # the current location, or the last known one


def verify_citation(store: Store, tool_id: int, citation: str, digest: str) -> CitationCheck:
    """Compare a cited passage with the current documents."""
    location, hashes = _CITATION.fullmatch(citation.strip()), _HASH.fullmatch(digest.strip().lower())
    if location is None or not (
        location["place"] or 1 <= int(location["first"]) <= int(location["last"] or location["first"])
    ):
        raise QueryError(f"{citation[:80]!r} is not a citation", hint="Give it as it was returned: path:L12-L30.")
    if hashes is None:
        raise QueryError(
            f"{digest[:80]!r} is not a citation's hash", hint="Give `hash` as it was returned with the result."
        )
    if location["place"]:
        return _verify_place(store, tool_id, location["uri"], location["place"], hashes)
    uri, first = location["uri"], int(location["first"])
    last = int(location["last"] or first)
    document = store.documents.get(tool_id, uri)
    if document is not None and (lines := _find_passage(document, first, last, hashes["lines"])):
        return CitationCheck("same" if lines == (first, last) else "moved", format_citation(uri, *lines))
    for other_uri in store.documents.uris_with_hash(tool_id, hashes["document"]):
        if other_uri != uri and (other_document := store.documents.get(tool_id, other_uri)) is not None:
            return CitationCheck(
                "moved",
                format_citation(
                    other_uri, *(_find_passage(other_document, first, last, hashes["lines"]) or (first, last))
                ),
            )
    if document is None:
        return CitationCheck("deleted", citation)
    return CitationCheck("changed", format_citation(uri, first, last))


def read_passage(store: Store, tool_id: int, location: str) -> str | None:
    """Return the text of a document, or of the lines or the place that a citation names; None if there is none."""
    if (document := store.documents.get(tool_id, location)) is not None:
        return document.text
    cited = _CITATION.fullmatch(location)
    if cited is None or (document := store.documents.get(tool_id, cited["uri"])) is None:
        return None
    if document.lines.is_single_line:
        return document.text
    lines = unify_line_ends(document.text).split("\n")
    if cited["place"]:
        found = find_place(document.text, document.media_type, cited["place"])
        return "\n".join(lines[found[0] - 1 : found[1]]) if found else None
    first = int(cited["first"])
    begin, end = (max(0, line - document.lines.first) for line in (first, int(cited["last"] or first)))
    return "\n".join(lines[begin : end + 1]) if begin < len(lines) else None


def _verify_place(store: Store, tool_id: int, uri: str, place: str, hashes: re.Match[str]) -> CitationCheck:
    """Compare a passage that was cited by its page, slide or cells: it may be any lines of them."""
    other_uris = store.documents.uris_with_hash(tool_id, hashes["document"])
    for document_uri in dict.fromkeys((uri, *other_uris)):
        document = store.documents.get(tool_id, document_uri)
        if document is None:
            continue
        lines = find_place(document.text, document.media_type, place, whole_section=True)
        if lines and _has_passage(unify_line_ends(document.text).split("\n")[lines[0] - 1 : lines[1]], hashes["lines"]):
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
        return (file_lines.first, file_lines.first) if lines_hash(lines) == digest else None
    begin = first - file_lines.first
    if begin >= 0 and lines_hash(lines[begin : begin + height + 1]) == digest:
        return first, last
    # Searching hashes every window of the passage's height; above this limit a made-up citation would cost too much.
    windows = range(len(lines) - height) if len(lines) * (height + 1) <= _MAX_HASHED_LINES else range(0)
    for begin in windows:
        if lines_hash(lines[begin : begin + height + 1]) == digest:
            return file_lines.first + begin, file_lines.first + begin + height
    return None
