"""Collect the lines of a memo entry and build the memo, without losing any line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

from bunko.readers.entry_head import EntryHead, bracket_tags
from bunko.readers.memo import BadLine, Memo, oversized_entry
from bunko.text.tags import parse_tags

_TAGS_LINE = re.compile(r"(?i)\s*(?:tags?|keywords?|タグ|キーワード)\s*[:：](?P<tags>.*)")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_STAR = re.compile(r"\A\s*\*\s+")


class EntryLines:
    """The lines of an entry that is being read; of one with more than `max_chars` characters only the first."""

    def __init__(self, head: EntryHead | None, first_index: int, max_chars: int) -> None:
        self.head = head  # None: text before the first entry
        self.lines: list[str] = []
        self._first_index = first_index  # of its first line, counted from 0
        self._size, self._max_chars = 0, max_chars

    def add(self, line: str) -> None:
        """Add the next line."""
        self._size += len(line) + 1
        if self._size <= self._max_chars or not self.lines:
            self.lines.append(line)

    @property
    def is_oversized(self) -> bool:
        """Return whether the entry is too long to be a memo."""
        return self._size > self._max_chars

    def date_problem(self, consequence: str = "its entry is indexed without a date") -> Iterator[BadLine]:
        """Yield a bad line if the date in the head does not exist."""
        if self.head and self.head.bad_date:
            line = self._first_index + 1
            reason = f"line {line} has the date {self.head.bad_date}, which does not exist: {consequence}"
            yield BadLine(line, reason, self.lines[0])

    def build(self, *, context: str = "", key: str = "", is_markdown: bool = False) -> Iterator[Memo | BadLine]:
        """Yield the memo, preceded by the problem with its date; nothing if the lines are blank."""
        if self.is_oversized:
            yield oversized_entry("the entry at line", self._first_index + 1, self._max_chars, self.lines[0])
            return
        yield from self.date_problem()
        memo = self._preface() if self.head is None else self._memo(self.head, is_markdown=is_markdown)
        if memo is not None:
            media_type = "text/markdown" if is_markdown else memo.media_type
            yield memo._replace(context=context, key=key, media_type=media_type)

    def _preface(self) -> Memo | None:
        start, end = 0, self._text_end()
        while start < end and not self.lines[start].strip():
            start += 1
        if start == end:
            return None
        first = self._first_index + 1
        return Memo(first + start, first + end - 1, "", "", (), "\n".join(self.lines[start:end]))

    def _memo(self, head: EntryHead, *, is_markdown: bool) -> Memo:
        end = self._text_end()
        heading, body = self.lines[0], "\n".join(self.lines[1:end])
        if not is_markdown:
            heading, body = heading if head.is_day else _STAR.sub("* ", heading), dedent(body)
        tags, body_start = head.tags, len(heading) + 1
        blank_count = len(body) - len(body.lstrip("\n"))
        first_line, _, _ = body[blank_count:].partition("\n")
        if match := _TAGS_LINE.fullmatch(first_line):
            tags = parse_tags((*tags, *(bracket_tags(match["tags"]) or parse_tags(match["tags"]))))
            body_start += blank_count + len(first_line) + 1
        text = f"{heading}\n{body}" if body else heading
        if head.text_start:
            body_start = len(heading) - len(heading[head.text_start :].lstrip())
        elif blank_lines := _BLANK_LINES.match(text, body_start):
            body_start = blank_lines.end()
        if not text[body_start:].strip():
            body_start = 0  # the entry is only a heading, which is its text
        first = self._first_index + 1
        return Memo(first, first + end - 1, head.title, head.date, tags, text, body_start)

    def _text_end(self) -> int:
        end = len(self.lines)
        while end and not self.lines[end - 1].strip():
            end -= 1
        return end
