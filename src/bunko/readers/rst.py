"""Read reStructuredText files, and find their section titles."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from unicodedata import east_asian_width

from bunko.readers.encoding import decode
from bunko.readers.outline import Heading, Verbatim, unify_line_ends
from bunko.readers.reader import Reader
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags
from bunko.types import Text

MEDIA_TYPE = "text/x-rst"
_MAX_TITLE_CHARS = 300
_MAX_FIELD_LINES = 50  # of the list of author, date and the like
_MIN_SURE_ADORNMENT = 4  # a shorter one underlines only a title that is as short

_ADORNMENT_CHARS = "|".join(f"[{re.escape(mark)}]++" for mark in string.punctuation)  # of one kind
_ADORNMENT = re.compile(rf"(?:{_ADORNMENT_CHARS})[ \t]*+")
_MARK = re.compile(
    rf"\n(?:(?P<adornment>{_ADORNMENT_CHARS})[ \t]*+(?=\n|\Z)"
    r"|(?P<indent>[ \t]*+)(?:\.\.[ \t]+(?i:code|code-block|sourcecode|parsed-literal)::[^\n]*"
    r"|(?!\.\.[ \t])[^\n]*::[ \t]*)(?=\n))"
)
# What begins another block than a paragraph, so that a line below it is no underline.
_OTHER_BLOCK = re.compile(
    r"[-+*•‣⁃](?:[ \t]|\Z)|:(?![: ])[^:\n]+:(?:[ \t]|\Z)|\.\.(?:[ \t]|\Z)|>>>[ \t]|\|(?:[ \t]|\Z)|__[ \t]"
)
_BLOCK_INDENT = re.compile(r"(?:\n[^\S\n]*+)*\n(?P<indent>[ \t]++)\S")
_FIELD = re.compile(r":([\w -]{1,40}):(?:[ \t]+(.*)|)\Z")
# Nikola writes its metadata as comments at the beginning of a post.
_COMMENT_FIELD = re.compile(r"\.\.[ \t]+(title|date|tags):[ \t]*(.*)\Z")


def read(text: str, encoding: str) -> Text:
    """Return the text with its title, and with the date and tags of the list of fields at its beginning."""
    lines = unify_line_ends(text)
    heading = next((mark for mark in scan_outline(lines) if isinstance(mark, Heading) and mark.title), None)
    fields = _fields(lines, 0)
    if heading and not fields:
        fields = _fields(lines, heading.end)
    date = fields.get("date") or fields.get("created") or ""
    return Text(
        text=text,
        media_type=MEDIA_TYPE,
        encoding=encoding,
        title=(fields.get("title", "") or (heading.title if heading else ""))[:_MAX_TITLE_CHARS],
        date=iso_date(date) or iso_date(date[:16]) or iso_date(date[:10]),
        tags=parse_tags(fields.get("tags") or fields.get("keywords") or ""),
    )


def scan_outline(lines: str, start: int = 0, end: int | None = None) -> Iterator[Heading | Verbatim]:
    """Yield section titles and literal blocks, by the rules of docutils.

    The style of a title (the character, and whether there is a line above it too) that comes first is the first level.
    """
    body = "\n" + lines[start:end]
    offset = start - 1
    styles: list[tuple[str, bool]] = []
    limit = 0  # the newline that ends the last block: no title begins before it
    position = 0
    while mark := _MARK.search(body, position):
        newline = mark.start()
        position = mark.end()
        if mark["adornment"] is None:
            if (block_end := _literal_end(body, mark)) > position:
                yield Verbatim(body.find("\n", position) + 1 + offset, block_end + offset)
                position = limit = block_end
            continue
        title_start = body.rfind("\n", limit, newline) if newline > limit else -1
        if title_start < 0:
            continue
        title = body[title_start + 1 : newline]
        over_start = body.rfind("\n", limit, title_start) if title_start > limit else -1
        above = body[over_start + 1 : title_start] if over_start >= 0 else ""
        has_overline = above.rstrip() == mark["adornment"] and _ADORNMENT.fullmatch(above) is not None
        if not _is_title(
            title, len(mark["adornment"]), above, has_overline=has_overline, at_limit=title_start == limit
        ):
            continue
        style = (mark["adornment"][0], has_overline)
        if style not in styles:
            styles.append(style)
        heading_start = over_start if has_overline else title_start
        words = " ".join(title.split())[:_MAX_TITLE_CHARS]
        yield Heading(heading_start + 1 + offset, position + offset, styles.index(style) + 1, words, words)
        limit = position


def _is_title(title: str, adornment_chars: int, above: str, *, has_overline: bool, at_limit: bool) -> bool:
    if not title.strip() or _ADORNMENT.fullmatch(title) or len(title) > 2 * _MAX_TITLE_CHARS:
        return False
    if not has_overline and (title[0].isspace() or _OTHER_BLOCK.match(title)):
        return False
    # A title is a paragraph of one line: above it is nothing, a block that ends there, or its own overline.
    if not (has_overline or at_limit or not above.strip() or above[0].isspace() or above.startswith(".. ")):
        return False
    return adornment_chars >= _MIN_SURE_ADORNMENT or _display_width(title.rstrip()) <= adornment_chars


def _display_width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _literal_end(body: str, mark: re.Match[str]) -> int:
    """Return the end of the indented lines that follow, or the end of the mark if there are none."""
    first = _BLOCK_INDENT.match(body, mark.end())
    if not first or len(first["indent"]) <= len(mark["indent"]):
        return mark.end()
    outer_line = re.compile(rf"\n(?![^\S\n]*+(?:\n|\Z)|[ \t]{{{len(mark['indent']) + 1}}})").search(body, mark.end())
    block_end = outer_line.start() if outer_line else len(body)
    line_end = body.find("\n", mark.end() + len(body[mark.end() : block_end].rstrip()))
    return len(body) if line_end < 0 else line_end


def _fields(lines: str, start: int) -> dict[str, str]:
    """Return the fields of the list at a position, by their names in lower case."""
    fields: dict[str, str] = {}
    name = ""
    block = lines[start : start + 100 * _MAX_FIELD_LINES].lstrip("\n")
    for line in block.split("\n")[:_MAX_FIELD_LINES]:
        if match := _FIELD.match(line) or _COMMENT_FIELD.match(line):
            name = match[1].strip().casefold()
            fields[name] = (match[2] or "").strip()
        elif name and line[:1] in (" ", "\t") and line.strip():
            fields[name] = f"{fields[name]} {line.strip()}".strip()
        elif (line.strip() and not line.startswith(".. ")) or (not line.strip() and fields):
            break
    return fields


def read_file(data: bytes) -> Text:
    """Read a file in any encoding; raise SourceError if it is not text."""
    return read(*decode(data))


READER = Reader(
    read_file, suffixes=(".rst", ".rest"), media_type=MEDIA_TYPE, default_suffixes=(".rst",), label="reStructuredText"
)
