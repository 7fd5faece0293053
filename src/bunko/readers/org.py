"""Read Org files, and find their headlines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bunko.readers.encoding import decode
from bunko.readers.outline import Heading, Verbatim, unify_line_ends
from bunko.readers.reader import Reader
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags
from bunko.types import Text

MEDIA_TYPE = "text/org"
_MAX_HEADER_CHARS = 64 * 1024  # keywords of a file stand at its beginning
_MAX_TITLE_CHARS = 300
# The states that people use without declaring them; a file adds its own with #+TODO.
_TODO_STATES = frozenset(
    "TODO DONE NEXT WAITING WAIT HOLD STARTED IN-PROGRESS CANCELLED CANCELED SOMEDAY MAYBE PROJ".split()
)
# Tags that steer Org itself and say nothing about the text.
_TECHNICAL_TAGS = frozenset(("archive", "noexport", "export", "ignore", "toc"))

_MARK = re.compile(
    r"\n(?:(?P<stars>\*+)[ \t]+(?P<headline>[^\n]*)"
    r"|[ \t]*#\+(?P<edge>(?i:begin|end))_(?P<block>(?i:src|example|export|comment))(?![^\s\n])[^\n]*)"
)
_KEYWORD = re.compile(r"(?im)^[ \t]*#\+(title|date|filetags|todo|seq_todo|typ_todo):[ \t]*(.*)$")
_HEADER_LINES = re.compile(
    r"(?i)(?:[^\S\n]*\n|[ \t]*#\+(?!begin_|caption)[\w-]+:[^\n]*(?:\n|\Z)|#(?:[ \t][^\n]*)?(?:\n|\Z)"
    r"|[ \t]*:properties:[^\S\n]*\n(?:[ \t]*:[^\s:]+:[^\n]*\n)*[ \t]*:end:[^\S\n]*(?:\n|\Z))*"
)
_PRIORITY = re.compile(r"\[#[A-Za-z0-9]{1,2}\][ \t]*")
_COOKIE = re.compile(r"\[\d*(?:/\d*|%)\]")
_TAGS = re.compile(r"(?:^|[ \t]):([\w@#%]+(?::[\w@#%]+)*):[ \t]*\Z")
_LINK = re.compile(r"\[\[[^\[\]\n]*\]\[([^\[\]\n]*)\]\]")
_TIMESTAMP = re.compile(r"[<\[]?(\d{4}-\d\d-\d\d)(?:[ \t]+[^\W\d]+\.?)?(?:[ \t]+(\d\d?:\d\d))?")


def read(text: str, encoding: str) -> Text:
    """Return the text with title, date and tags; the keywords at its beginning are not part of the body."""
    lines = unify_line_ends(text)
    header = lines[:_MAX_HEADER_CHARS]
    titles: list[str] = []
    tags: list[str] = []
    date = ""
    for key, value in _KEYWORD.findall(header):
        match key.casefold():
            case "title":
                titles.append(value.strip())
            case "date":
                date = date or _timestamp_date(value)
            case "filetags":
                tags += re.split(r"[:\s]+", value)
    first_headline = ""
    for mark in scan_outline(lines):
        if isinstance(mark, Heading):
            first_headline = first_headline or mark.title
            if match := _TAGS.search(mark.source):
                tags += match[1].split(":")
    body = _HEADER_LINES.match(header)
    return Text(
        text=text,
        media_type=MEDIA_TYPE,
        encoding=encoding,
        title=" ".join(" ".join(titles).split())[:_MAX_TITLE_CHARS] or first_headline,
        date=date,
        tags=tuple(tag for tag in parse_tags(tags) if tag not in _TECHNICAL_TAGS),
        body_start=body.end() if body else 0,
    )


def scan_outline(lines: str, start: int = 0, end: int | None = None) -> Iterator[Heading | Verbatim]:
    """Yield headlines and blocks of code and examples, in order.

    As in Org itself, a line with stars is a headline wherever it stands, even between #+BEGIN_SRC and #+END_SRC.
    """
    body = "\n" + lines[start:end]
    offset = start - 1
    states = _TODO_STATES | _declared_states(lines[:_MAX_HEADER_CHARS])
    block_name, block_start = "", 0  # of a block whose end has not come yet
    for mark in _MARK.finditer(body):
        line_start = mark.start() + 1 + offset
        if mark["stars"]:
            block_name = ""
            source = body[mark.start() + 1 : mark.end()].strip()
            title = _headline_title(mark["headline"], states)
            yield Heading(line_start, mark.end() + offset, len(mark["stars"]), source[:_MAX_TITLE_CHARS], title)
        elif mark["edge"].casefold() == "begin":
            if not block_name:
                block_name, block_start = mark["block"].casefold(), line_start
        elif block_name == mark["block"].casefold():
            yield Verbatim(block_start, mark.end() + offset)
            block_name = ""


def _headline_title(headline: str, states: frozenset[str]) -> str:
    """Return the words of a headline, without its state, priority, tags and counters."""
    title = headline.strip()[: 2 * _MAX_TITLE_CHARS]
    if (tags := _TAGS.search(title)) and title[: tags.start()].strip():
        title = title[: tags.start()]
    state, _, rest = title.partition(" ")
    if state in states and rest.strip():
        title = rest.lstrip()
    title = _PRIORITY.sub("", title, count=1) if title.startswith("[#") else title
    title = _LINK.sub(r"\1", _COOKIE.sub("", title))
    return " ".join(title.split())[:_MAX_TITLE_CHARS]


def _declared_states(header: str) -> frozenset[str]:
    """Return the states that #+TODO: OPEN(o) | CLOSED(c) declares."""
    if "_todo:" not in (lowered := header.casefold()) and "#+todo:" not in lowered:
        return frozenset()
    return frozenset(
        word.partition("(")[0]
        for key, value in _KEYWORD.findall(header)
        if key.casefold().endswith("todo")
        for word in value.split()
        if word != "|"
    )


def _timestamp_date(value: str) -> str:
    """Return a timestamp such as <2024-01-15 Mon 09:30> as ISO 8601."""
    match = _TIMESTAMP.match(value.strip())
    if not match:
        return iso_date(value.strip())
    day, clock = match.groups()
    return iso_date(f"{day}T{clock}:00") if clock else iso_date(day)


def read_file(data: bytes) -> Text:
    """Read a file in any encoding; raise SourceError if it is not text."""
    return read(*decode(data))


READER = Reader(read_file, suffixes=(".org",), media_type=MEDIA_TYPE, default_suffixes=(".org",), label="Org")
