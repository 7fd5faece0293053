"""Hits and their documents in, passages of the size that was asked for out: a snippet, a chunk, its section, or all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bunko.readers.outline import Heading, scan_outline, unify_line_ends
from bunko.records import StoredDocument
from bunko.text import analyzer
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.text.snippets import SNIPPET_CHARS, SnippetTerms, add_highlights, cut_offset, highlight_ranges, snippet_range
from bunko.types import Hit, format_citation

Extract = Literal["chunk", "snippet", "entry", "section", "full"]
EXTRACTS: tuple[Extract, ...] = ("chunk", "section", "full")
# Of a memo: what stands around the match, the entry as it is written, or what it says below its heading and tags.
MEMO_EXTRACTS: tuple[Extract, ...] = ("snippet", "entry", "full")
# A line of a document that says more is text that happens to look like a heading.
_MAX_HEADING_CHARS = 100


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document that answers, and the hit it is there for."""

    hit: Hit
    start: int
    end: int
    first_line: int  # counted from 1, both included
    last_line: int
    text: str
    hash: str  # of the document and of these lines, so that a citation can be checked later
    chars_before: int = 0  # characters of the document that are left out before it and after it
    chars_after: int = 0

    @property
    def citation(self) -> str:
        """Where it stands, as editors and people read it: path:L12-L30."""
        return format_citation(self.hit.uri, self.first_line, self.last_line)

    @property
    def headings(self) -> list[str]:
        """The headings above it, each no longer than a heading is."""
        return [display_label(heading) for heading in self.hit.chunk.heading_path]


def display_label(label: str) -> str:
    """Return a heading as a person sees it."""
    seen = remove_hidden_chars(label)
    return seen if len(seen) <= _MAX_HEADING_CHARS else f"{seen[:_MAX_HEADING_CHARS]}…"


def extract_passages(
    hits: Sequence[Hit],
    find_document: Callable[[Hit], StoredDocument | None],
    extract: Extract | Callable[[Hit], Extract],
    *,
    already_returned: int = 0,
    query: str = "",
    max_chars: int | None = None,
) -> list[Passage]:
    """Return what comes back for hits, best first; what overlaps or touches in one document is joined.

    The first `given` hits came back before, and what lies inside their passages does not come back again. A snippet is
    what stands around the words of `query`, of `max_chars` or about 150 characters; what else is longer than
    `max_chars` is cut after a sentence.
    """
    looked: SnippetTerms | None = None
    documents: dict[tuple[str, str], StoredDocument | None] = {}
    before: list[_TextRange] = []
    found: list[_TextRange] = []
    for number, hit in enumerate(hits):
        place = (hit.tool, hit.uri)
        text = documents[place] if place in documents else documents.setdefault(place, find_document(hit))
        if text is None or text.content_hash != hit.content_hash:
            continue  # it changed since the search, and its chunks no longer stand where the hit says
        size = extract(hit) if callable(extract) else extract
        if size == "snippet":
            looked = looked or snippet_terms(query)
            around = snippet_range(text.text[hit.chunk.start : hit.chunk.end], looked, max_chars or SNIPPET_CHARS)
            one = _TextRange(hit, text, *(hit.chunk.start + at for at in around))
        else:
            one = _TextRange(hit, text, *_extract_range(hit, text, size))
        if number < already_returned:
            before.append(one)
        elif any(old.document is text and old.start <= one.start and one.end <= old.end for old in before):
            continue
        elif touching := [other for other in found if other.document is text and one.touches(other)]:
            # The stretch may close the gap between others, so that all of them become one.
            touching[0].start = min(one.start, *(other.start for other in touching))
            touching[0].end = max(one.end, *(other.end for other in touching))
            found = [other for other in found if other not in touching[1:]]
        else:
            found.append(one)
    return [_build_passage(one.hit, one.document, one.start, one.truncated_end(max_chars)) for one in found]


