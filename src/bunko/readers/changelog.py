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
from textwrap import dedent
from typing import NamedTuple

from bunko.readers.memo import MAX_ENTRY_CHARS, BadLine, Memo, oversized_entry
from bunko.text.dates import DAY_PATTERN, iso_date
from bunko.text.tags import normalise_tag, parse_tags

_MAX_HEADING_CHARS = 500  # characters; a longer line is a paragraph that happens to begin like a heading
_MAX_TITLE_CHARS = 200
_WEEKDAY = r"(?:\s+(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|[月火水木金土日](?:曜日?)?(?!\w)))?"
_OPEN_BRACKET, _CLOSE_BRACKET = r"[<\[(（【]?\s*", r"\s*[>\])）】]?"
_BRACKET_TAG = r"\[[^\[\]\n]{1,50}\](?!\()"  # a tag, not the text of a link

_STAR_LINE = re.compile(r"(?P<indent>[ \t]*)\*[ \t\u3000]+(?P<text>\S.*)")
_DATE_LAST = re.compile(
    rf"(?P<title>.*?)\s*{_OPEN_BRACKET}(?P<date>{DAY_PATTERN}){_WEEKDAY}{_CLOSE_BRACKET}\s*(?P<marks>(?:{_BRACKET_TAG}\s*)*)[:：]?\s*"
)
_DATE_FIRST = re.compile(rf"{_OPEN_BRACKET}(?P<date>{DAY_PATTERN}){_WEEKDAY}{_CLOSE_BRACKET}\s*[:：]?\s*(?P<title>.*)")
# The date of a day is followed by nothing, by two spaces and a name, or by a name with an email address.
_DAY_LINE = re.compile(
    rf"(?P<date>{DAY_PATTERN}){_WEEKDAY}(?P<author>\s*|(?:[ \t]{{2,}}|\t)\S.*|[ \t].*<[^<>\s]+@[^<>\s]+>\s*)"
)
_COLON = re.compile(r":(?=\s|\Z)|：")
_TAGS_LINE = re.compile(r"(?i)\s*(?:tags?|keywords?|タグ|キーワード)\s*[:：](?P<tags>.*)")
_BRACKET_TAG_PATTERN = re.compile(_BRACKET_TAG)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_LEADING_TAGS = re.compile(rf"(?:{_BRACKET_TAG}\s*)+")
_TRAILING_TAGS = re.compile(rf"(?:\s*{_BRACKET_TAG})+\s*\Z")


class _EntryHead(NamedTuple):
    title: str
    date: str
    tags: tuple[str, ...] = ()
    text_start: int = 0  # offset of the text on the line without indentation; 0: it begins on the next line
    has_own_date: bool = False  # its line has a date
    is_day: bool = False  # the items of that day follow


def memos(lines: Iterable[str], max_chars: int = MAX_ENTRY_CHARS) -> Iterator[Memo | BadLine]:
    """Yield the entries in file order; nothing if no line begins one.

    Only one entry is in memory at a time. One of more than `max_chars` characters is yielded as a BadLine.
    """
    entry_lines: list[str] = []  # lines of the current entry
    size = first_index = 0
    head: _EntryHead | None = None
    day, item_indent = "", -1  # the day whose items follow and their indentation; -1: not known yet
    for index, line in enumerate(lines):
        next_head = _parse_head(line, day, item_indent)
        if next_head is None:
            size += len(line) + 1
            if size <= max_chars:
                entry_lines.append(line)
            continue
        # A day with items is no entry of its own: it only gives the items their date.
        is_day_of_items = head is not None and head.is_day and not next_head.is_day and _is_blank(entry_lines[1:])
        if size > max_chars:
            yield _oversized_entry(entry_lines, first_index, max_chars)
        elif not is_day_of_items:
            yield from _build_memo(entry_lines, first_index, head)
        if next_head.is_day:
            day, item_indent = next_head.date, -1
        elif next_head.has_own_date and item_indent > 0:
            day, item_indent = "", -1  # where items are indented, an entry that is not ends the day
        elif day:
            item_indent = _indent_width(line)
        entry_lines, size, first_index, head = [line], len(line) + 1, index, next_head
    if head is not None and size > max_chars:
        yield _oversized_entry(entry_lines, first_index, max_chars)
    elif head is not None:
        yield from _build_memo(entry_lines, first_index, head)


def _oversized_entry(lines: list[str], first_index: int, max_chars: int) -> BadLine:
    return oversized_entry("the entry at line", first_index + 1, max_chars, lines[0] if lines else "")


