"""The lines of a changelog memo come in, its entries with title, date and tags go out; no line of text is lost.

Two forms are read, and both may stand in one file:

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

_STAR_LINE = re.compile(r"(?P<indent>[ \t]*)\*[ \t\u3000]+(?P<rest>\S.*)")
_DATE_LAST = re.compile(
    rf"(?P<title>.*?)\s*{_OPEN_BRACKET}(?P<date>{DAY_PATTERN}){_WEEKDAY}{_CLOSE_BRACKET}\s*(?P<marks>(?:{_BRACKET_TAG}\s*)*)[:：]?\s*"
)
_DATE_FIRST = re.compile(rf"{_OPEN_BRACKET}(?P<date>{DAY_PATTERN}){_WEEKDAY}{_CLOSE_BRACKET}\s*[:：]?\s*(?P<title>.*)")
# After the date of a day stands nothing, or two blanks and a name, or a name with an address.
_DAY_LINE = re.compile(
    rf"(?P<date>{DAY_PATTERN}){_WEEKDAY}(?P<rest>\s*|(?:[ \t]{{2,}}|\t)\S.*|[ \t].*<[^<>\s]+@[^<>\s]+>\s*)"
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
    text_start: int = 0  # where on its line, without indentation, the text begins; 0: on the next line
    has_own_date: bool = False  # its date stands on its own line
    is_day: bool = False  # what follows are items of that day


def memos(lines: Iterable[str], max_chars: int = MAX_ENTRY_CHARS) -> Iterator[Memo | BadLine]:
    """Return the entries in the order they stand in the file; nothing if no line of it begins one.

    Only one entry is held at a time, and one of more than `most` characters is told of instead.
    """
    held: list[str] = []  # the lines of the entry so far
    size = begin = 0
    head: _EntryHead | None = None
    day, level = "", -1  # the day whose items follow, and how deep they stand; -1: not known yet
    for number, line in enumerate(lines):
        opened = _parse_head(line, day, level)
        if opened is None:
            size += len(line) + 1
            if size <= max_chars:
                held.append(line)
            continue
        if not (head is not None and head.is_day and not opened.is_day and _is_blank(held[1:]) and size <= max_chars):
            # A day with items says nothing but their date.
            yield from (
                _build_memo(held, begin, head) if size <= max_chars else [_oversized_entry(held, begin, max_chars)]
            )
        if opened.is_day:
            day, level = opened.date, -1
        elif opened.has_own_date and level > 0:
            day, level = "", -1  # where items are indented, it stands outside of the day
        elif day:
            level = _indent_width(line)
        held, size, begin, head = [line], len(line) + 1, number, opened
    if head is not None:
        yield from _build_memo(held, begin, head) if size <= max_chars else [_oversized_entry(held, begin, max_chars)]


def _oversized_entry(lines: list[str], first_index: int, max_chars: int) -> BadLine:
    return oversized_entry("the entry at line", first_index + 1, max_chars, lines[0] if lines else "")


def is_changelog(lines: Iterable[str]) -> bool:
    """Say whether a Markdown text is a changelog: an entry is the first thing in it but for headings."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            return _parse_head(line, "", -1) is not None
    return False


def _parse_head(line: str, day: str, level: int) -> _EntryHead | None:
    """Return what a line begins, given the day it stands in."""
    bare = line.lstrip(" \t")
    if not bare or len(line) > _MAX_HEADING_CHARS or (len(bare) < len(line) and bare[0] != "*"):
        return None  # most lines are an indented body
    star = _STAR_LINE.fullmatch(line)
    if star is None:
        return None if line[0].isspace() else _parse_day_head(line)
    rest = star["rest"].rstrip()
    if not star["indent"] and (dated := _parse_dated_head(rest)):
        return dated
    if day and (level < 0 or _indent_width(line) <= level):
        return _parse_item_head(rest, day)
    return None


def _parse_day_head(line: str) -> _EntryHead | None:
    match = _DAY_LINE.fullmatch(line)
    date = iso_date(match["date"]) if match else ""
    if match is None or not date:
        return None
    rest = match["rest"].strip()
    return _EntryHead("" if "<" in rest else rest, date, is_day=True)


def _parse_dated_head(text: str) -> _EntryHead | None:
    text = " ".join(text.split())  # else a long run of blanks is tried in all ways to share it
    for pattern in (_DATE_LAST, _DATE_FIRST):
        match = pattern.fullmatch(text)
        if match and (date := iso_date(match["date"])):
            title, marks = _split_title_tags(match["title"])
            own = parse_tags((*marks, *_bracket_tags(match.groupdict().get("marks") or "")))
            return _EntryHead(title, date, own, has_own_date=True)
    return None


def _parse_item_head(text: str, day: str) -> _EntryHead:
    colon = _COLON.search(text)
    title, marks = _split_title_tags(text[: colon.start()] if colon else text)
    # The star and one blank stand before the rest.
    after = 2 + colon.end() if colon and text[colon.end() :].strip() else 0
    return _EntryHead(title, day, marks, after)


def _split_title_tags(title: str) -> tuple[str, tuple[str, ...]]:
    """Take the [tags] at the beginning and the end off a title."""
    ends = [match for match in (_LEADING_TAGS.match(title), _TRAILING_TAGS.search(title)) if match]
    marks = parse_tags(one for match in ends for one in _bracket_tags(match[0]))
    for match in reversed(ends):
        title = title[: match.start()] + title[match.end() :]
    return " ".join(title.split())[:_MAX_TITLE_CHARS], marks


def _bracket_tags(text: str) -> list[str]:
    return [mark[1:-1] for mark in _BRACKET_TAG_PATTERN.findall(text) if normalise_tag(mark[1:-1])]


def _build_memo(lines: list[str], first_index: int, head: _EntryHead | None) -> list[Memo]:
    """Return the entry that some lines are, of which the first stands at a place in the file."""
    begin, end = 0, len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if head is None:
        while begin < end and not lines[begin].strip():
            begin += 1
        return (
            [Memo(first_index + begin + 1, first_index + end, "", "", (), "\n".join(lines[begin:end]))]
            if begin < end
            else []
        )
    first = lines[0] if head.is_day else re.sub(r"\A\s*\*\s+", "* ", lines[0])
    rest = dedent("\n".join(lines[1:end]))
    own, body = head.tags, len(first) + 1
    blank = len(rest) - len(rest.lstrip("\n"))
    tagged, _, _ = rest[blank:].partition("\n")
    if match := _TAGS_LINE.fullmatch(tagged):
        own = parse_tags((*own, *(_bracket_tags(match["tags"]) or parse_tags(match["tags"]))))
        body += blank + len(tagged) + 1
    text = f"{first}\n{rest}" if rest else first
    if head.text_start:
        body = len(first) - len(first[head.text_start :].lstrip())
    elif blank_lines := _BLANK_LINES.match(text, body):
        body = blank_lines.end()
    if not text[body:].strip():
        body = 0  # it has nothing but a heading, which then is its text
    return [Memo(first_index + 1, first_index + end, head.title, head.date, own, text, body)]


def _is_blank(lines: list[str]) -> bool:
    return not any(line.strip() for line in lines)


def _indent_width(line: str) -> int:
    bare = line.lstrip(" \t")
    return len(line[: len(line) - len(bare)].expandtabs(8))
