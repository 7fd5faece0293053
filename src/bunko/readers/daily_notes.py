"""Read one memo per day from notes in which headings have dates.

# 日記

## 2024-03-05
川沿いを散歩した。

## 2024-03-06 会議 [仕事]
予算の話。
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from bunko.readers import markdown
from bunko.readers.entry_head import EntryHead, EntryLines, parse_dated_head
from bunko.readers.memo import BadLine, Memo
from bunko.text.tags import parse_tags

_MAX_HEADING_CHARS = 500  # characters; a longer line is a paragraph
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t\u3000]+(?P<text>.*?)(?:[ \t]+#+)?[ \t]*")
# The name of a release is a title, not a tag: [1.2.0] - 2024-03-05
_RELEASE = re.compile(r"\[(?P<name>v?\d[^\[\]]*)\]\s*[-–—]")
_COMPACT_DATE = re.compile(r"\A((?:19|20)\d\d)(0[1-9]|1[0-2])([0-2]\d|3[01])(?!\d)")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")


class HeadingScanner:
    """Finds the headings among lines, and counts how many of each level have a date."""

    def __init__(self) -> None:
        self.first_date = ""  # of the first heading with a date
        self._dated, self._all = Counter[int](), Counter[int]()
        self._fence = ""  # that opened the code block we are in

    def count(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines unchanged and count their headings."""
        for line in lines:
            if heading := self.parse(line):
                level, text = heading
                self._all[level] += 1
                if head := _parse_day(text):
                    self._dated[level] += 1
                    self.first_date = self.first_date or head.date
            yield line

    def parse(self, line: str) -> tuple[int, str] | None:
        """Return the level and the text of the heading on the next line, or None."""
        stripped = line.lstrip(" ")
        if not stripped or stripped[0] not in "#`~":
            return None
        if fence := _FENCE.fullmatch(line):
            if not self._fence:
                self._fence = fence["fence"]
            elif fence["fence"].startswith(self._fence) and not fence["info"].strip():
                self._fence = ""
            return None
        if self._fence or len(line) > _MAX_HEADING_CHARS:
            return None
        heading = _HEADING.fullmatch(line)
        return (len(heading["marks"]), heading["text"]) if heading else None

    @property
    def day_count(self) -> int:
        """Return how many headings begin a day."""
        return self._dated[self.day_level] if self.day_level else 0

    @property
    def day_level(self) -> int:
        """Return the level of the headings that begin days: more than half of that level have a date; 0: none."""
        level, dated = max(self._dated.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        return level if 2 * dated > self._all[level] else 0


def is_day_heading(line: str) -> bool:
    """Return whether a line is a heading with a date."""
    heading = HeadingScanner().parse(line)
    return heading is not None and _parse_day(heading[1]) is not None


def memos(lines: Iterable[str], day_level: int, max_chars: int) -> Iterator[Memo | BadLine]:
    """Yield one memo for each heading of `day_level`, and one for the text below each heading above that level.

    Only one memo is in memory at a time. The headings above a day are its context, and the tags of the front matter
    are those of every memo.
    """
    headings, file = HeadingScanner(), _FileState(day_level, max_chars)
    entry = EntryLines(None, 0, max_chars)
    for index, line in enumerate(lines):
        heading = headings.parse(line)
        if heading is None or heading[0] > day_level:
            entry.add(line)
            continue
        if entry.head is None:
            entry = file.take_front_matter(entry)
        yield from file.build(entry)
        level, text = heading
        file.enter_heading(level, text)
        head = _parse_day(text) if level == day_level else None
        entry = EntryLines(head or EntryHead(text.strip(), ""), index, max_chars)
        entry.add(line)
    yield from file.build(entry)


class _FileState:
    """What the front matter and the headings say about the memos below them."""

    def __init__(self, day_level: int, max_chars: int) -> None:
        self._day_level, self._max_chars = day_level, max_chars
        self._level = day_level  # of the heading that began the entry
        self._tags: tuple[str, ...] = ()
        self._titles = [""] * (day_level + 1)  # of the file, then the current heading of each level

    def enter_heading(self, level: int, text: str) -> None:
        """Note a heading, which ends those below it."""
        self._level = level
        self._titles[level:] = [text.strip(), *[""] * (self._day_level - level)]

    def take_front_matter(self, preface: EntryLines) -> EntryLines:
        """Return the text before the first heading without the front matter; its title and tags are noted."""
        text = "".join(f"{line}\n" for line in preface.lines)
        if preface.is_oversized or not text.startswith(("---", "+++")):
            return preface
        note = markdown.read(text, "utf-8")
        first_index = text[: note.body_start].count("\n")
        if first_index:
            self._titles[0], self._tags = note.title, note.tags
        rest = EntryLines(None, first_index, self._max_chars)
        for line in preface.lines[first_index:]:
            rest.add(line)
        return rest

    def build(self, entry: EntryLines) -> Iterator[Memo | BadLine]:
        """Yield the memo of an entry."""
        head = entry.head
        if head and self._level < self._day_level and not any(line.strip() for line in entry.lines[1:]):
            return  # only the context of the days below it
        above = self._titles[: self._level] if head else []
        # The name of a day must not depend on its text, to which people add all day.
        key = head.date if head and not head.title else ""
        for item in entry.build(context=" > ".join(filter(None, above)), key=key, is_markdown=True):
            yield item._replace(tags=parse_tags((*self._tags, *item.tags))) if isinstance(item, Memo) else item


def _parse_day(text: str) -> EntryHead | None:
    text = _COMPACT_DATE.sub(r"\1-\2-\3", text.strip().strip("*_"))
    head = parse_dated_head(text)
    if head and head.tags and not head.title and (release := _RELEASE.match(text)):
        return head._replace(title=release["name"], tags=head.tags[1:])
    return head
