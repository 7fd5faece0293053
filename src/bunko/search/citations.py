"""A citation and its hash in, whether it still stands out: same, moved, changed or deleted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from bunko.errors import QueryError
from bunko.protocols import Store
from bunko.readers.outline import unify_line_ends
from bunko.records import StoredDocument
from bunko.search.passages import lines_hash
from bunko.types import format_citation

_CITATION = re.compile(r"(?P<uri>.+):L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", re.DOTALL)
_HASH = re.compile(r"(?P<document>[0-9a-f]{12})\.(?P<lines>[0-9a-f]{12})")


_MAX_HASHED_LINES = 2_000_000

CitationStatus = Literal["same", "moved", "changed", "deleted"]
CITATION_STATUSES: tuple[CitationStatus, ...] = ("same", "moved", "changed", "deleted")


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """What became of a passage."""

    status: CitationStatus
    citation: str  # where it stands now, or stood


def verify_citation(store: Store, tool_id: int, citation: str, digest: str) -> CitationCheck:
    """Compare a passage as it was cited with what the library holds now."""
    place, marks = _CITATION.fullmatch(citation.strip()), _HASH.fullmatch(digest.strip().lower())
    if place is None or not 1 <= int(place["first"]) <= int(place["last"] or place["first"]):
        raise QueryError(f"{citation[:80]!r} is not a citation", hint="Give it as it was returned: path:L12-L30.")
    if marks is None:
        raise QueryError(
            f"{digest[:80]!r} is not a citation's hash", hint="Give `hash` as it was returned with the result."
        )
    uri, first = place["uri"], int(place["first"])
    last = int(place["last"] or first)
    document = store.document(tool_id, uri)
    if document is not None and (at := _find_passage(document, first, last, marks["lines"])):
        return CitationCheck("same" if at == (first, last) else "moved", format_citation(uri, *at))
    for other in store.uris_with_hash(tool_id, marks["document"]):
        if other != uri and (there := store.document(tool_id, other)) is not None:
            return CitationCheck(
                "moved", format_citation(other, *(_find_passage(there, first, last, marks["lines"]) or (first, last)))
            )
    if document is None:
        return CitationCheck("deleted", citation)
    return CitationCheck("changed", format_citation(uri, first, last))


def _find_passage(document: StoredDocument, first: int, last: int, digest: str) -> tuple[int, int] | None:
    """Return on which lines of its file a cited passage stands: best where it was cited, else anywhere."""
    lines, place, height = unify_line_ends(document.text).split("\n"), document.lines, last - first
    if place.is_single_line:
        return (place.first, place.first) if lines_hash(lines) == digest else None
    begin = first - place.first
    if begin >= 0 and lines_hash(lines[begin : begin + height + 1]) == digest:
        return first, last
    # Looking for the passage elsewhere hashes every window of its height; beyond this a made-up one is not sought.
    windows = range(len(lines) - height) if len(lines) * (height + 1) <= _MAX_HASHED_LINES else range(0)
    for begin in windows:
        if lines_hash(lines[begin : begin + height + 1]) == digest:
            return place.first + begin, place.first + begin + height
    return None
