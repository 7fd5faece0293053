"""Parse the lines that begin memo entries: headings with a date, lines of a day, and the items and lines below them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from bunko.readers.memo import BadLine, Memo, oversized_entry
from bunko.text.dates import DAY_PATTERN, iso_date
from bunko.text.normalise import normalise
from bunko.text.tags import normalise_tag, parse_tags

_MAX_TITLE_CHARS = 200
_WEEKDAY = (
    r"(?:[,、]?\s?[(（](?:[\w・]{1,4}|\w{3,6}day)[)）]"
    r"|[,、]?\s+(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:(?:s|nes|rs|ur)?day)?\b|[月火水木金土日](?:曜日?)?(?!\w)))?"
)
_CLOCK = r"\d{1,2}[:：時]\d{1,2}"
# 10:00-11:30 is a span of time, 10:00:00-05:00 and 10:00 -0500 are times in a zone.
_ZONE = r"\s?Z|\s?\+\d\d:?\d\d|\s-\d{4}|(?<=:\d\d:\d\d)-\d\d:?\d\d|\s(?:UTC|GMT|JST)"
_TIME = (
    rf"(?:[T\s](?P<time>{_CLOCK}(?:[:：分]\d{{1,2}})?)(?:\.\d{{1,9}})?[分秒]?(?:\s?(?P<half>[AaPp])\.?[Mm]\b\.?)?"
    rf"(?:(?P<zone>{_ZONE})(?!\w)|\s?[-–~〜～]\s?{_CLOCK}分?)?)?"
)
_STAMP = rf"(?P<date>{DAY_PATTERN}){_WEEKDAY}{_TIME}{_WEEKDAY}"
_OPEN_BRACKET, _CLOSE_BRACKET = r"(?:[<(（【]|\[{1,2})?\s*", r"\s*(?:[>)）】]|\]{1,2})?"
_BRACKET_TAG = r"[\[［][^\[\]［］\n]{1,50}[\]］](?!\()"  # a tag, not the text of a link
_HASH_TAG = r"[#＃][^\s#＃\[\]［］:：,、]{1,50}"
_ORG_TAGS = r":(?:[^\s:]{1,50}:)+"
_BETWEEN_TAGS = r"[\s:：,、]*"
_SEPARATOR = r"[-–—|:：]?"

_DATE_LAST = re.compile(
    rf"(?P<title>.*?)\s*{_OPEN_BRACKET}{_STAMP}{_CLOSE_BRACKET}"
    rf"(?P<marks>(?:{_BETWEEN_TAGS}(?:{_BRACKET_TAG}|\[\s*\]|{_HASH_TAG}|(?<=\s){_ORG_TAGS}))*){_BETWEEN_TAGS}"
)
_DATE_FIRST = re.compile(rf"{_OPEN_BRACKET}{_STAMP}{_CLOSE_BRACKET}\s*{_SEPARATOR}\s*(?P<title>.*)")
# The date of a day is followed by nothing, by two spaces and a name, or by a name with an email address.
_ADDRESS = r"[<(][^<>()\s]+@[^<>()\s]+[>)]"
_AUTHOR = rf"(?P<author>\s*|(?:[ \t]{{2,}}|\t)\S.*|[ \t].*{_ADDRESS}\s*)"
_DAY_LINE = re.compile(_STAMP + _AUTHOR)
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTH = "|".join(re.findall("...", _MONTHS))
_MONTH_NAME = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?"
)
# March 5th, 2024 or Tuesday, 5 March 2024
_ENGLISH_DATE = re.compile(
    r"(?i)(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:(?:s|nes|rs|ur)?day)?,? )?"
    rf"\b(?:(?P<month>{_MONTH_NAME})\.? (?P<day>\d\d?)(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"
    rf"|(?P<day_first>\d\d?)(?:st|nd|rd|th)? (?P<month_second>{_MONTH_NAME})\.?,? (?P<year_last>\d{{4}}))\b"
)
# As in old changelogs: Thu Jun 20 12:55:23 1996  Jim Meyer  (meyer@example.net)
_OLD_DAY_LINE = re.compile(
    rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ](?P<month>{_MONTH})[ ]{{1,2}}(?P<day>\d\d?)"
    rf"(?:[ ](?P<time>\d\d:\d\d(?::\d\d)?))?(?:[ ][A-Z]{{3,4}})?[ ](?P<year>\d{{4}}){_AUTHOR}"
)
_AUTHOR_LINE = re.compile(rf"[ \t]+[^\s*].*{_ADDRESS}\s*")
_COLON = re.compile(r":(?=\s|\Z)|：")
_BRACKET_TAG_PATTERN = re.compile(_BRACKET_TAG)
_TAG_PATTERN = re.compile(rf"{_BRACKET_TAG}|{_HASH_TAG}|[^\s:\[\]［］#＃,、]+(?=:)")
_TAG_RUN = rf"{_BRACKET_TAG}(?:{_BETWEEN_TAGS}{_BRACKET_TAG})*[\s:：]*"
_LEADING_TAGS, _TRAILING_TAGS = re.compile(_TAG_RUN), re.compile(rf"\s*{_TAG_RUN}\Z")
_MORE_TAGS = re.compile(rf"(?:\s*{_BRACKET_TAG}\s*(?::(?=\s|\Z|[\[［])|：))+")
_TITLE_END = re.compile(r"(?:\A|\s+)[-–—|]\Z")
_ZONES = {"UTC": "Z", "GMT": "Z", "JST": "+09:00"}
# A number such as 0123-45-67 is no mistyped date.
_LIKELY_YEAR = re.compile(r"(?:18|19|20|21)\d\d|\D")


class EntryHead(NamedTuple):
    """What the first line of an entry says."""

    title: str
    date: str
    tags: tuple[str, ...] = ()
    text_start: int = 0  # offset of the text on the line without indentation; 0: it begins on the next line
    has_own_date: bool = False  # its line has a date
    is_day: bool = False  # the items of that day follow
    bad_date: str = ""  # as it is written, if there is no such day
    authors: tuple[str, ...] = ()


def parse_dated_head(text: str) -> EntryHead | None:
    """Return the head in a heading with a date at its beginning or end, or None; the date may not exist."""
    text = " ".join(text.split())  # a long run of spaces would make the patterns backtrack
    return _match_dated_head(text) or (
        _match_dated_head(_ENGLISH_DATE.sub(_number_date, text)) if _ENGLISH_DATE.search(text) else None
    )


def _match_dated_head(text: str) -> EntryHead | None:
    misdated = None
    for pattern in (_DATE_LAST, _DATE_FIRST):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        date = _stamp_date(match)
        title, title_tags = split_title_tags(match["title"])
        tags = parse_tags((*title_tags, *_mark_tags(match.groupdict().get("marks") or "")))
        head = EntryHead(_TITLE_END.sub("", title), date, tags, has_own_date=True)
        if date:
            return head
        if _LIKELY_YEAR.match(normalise(match["date"])):
            misdated = misdated or head._replace(bad_date=match["date"])
    return misdated


def parse_day_head(line: str) -> EntryHead | None:
    """Return the head of a day, to which the items below belong, or None."""
    if match := _DAY_LINE.fullmatch(line):
        date = _stamp_date(match)
        bad_date = "" if date or not _LIKELY_YEAR.match(normalise(match["date"])) else match["date"]
    elif match := _OLD_DAY_LINE.fullmatch(line):
        day = f"{match['year']}-{_month_number(match['month'])}-{match['day']}"
        date = iso_date(f"{day} {match['time']}") if match["time"] else iso_date(day)
        bad_date = "" if date else day
    else:
        return None
    if not date and not bad_date:
        return None
    author = " ".join(match["author"].split())
    return EntryHead(
        author if not re.search(f"<|{_ADDRESS}", author) else "",
        date,
        is_day=True,
        bad_date=bad_date,
        authors=(author,) if author else (),
    )


def parse_item_head(text: str, date: str) -> EntryHead:
    """Return the head of an item of a day: a title and tags up to a colon, then text."""
    colon = _COLON.search(text)
    head_end = text_start = len(text)
    if colon:
        head_end, text_start = colon.start(), colon.end()
        if text[:head_end].endswith(("]", "］")) and (more_tags := _MORE_TAGS.match(text, text_start)):
            head_end = text_start = more_tags.end()
    title, tags = split_title_tags(text[:head_end])
    # The text follows the star and a space.
    return EntryHead(title, date, tags, 2 + text_start if text[text_start:].strip() else 0)


def parse_author_line(line: str) -> str:
    """Return the further author of a day on the line below it, or an empty string."""
    return " ".join(line.split()) if _AUTHOR_LINE.fullmatch(line) else ""


def split_title_tags(title: str) -> tuple[str, tuple[str, ...]]:
    """Return a title without the [tags] at its beginning and end, and those tags."""
    tag_runs = [match for match in (_LEADING_TAGS.match(title), _TRAILING_TAGS.search(title)) if match]
    tags = parse_tags(tag for match in tag_runs for tag in bracket_tags(match[0]))
    for match in reversed(tag_runs):
        title = title[: match.start()] + title[match.end() :]
    return " ".join(title.split())[:_MAX_TITLE_CHARS], tags


def bracket_tags(text: str) -> list[str]:
    """Return the tags that are written in brackets."""
    return [tag[1:-1] for tag in _BRACKET_TAG_PATTERN.findall(text) if normalise_tag(tag[1:-1])]


def _number_date(match: re.Match[str]) -> str:
    month = _month_number(match["month"] or match["month_second"])
    return f"{match['year'] or match['year_last']}-{month}-{match['day'] or match['day_first']}"


def _month_number(name: str) -> int:
    return _MONTHS.index(name[:3].capitalize()) // 3 + 1


def _mark_tags(marks: str) -> list[str]:
    """Return the tags after a date: [a][b], #a #b or :a:b:; #12 is the number of an issue."""
    tags = [tag[1:-1] if tag[0] in "[［" else tag.lstrip("#＃") for tag in _TAG_PATTERN.findall(marks)]
    return [tag for tag in tags if normalise_tag(tag) and not (tag.isdecimal() and f"#{tag}" in marks)]


def _stamp_date(match: re.Match[str]) -> str:
    """Return the date and time of a match, the date alone if there is no such time, "" if there is no such day."""
    day = iso_date(match["date"])
    if not day or not match["time"]:
        return day
    hour, time = re.split(r"(?=[:：時])", match["time"], maxsplit=1)
    if match["half"]:
        hour = str(int(hour) % 12 + (12 if match["half"] in "Pp" else 0))
    zone = (match["zone"] or "").strip()
    return iso_date(f"{match['date']} {hour}{time}{_ZONES.get(zone, zone)}") or day


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