def snippet_terms(query: str) -> SnippetTerms:
    """Return what a snippet looks for: the terms of a query with others that mean the same, and its own spelling."""
    from bunko.search.rank import (  # which brings numpy, and most commands show no snippet
        CROSS_LANGUAGE_WEIGHT,
        analyse_query,
    )

    found = analyse_query(query, cross_language_weight=CROSS_LANGUAGE_WEIGHT)
    weights = {
        spelling: one.weight
        for spelling, one, role in zip(found.spellings, found.terms, found.roles, strict=True)
        if role != "gram"
    }
    return SnippetTerms(weights, tuple(run for run in analyzer.runs(query) if len(run) > 1))


def render_extract(text: str, extract: Extract, terms: SnippetTerms, *, chars_before: int, chars_after: int) -> str:
    """Return a passage's text for a reader: a snippet with its words marked, and a sign for all that was left out."""
    if extract == "snippet":
        head, tail = "…" if chars_before else "", "…" if chars_after else ""
        return f"{head}{add_highlights(text, highlight_ranges(text, terms))}{tail}"
    if extract in ("entry", "full") and chars_after:
        return f"{text}… [{chars_after:,} more characters]"
    return text


def passage_as_hit(passage: Passage) -> Hit:
    """Return a passage as a hit of that size, for whoever shows hits."""
    hit = passage.hit
    if (passage.start, passage.end) == (hit.chunk.start, hit.chunk.end):
        return hit
    chunk = replace(
        hit.chunk,
        start=passage.start,
        end=passage.end,
        first_line=passage.first_line,
        last_line=passage.last_line,
        text=passage.text,
    )
    return replace(hit, chunk=chunk)


@dataclass(slots=True, eq=False)
class _TextRange:
    hit: Hit
    document: StoredDocument
    start: int
    end: int

    def touches(self, other: _TextRange) -> bool:
        low, high = (self.end, other.start) if self.end <= other.start else (other.end, self.start)
        return low >= high or not self.document.text[low:high].strip()

    def truncated_end(self, max_chars: int | None) -> int:
        text = self.document.text[self.start : self.end]
        return self.end if max_chars is None else self.start + len(text[: cut_offset(text, max_chars)].rstrip())


def section_range(text: str, body_start: int, start: int, end: int) -> tuple[int, int]:
    """Return the chapter around a range: from the heading above it to the next one that is not deeper."""
    headings = [mark for mark in scan_outline(unify_line_ends(text), body_start) if isinstance(mark, Heading)]
    above = [heading for heading in headings if heading.start <= start]
    if not above:
        return start, max(end, min((h.start for h in headings), default=len(text)))
    own = above[-1]
    after = (heading.start for heading in headings if heading.start >= end and heading.level <= own.level)
    return own.start, max(end, len(text[: next(after, len(text))].rstrip()))


def lines_hash(lines: Sequence[str]) -> str:
    """Return a hash of whole lines, deaf to line ends and trailing blanks."""
    return hashlib.sha256("\n".join(line.rstrip() for line in lines).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _extract_range(hit: Hit, document: StoredDocument, extract: Extract) -> tuple[int, int]:
    if extract == "entry":
        return 0, len(document.text.rstrip())
    if extract == "full":
        text = document.text
        begin = len(text) - len(text[document.body_start :].lstrip("\r\n"))
        return begin, max(begin, len(text.rstrip()))
    if extract == "section":
        return section_range(document.text, document.body_start, hit.chunk.start, hit.chunk.end)
    return hit.chunk.start, hit.chunk.end


def _build_passage(hit: Hit, document: StoredDocument, start: int, end: int) -> Passage:
    whole = unify_line_ends(document.text)
    first = whole.count("\n", 0, start) + 1
    last = first + whole.count("\n", start, max(start, end - 1))
    place = document.lines
    # A citation names lines: where all is on one, the hash is of all.
    lines = whole.split("\n") if place.is_single_line else whole.split("\n")[first - 1 : last]
    text = document.text[start:end]
    if (start, end) == (hit.chunk.start, hit.chunk.end):
        text = hit.chunk.text  # a row of a table carries its header
    digest = f"{document.content_hash[:12]}.{lines_hash(lines)}"
    before, after = len(document.text[document.body_start : start].strip()), len(document.text[end:].strip())
    return Passage(hit, start, end, place.file_line(first), place.file_line(last), text, digest, before, after)
