"""Hits and their documents in, passages of the size that was asked for out: a chunk, its section, or all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bunko.protocols import StoredDocument
from bunko.readers.outline import Heading, scan, unify
from bunko.types import Hit

Extract = Literal["chunk", "section", "full"]
EXTRACTS: tuple[Extract, ...] = ("chunk", "section", "full")


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

    @property
    def citation(self) -> str:
        """Where it stands, as editors and people read it: path:L12-L30."""
        if self.first_line == self.last_line:
            return f"{self.hit.uri}:L{self.first_line}"
        return f"{self.hit.uri}:L{self.first_line}-L{self.last_line}"


def passages(hits: Sequence[Hit], document: Callable[[Hit], StoredDocument | None], extract: Extract) -> list[Passage]:
    """Return what comes back for hits, best first; what overlaps or touches in one document is joined."""
    ranges: list[tuple[Hit, StoredDocument, int, int]] = []
    for hit in hits:
        found = document(hit)
        if found is None:
            continue
        start, end = _range(hit, found, extract)
        for number, (other, same, begin, stop) in enumerate(ranges):
            if same.uri == found.uri and other.tool == hit.tool and _touch(found.text, start, end, begin, stop):
                ranges[number] = (other, same, min(start, begin), max(end, stop))
                break
        else:
            ranges.append((hit, found, start, end))
    return [_passage(*one) for one in ranges]


def section(text: str, body: int, start: int, end: int) -> tuple[int, int]:
    """Return the chapter around a range: from the heading above it to the next one that is not deeper."""
    headings = [mark for mark in scan(unify(text), body) if isinstance(mark, Heading)]
    above = [heading for heading in headings if heading.start <= start]
    if not above:
        return start, max(end, min((h.start for h in headings), default=len(text)))
    own = above[-1]
    after = (heading.start for heading in headings if heading.start >= end and heading.level <= own.level)
    return own.start, max(end, len(text[: next(after, len(text))].rstrip()))


def lines_hash(text: str, first_line: int, last_line: int) -> str:
    """Return a hash of whole lines, deaf to line ends and trailing blanks."""
    lines = unify(text).split("\n")[first_line - 1 : last_line]
    return hashlib.sha256("\n".join(line.rstrip() for line in lines).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _range(hit: Hit, document: StoredDocument, extract: Extract) -> tuple[int, int]:
    if extract == "full":
        return document.body, max(document.body, len(document.text.rstrip()))
    if extract == "section":
        return section(document.text, document.body, hit.chunk.start, hit.chunk.end)
    return hit.chunk.start, hit.chunk.end


def _touch(text: str, start: int, end: int, begin: int, stop: int) -> bool:
    low, high = (end, begin) if end <= begin else (stop, start)
    return low >= high or not text[low:high].strip()


def _passage(hit: Hit, document: StoredDocument, start: int, end: int) -> Passage:
    lines = unify(document.text)
    first = lines.count("\n", 0, start) + 1
    last = first + lines.count("\n", start, max(start, end - 1))
    text = document.text[start:end]
    if (start, end) == (hit.chunk.start, hit.chunk.end):
        text = hit.chunk.text  # a row of a table carries its header
    digest = f"{document.content_hash[:12]}.{lines_hash(document.text, first, last)}"
    return Passage(hit, start, end, first, last, text, digest)
