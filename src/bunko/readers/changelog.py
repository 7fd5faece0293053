"""Read memo entries from the lines of a changelog, without losing any line of text.

There are two forms, and a file may mix them:

    * Meeting Notes 2024-01-15            2024-01-15  Taro  <taro@example.com>
      Tags: meeting, january
                                              * 会議 [定例]: 議題は三つ。
      Topics discussed:                         予算の話。
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bunko.readers.entry_head import (
    EntryHead,
    EntryLines,
    parse_author_line,
    parse_dated_head,
    parse_day_head,
    parse_item_head,
)
from bunko.readers.memo import MAX_ENTRY_CHARS, BadLine, Memo

_MAX_HEADING_CHARS = 500  # characters; a longer line is a paragraph that happens to begin like a heading
_STAR_LINE = re.compile(r"(?P<indent>[ \t]*)\*[ \t\u3000]+(?P<text>\S.*)")


def memos(lines: Iterable[str], max_chars: int = MAX_ENTRY_CHARS) -> Iterator[Memo | BadLine]:
    """Yield the entries in file order; nothing if no line begins one.

    Only one entry is in memory at a time. One of more than `max_chars` characters is yielded as a BadLine, and so is
    a date that does not exist, followed by its entry.
    """
    entry = EntryLines(None, 0, max_chars)
    day: EntryHead | None = None  # the day whose items follow
    item_indent = -1  # the indentation of its items; -1: not known yet
    for index, line in enumerate(lines):
        head = _parse_head(line, day, item_indent)
        if head is None:
            entry.add(line)
            continue
        if day and _has_no_text(entry) and not head.is_day:
            # A day with items is no entry of its own: it only gives the items their date and authors.
            yield from entry.date_problem("its entries are indexed without a date")
            further_authors = (parse_author_line(line) for line in entry.lines[1:])
            day = day._replace(authors=(*day.authors, *(author for author in further_authors if author)))
        else:
            yield from _build(entry)
        if head.is_day:
            day, item_indent = head, -1
        elif head.has_own_date and item_indent > 0:
            day, item_indent = None, -1  # where items are indented, an entry that is not ends the day
        elif day:
            item_indent = _indent_width(line)
            head = head._replace(authors=day.authors)
        entry = EntryLines(head, index, max_chars)
        entry.add(line)
    if entry.head is not None:
        yield from _build(entry)


def is_changelog(lines: Iterable[str]) -> bool:
    """Return whether a Markdown text is a changelog: apart from headings, it begins with an entry."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            return _parse_head(line, None, -1) is not None
    return False


def _parse_head(line: str, day: EntryHead | None, item_indent: int) -> EntryHead | None:
    """Return the head of the entry that a line begins, or None; `day` is the current day."""
    stripped = line.lstrip(" \t")
    if not stripped or len(line) > _MAX_HEADING_CHARS or (len(stripped) < len(line) and stripped[0] != "*"):
        return None  # most lines are indented body text
    star_line = _STAR_LINE.fullmatch(line)
    if star_line is None:
        return None if line[0].isspace() else parse_day_head(line)
    text = star_line["text"].rstrip()
    if not star_line["indent"] and (dated_head := parse_dated_head(text)):
        return dated_head
    if day and (item_indent < 0 or _indent_width(line) <= item_indent):
        return parse_item_head(text, day.date)
    return None


def _has_no_text(entry: EntryLines) -> bool:
    """Return whether an entry is a day with nothing below it but its authors."""
    if entry.head is None or not entry.head.is_day or entry.is_oversized:
        return False
    return not any(line.strip() and not parse_author_line(line) for line in entry.lines[1:])


def _build(entry: EntryLines) -> Iterator[Memo | BadLine]:
    authors = entry.head.authors if entry.head else ()
    if entry.head and entry.head.is_day and entry.head.title:
        authors = ()  # what follows the date of a day without items is its title
    return entry.build(context=", ".join(authors))


def _indent_width(line: str) -> int:
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(8))
