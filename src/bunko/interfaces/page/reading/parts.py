"""Divide a document into parts that can be rendered by themselves: each begins where a block of its text begins."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from bunko.readers.outline import Heading, unify_line_ends
from bunko.readers.outlines import scan_outline
from bunko.types.records import StoredDocument

PART_LINES = 300
_PART_CHARS = 60_000
_LINES_BEFORE_HIT = 60
# A part ends where a block ends, if one ends in its last third.
_MIN_PART_LINES = 200
# Of the lines that are repeated in a part: the opening of code, the header of a table.
_MAX_OPENING_CHARS = 2000
_MAX_TABLE_LINES = 100_000
_TABLE_RULE = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*\|?[ \t]*+")
_MAX_CACHED = 64
_cached_marks: dict[tuple[object, ...], Marks] = {}


@dataclass(frozen=True, slots=True)
class DocumentHeading:
    """A heading and its lines, counted from 0."""

    line: int
    last: int
    level: int
    title: str
    source: str  # as it is written


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the headings of a document are, and its blocks of code, whose first and last lines are counted from 0."""

    body: int  # the first line after the metadata
    headings: tuple[DocumentHeading, ...]
    verbatim: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of a document, counted from 0; the end is not included."""

    start: int
    end: int
    opening: tuple[str, ...] = ()  # lines from above, without which the first block would be another one
    opening_line: int = 0  # the first of them


def document_lines(document: StoredDocument) -> list[str]:
    """Return the lines of a document."""
    lines = unify_line_ends(document.text).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def document_marks(document: StoredDocument) -> Marks:
    """Return the marks of a document, found once for each text: all parts of a large document need them."""
    key = document.uri, document.content_hash, document.lines
    marks = _cached_marks.get(key)
    if marks is None:
        if len(_cached_marks) >= _MAX_CACHED:
            _cached_marks.clear()
        marks = _cached_marks[key] = _find_marks(document)
    return marks


def _find_marks(document: StoredDocument) -> Marks:
    text = unify_line_ends(document.text)
    headings: list[DocumentHeading] = []
    verbatim: list[tuple[int, int]] = []
    line = position = 0
    for mark in scan_outline(text, document.body_start, media_type=document.media_type):
        line, position = line + text.count("\n", position, mark.start), mark.start
        last = line + text.count("\n", mark.start, mark.end)
        if isinstance(mark, Heading):
            headings.append(DocumentHeading(line, last, mark.level, mark.title, mark.source))
        else:
            verbatim.append((line, last))
    return Marks(text.count("\n", 0, document.body_start), tuple(headings), tuple(verbatim))


class Parts:
    """Chooses the parts of a document."""

    def __init__(self, document: StoredDocument) -> None:
        self.lines = document_lines(document)
        self._marks = document_marks(document)
        self.headings = {heading.line: heading for heading in self._marks.headings}
        self._verbatim_starts = [first for first, _ in self._marks.verbatim]
        self.body = min(self._marks.body, len(self.lines) - 1)

    def around(self, hit: tuple[int, int] | None) -> Part:
        """Return the part around a hit, or the first one."""
        if hit is None or hit[0] <= self.body or self.after(self.body).end == len(self.lines):
            return self.after(self.body)
        line = min(hit[0], len(self.lines) - 1)
        start = self._best_border(max(line - _LINES_BEFORE_HIT, self.body), line)
        while line > start and sum(map(len, self.lines[start:line])) > _PART_CHARS // 2:
            start = self._best_border(start + (line - start + 1) // 2, line)  # long lines
        return self.after(start)

    def after(self, start: int) -> Part:
        """Return the part that begins at a line."""
        end, chars, count = start, 0, len(self.lines)
        while end < count and end - start < PART_LINES and (chars <= _PART_CHARS or end == start):
            chars += len(self.lines[end])
            end += 1
        if end < count:
            end = self._best_border(start + 1 + (end - start) * _MIN_PART_LINES // PART_LINES, end, latest=True)
        return self._part(start, end)

    def from_line(self, line: int) -> Part:
        """Return the part that begins with the block of a line; of a short document, all of it."""
        if (whole := self.after(self.body)).end == len(self.lines):
            return whole
        line = min(max(line, self.body), len(self.lines) - 1)
        if self._border_rank(line) > 1:
            return self.after(line)
        return self.after(self._best_border(max(line - _LINES_BEFORE_HIT, self.body), line, latest=True))

    def exactly(self, start: int, end: int) -> Part:
        """Return a part with these lines, or fewer if they are too many."""
        start = min(max(start, 0), len(self.lines) - 1)
        part = self.after(start)
        return self._part(start, min(max(end, start + 1), part.end)) if end < part.end else part

    def before(self, end: int) -> int:
        """Return where the part begins that ends before a line."""
        start, chars = end, 0
        while start > self.body and end - start < PART_LINES and chars <= _PART_CHARS:
            start -= 1
            chars += len(self.lines[start])
        # Not the line that was too much.
        start += chars > _PART_CHARS and start < end - 1
        return start if start == self.body else self._best_border(start, end - 1)

    def _part(self, start: int, end: int) -> Part:
        line, opening = self._opening(start)
        return Part(start, end, tuple(opening), line)

    def _best_border(self, first: int, last: int, *, latest: bool = False) -> int:
        """Return the line where a part begins best: a heading, the line after a blank one, one that is not indented."""
        first = min(first, last)
        sign = 1 if latest else -1
        return max(range(first, last + 1), key=lambda line: (self._border_rank(line), sign * line))

    def _border_rank(self, line: int) -> int:
        if line >= len(self.lines) or line in self.headings:
            return 3
        text = self.lines[line]
        if text[:1] in ("", " ", "\t") or self._verbatim_around(line):
            return 0
        return 2 if not self.lines[line - 1].strip() else 1

    def _verbatim_around(self, line: int) -> int | None:
        """Return the first line of the block of code that a line continues."""
        index = bisect_right(self._verbatim_starts, line) - 1
        if index < 0 or not self._marks.verbatim[index][0] < line <= self._marks.verbatim[index][1]:
            return None
        return self._marks.verbatim[index][0]

    def _opening(self, start: int) -> tuple[int, list[str]]:
        if (first := self._verbatim_around(start)) is not None:
            lines = [self.lines[first]]
        elif "|" in self.lines[start]:
            first = start
            while first > max(start - _MAX_TABLE_LINES, 0) and "|" in self.lines[first - 1]:
                first -= 1
            lines = self.lines[first : first + 2]
            if start - first < 2 or not _TABLE_RULE.fullmatch(lines[1]):
                return start, []
        else:
            return start, []
        return (first, lines) if sum(map(len, lines)) <= _MAX_OPENING_CHARS else (start, [])
