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

from bunko.readers.memo import MOST, Bad, Memo, too_long
from bunko.text.dates import DAY, iso
from bunko.text.tags import tag, tags

_LONGEST_HEADING = 500  # characters; a longer line is a paragraph that happens to begin like a heading
_LONGEST_TITLE = 200
_WEEKDAY = r"(?:\s+(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|[月火水木金土日](?:曜日?)?(?!\w)))?"
_OPEN, _CLOSE = r"[<\[(（【]?\s*", r"\s*[>\])）】]?"
_MARK = r"\[[^\[\]\n]{1,50}\](?!\()"  # a tag, not the text of a link

_STAR = re.compile(r"(?P<indent>[ \t]*)\*[ \t\u3000]+(?P<rest>\S.*)")
_DATE_LAST = re.compile(
    rf"(?P<title>.*?)\s*{_OPEN}(?P<date>{DAY}){_WEEKDAY}{_CLOSE}\s*(?P<marks>(?:{_MARK}\s*)*)[:：]?\s*"
)
_DATE_FIRST = re.compile(rf"{_OPEN}(?P<date>{DAY}){_WEEKDAY}{_CLOSE}\s*[:：]?\s*(?P<title>.*)")
# After the date of a day stands nothing, or two blanks and a name, or a name with an address.
_DAY = re.compile(rf"(?P<date>{DAY}){_WEEKDAY}(?P<rest>\s*|(?:[ \t]{{2,}}|\t)\S.*|[ \t].*<[^<>\s]+@[^<>\s]+>\s*)")
_COLON = re.compile(r":(?=\s|\Z)|：")
_TAGS = re.compile(r"(?i)\s*(?:tags?|keywords?|タグ|キーワード)\s*[:：](?P<tags>.*)")
_MARKED = re.compile(_MARK)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_LEADING = re.compile(rf"(?:{_MARK}\s*)+")
_TRAILING = re.compile(rf"(?:\s*{_MARK})+\s*\Z")


class _Head(NamedTuple):
    title: str
    date: str
    tags: tuple[str, ...] = ()
    after: int = 0  # where on its line, without indentation, the text begins; 0: on the next line
    is_dated: bool = False  # its date stands on its own line
    is_day: bool = False  # what follows are items of that day


def memos(lines: Iterable[str], most: int = MOST) -> Iterator[Memo | Bad]:
    """Return the entries in the order they stand in the file; nothing if no line of it begins one.

    Only one entry is held at a time, and one of more than `most` characters is told of instead.
    """
    held: list[str] = []  # the lines of the entry so far
    size = begin = 0
    head: _Head | None = None
    day, level = "", -1  # the day whose items follow, and how deep they stand; -1: not known yet
    for number, line in enumerate(lines):
        opened = _opened(line, day, level)
        if opened is None:
            size += len(line) + 1
            if size <= most:
                held.append(line)
            continue
        if not (head is not None and head.is_day and not opened.is_day and _is_blank(held[1:]) and size <= most):
            # A day with items says nothing but their date.
            yield from _memo(held, begin, head) if size <= most else [_too_long(held, begin, most)]
        if opened.is_day:
            day, level = opened.date, -1
        elif opened.is_dated and level > 0:
            day, level = "", -1  # where items are indented, it stands outside of the day
        elif day:
            level = _width(line)
        held, size, begin, head = [line], len(line) + 1, number, opened
    if head is not None:
        yield from _memo(held, begin, head) if size <= most else [_too_long(held, begin, most)]


def _too_long(held: list[str], begin: int, most: int) -> Bad:
    return too_long("the entry at line", begin + 1, most, held[0] if held else "")


def begins(lines: Iterable[str]) -> bool:
    """Say whether a Markdown text is a changelog: an entry is the first thing in it but for headings."""
    for line in lines:
        if line.strip() and not line.startswith("#"):
            return _opened(line, "", -1) is not None
    return False


def _opened(line: str, day: str, level: int) -> _Head | None:
    """Return what a line begins, given the day it stands in."""
    bare = line.lstrip(" \t")
    if not bare or len(line) > _LONGEST_HEADING or (len(bare) < len(line) and bare[0] != "*"):
        return None  # most lines are an indented body
    star = _STAR.fullmatch(line)
    if star is None:
        return None if line[0].isspace() else _of_day(line)
    rest = star["rest"].rstrip()
    if not star["indent"] and (dated := _dated(rest)):
        return dated
    if day and (level < 0 or _width(line) <= level):
        return _item(rest, day)
    return None


def _of_day(line: str) -> _Head | None:
    match = _DAY.fullmatch(line)
    date = iso(match["date"]) if match else ""
    if match is None or not date:
        return None
    rest = match["rest"].strip()
    return _Head("" if "<" in rest else rest, date, is_day=True)


def _dated(rest: str) -> _Head | None:
    rest = " ".join(rest.split())  # else a long run of blanks is tried in all ways to share it
    for pattern in (_DATE_LAST, _DATE_FIRST):
        match = pattern.fullmatch(rest)
        if match and (date := iso(match["date"])):
            title, marks = _unmarked(match["title"])
            own = tags((*marks, *_marks(match.groupdict().get("marks") or "")))
            return _Head(title, date, own, is_dated=True)
    return None


def _item(rest: str, day: str) -> _Head:
    colon = _COLON.search(rest)
    title, marks = _unmarked(rest[: colon.start()] if colon else rest)
    # The star and one blank stand before the rest.
    after = 2 + colon.end() if colon and rest[colon.end() :].strip() else 0
    return _Head(title, day, marks, after)


def _unmarked(title: str) -> tuple[str, tuple[str, ...]]:
    """Take the [tags] at the beginning and the end off a title."""
    ends = [match for match in (_LEADING.match(title), _TRAILING.search(title)) if match]
    marks = tags(one for match in ends for one in _marks(match[0]))
    for match in reversed(ends):
        title = title[: match.start()] + title[match.end() :]
    return " ".join(title.split())[:_LONGEST_TITLE], marks


def _marks(text: str) -> list[str]:
    return [mark[1:-1] for mark in _MARKED.findall(text) if tag(mark[1:-1])]


def _memo(lines: list[str], at: int, head: _Head | None) -> list[Memo]:
    """Return the entry that some lines are, of which the first stands at a place in the file."""
    begin, end = 0, len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if head is None:
        while begin < end and not lines[begin].strip():
            begin += 1
        return [Memo(at + begin + 1, at + end, "", "", (), "\n".join(lines[begin:end]))] if begin < end else []
    first = lines[0] if head.is_day else re.sub(r"\A\s*\*\s+", "* ", lines[0])
    rest = dedent("\n".join(lines[1:end]))
    own, body = head.tags, len(first) + 1
    blank = len(rest) - len(rest.lstrip("\n"))
    tagged, _, _ = rest[blank:].partition("\n")
    if match := _TAGS.fullmatch(tagged):
        own = tags((*own, *(_marks(match["tags"]) or tags(match["tags"]))))
        body += blank + len(tagged) + 1
    text = f"{first}\n{rest}" if rest else first
    if head.after:
        body = len(first) - len(first[head.after :].lstrip())
    elif blank_lines := _BLANK_LINES.match(text, body):
        body = blank_lines.end()
    if not text[body:].strip():
        body = 0  # it has nothing but a heading, which then is its text
    return [Memo(at + 1, at + end, head.title, head.date, own, text, body)]


def _is_blank(lines: list[str]) -> bool:
    return not any(line.strip() for line in lines)


def _width(line: str) -> int:
    bare = line.lstrip(" \t")
    return len(line[: len(line) - len(bare)].expandtabs(8))