def is_changelog(lines: Iterable[str]) -> bool:
    """Return whether a Markdown text is a changelog: apart from headings, it begins with an entry."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            return _parse_head(line, "", -1) is not None
    return False


def _parse_head(line: str, day: str, item_indent: int) -> _EntryHead | None:
    """Return the head of the entry that a line begins, or None; `day` is the date of the current day."""
    stripped = line.lstrip(" \t")
    if not stripped or len(line) > _MAX_HEADING_CHARS or (len(stripped) < len(line) and stripped[0] != "*"):
        return None  # most lines are indented body text
    star_line = _STAR_LINE.fullmatch(line)
    if star_line is None:
        return None if line[0].isspace() else _parse_day_head(line)
    text = star_line["text"].rstrip()
    if not star_line["indent"] and (dated_head := _parse_dated_head(text)):
        return dated_head
    if day and (item_indent < 0 or _indent_width(line) <= item_indent):
        return _parse_item_head(text, day)
    return None


def _parse_day_head(line: str) -> _EntryHead | None:
    match = _DAY_LINE.fullmatch(line)
    date = iso_date(match["date"]) if match else ""
    if match is None or not date:
        return None
    author = match["author"].strip()
    return _EntryHead("" if "<" in author else author, date, is_day=True)


def _parse_dated_head(text: str) -> _EntryHead | None:
    text = " ".join(text.split())  # a long run of spaces would make the patterns backtrack
    for pattern in (_DATE_LAST, _DATE_FIRST):
        match = pattern.fullmatch(text)
        if match and (date := iso_date(match["date"])):
            title, title_tags = _split_title_tags(match["title"])
            tags = parse_tags((*title_tags, *_bracket_tags(match.groupdict().get("marks") or "")))
            return _EntryHead(title, date, tags, has_own_date=True)
    return None


def _parse_item_head(text: str, day: str) -> _EntryHead:
    colon = _COLON.search(text)
    title, tags = _split_title_tags(text[: colon.start()] if colon else text)
    # The text follows the star and a space.
    text_start = 2 + colon.end() if colon and text[colon.end() :].strip() else 0
    return _EntryHead(title, day, tags, text_start)


def _split_title_tags(title: str) -> tuple[str, tuple[str, ...]]:
    """Return a title without the [tags] at its beginning and end, and those tags."""
    tag_runs = [match for match in (_LEADING_TAGS.match(title), _TRAILING_TAGS.search(title)) if match]
    tags = parse_tags(tag for match in tag_runs for tag in _bracket_tags(match[0]))
    for match in reversed(tag_runs):
        title = title[: match.start()] + title[match.end() :]
    return " ".join(title.split())[:_MAX_TITLE_CHARS], tags


def _bracket_tags(text: str) -> list[str]:
    return [tag[1:-1] for tag in _BRACKET_TAG_PATTERN.findall(text) if normalise_tag(tag[1:-1])]


def _build_memo(lines: list[str], first_index: int, head: _EntryHead | None) -> list[Memo]:
    """Return the entry made of these lines, or nothing if they are blank; `first_index` is the index of the first."""
    start, end = 0, len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if head is None:
        while start < end and not lines[start].strip():
            start += 1
        if start == end:
            return []
        return [Memo(first_index + start + 1, first_index + end, "", "", (), "\n".join(lines[start:end]))]
    heading = lines[0] if head.is_day else re.sub(r"\A\s*\*\s+", "* ", lines[0])
    body = dedent("\n".join(lines[1:end]))
    tags, body_start = head.tags, len(heading) + 1
    blank_count = len(body) - len(body.lstrip("\n"))
    first_line, _, _ = body[blank_count:].partition("\n")
    if match := _TAGS_LINE.fullmatch(first_line):
        tags = parse_tags((*tags, *(_bracket_tags(match["tags"]) or parse_tags(match["tags"]))))
        body_start += blank_count + len(first_line) + 1
    text = f"{heading}\n{body}" if body else heading
    if head.text_start:
        body_start = len(heading) - len(heading[head.text_start :].lstrip())
    elif blank_lines := _BLANK_LINES.match(text, body_start):
        body_start = blank_lines.end()
    if not text[body_start:].strip():
        body_start = 0  # the entry is only a heading, which is its text
    return [Memo(first_index + 1, first_index + end, head.title, head.date, tags, text, body_start)]


def _is_blank(lines: list[str]) -> bool:
    return not any(line.strip() for line in lines)


def _indent_width(line: str) -> int:
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(8))
