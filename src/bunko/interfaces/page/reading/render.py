"""Render a part of a document by the format that it has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from bunko.interfaces.page.reading.markdown_text import MarkdownText, Syntax
from bunko.interfaces.page.reading.marking import Marking
from bunko.interfaces.page.reading.org import escape_inline, org_to_markdown
from bunko.interfaces.page.reading.parts import Part, Parts
from bunko.interfaces.page.reading.sanitise import sanitise
from bunko.readers import mail, notebook, org, places, rst
from bunko.readers.code import LANGUAGES_BY_TYPE
from bunko.runtime.package_errors import package_errors
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from bunko.interfaces.page.reading.links import Links
    from bunko.types.records import StoredDocument

# A longer line is shown around what was found in it, or its beginning.
_LINE_CHARS, _CHARS_BEFORE_HIT = 20_000, 2000
_MAX_DEFINITIONS = 2000
_DEFINITION = re.compile(r" {0,3}\[[^\]\n]{1,200}\]:")
_SHEET = re.compile(r"## .+!([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}\d{1,7}")
_MAIL_HEADER = re.compile(r"(Subject|From|To|Cc|Date): (.*)")
_PLAIN_SUFFIXES = (".txt", ".text")
_PROSE_TYPES = ("text/markdown", "text/html", org.MEDIA_TYPE, rst.MEDIA_TYPE)
_MARKDOWN = Syntax(has_html=True, has_site_marks=True, has_wiki_links=True)
_NOTEBOOK = Syntax(has_html=True)
_ORG = Syntax(has_wiki_links=True, off=("lheading", "reference"))
_MAIL = Syntax(keeps_line_ends=True, off=("code", "lheading", "reference", "table"))
# What readers write: what looks like HTML in it is text, and indented lines are no code.
_EXTRACTED = Syntax(off=("code", "reference"))


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A part of a document as markup."""

    html: Markup
    shows_hit: bool
    is_cut: bool  # a long line is shown in part


def is_prose(document: StoredDocument) -> bool:
    """Return whether people want to read a document, and not its source."""
    media_type = document.media_type
    if media_type == "text/plain":
        name = document.uri.rpartition("/")[2].lower()  # an entry of a file has # in it
        return "#" in name or "." not in name or name.endswith(_PLAIN_SUFFIXES)
    return media_type in _PROSE_TYPES or media_type.startswith(("application/", "message/"))


def render_part(
    document: StoredDocument,
    parts: Parts,
    part: Part,
    marking: Marking,
    links: Links,
    *,
    title: str,
    table_label: str,
    at: tuple[int, int],
) -> RenderedPart:
    """Return a part as markup; `at` are the line and the column that were found."""
    lines = [*part.opening, *parts.lines[part.start : part.end]]
    numbers = [*(-(part.opening_line + index) - 1 for index in range(len(part.opening))), *range(part.start, part.end)]
    is_cut = max(map(len, lines), default=0) > _LINE_CHARS
    if is_cut:
        lines = [_cut(line, at[1] if number == at[0] else 0) for line, number in zip(lines, numbers, strict=True)]
    lines = [remove_hidden_chars(line) for line in lines]
    title = title if part.start == parts.body else ""
    if document.media_type == rst.MEDIA_TYPE:
        html = _render_rst(document, parts, lines, numbers, marking, links, title, table_label)
    elif document.media_type == "text/plain" or document.media_type in LANGUAGES_BY_TYPE:
        html = _render_plain(lines, numbers, marking, is_code=document.media_type != "text/plain")
    else:
        text = _markdown_text(document, parts, lines, numbers)
        text.title, text.table_label = title, table_label
        with package_errors("markdown-it-py"):
            from bunko.interfaces.page.reading.markdown import render_markdown
        html = render_markdown(text, marking, links)
    return RenderedPart(html, marking.shows_hit, is_cut)


def _cut(line: str, column: int) -> str:
    start = max(min(column - _CHARS_BEFORE_HIT, len(line) - _LINE_CHARS), 0)
    return line[start : start + _LINE_CHARS]


def _markdown_text(document: StoredDocument, parts: Parts, lines: list[str], numbers: list[int]) -> MarkdownText:
    match document.media_type:
        case "text/markdown":
            definitions = [line for line in parts.lines if line[:4].lstrip()[:1] == "[" and _DEFINITION.match(line)]
            return MarkdownText(lines, numbers, _MARKDOWN, definitions="\n".join(definitions[:_MAX_DEFINITIONS]))
        case org.MEDIA_TYPE:
            return MarkdownText(*org_to_markdown(lines, numbers, parts.headings), _ORG)
        case notebook.MEDIA_TYPE:
            return MarkdownText(lines, numbers, _NOTEBOOK)
        case mail.MEDIA_TYPE:
            return MarkdownText(*_mail_with_head(lines, numbers), _MAIL)
        case places.WORKBOOK:
            return MarkdownText(lines, numbers, _EXTRACTED, cells=_cells(parts, numbers))
        case _:
            return MarkdownText(lines, numbers, _EXTRACTED)


def _mail_with_head(lines: list[str], numbers: list[int]) -> tuple[list[str], list[int]]:
    """Return a message with the names of its headers in bold, in front of a rule."""
    if numbers[0] != 0:
        return lines, numbers
    count = next((index for index, line in enumerate(lines) if not _MAIL_HEADER.fullmatch(line)), len(lines))
    head = [
        f"**{match[1]}:** {escape_inline(match[2])}" for match in map(_MAIL_HEADER.fullmatch, lines[:count]) if match
    ]
    rule = ["", "---"] if head else []
    return [*head, *rule, *lines[count:]], [*numbers[:count], *[-1] * len(rule), *numbers[count:]]


def _cells(parts: Parts, numbers: list[int]) -> dict[int, tuple[int, int]]:
    """Return row and column of the first cell of each row of a sheet, by its line."""
    cells: dict[int, tuple[int, int]] = {}
    wanted = {number if number >= 0 else -number - 1 for number in numbers}
    for heading in parts.headings.values():
        sheet = _SHEET.fullmatch(heading.source)
        if sheet is None or heading.line > max(wanted):
            continue
        row, column = int(sheet[2]), sum((ord(letter) - 64) * 26**power for power, letter in enumerate(sheet[1][::-1]))
        line = heading.line + 1
        while line < len(parts.lines) and not parts.lines[line].strip():
            line += 1
        while line < len(parts.lines) and parts.lines[line].startswith("|"):
            if not places.is_table_rule(parts.lines[line]):
                cells.update({line: (row, column)} if line in wanted else {})
                row += 1
            line += 1
    return cells


def _render_rst(
    document: StoredDocument,
    parts: Parts,
    lines: list[str],
    numbers: list[int],
    marking: Marking,
    links: Links,
    title: str,
    table_label: str,
) -> Markup:
    with package_errors("docutils"):
        from bunko.interfaces.page.reading.rst import find_definitions, render_rst
    if numbers[0] < 0:  # inside of a block of code
        lines, numbers = ["::", "", *lines[1:]], [-1, -1, *numbers[1:]]
    try:
        return render_rst(
            lines, numbers, parts.headings, find_definitions("\n".join(parts.lines)), marking, links,
            title=title, table_label=table_label,
        )  # fmt: skip
    except RecursionError:  # it nests so deeply that nobody wrote it to be read
        return _render_plain(lines, numbers, marking, is_code=True)


def _render_plain(lines: list[str], numbers: list[int], marking: Marking, *, is_code: bool) -> Markup:
    """Return text with its line ends and blanks, a paragraph for each block of lines."""
    if is_code:
        return sanitise(marking.code(lines, numbers), marking.word, lambda _: None)
    html, block = [], list[int]()
    for index in range(len(lines) + 1):
        if index < len(lines) and lines[index].strip():
            block.append(index)
        elif block:
            written = (
                marking.anchor(numbers[line]) + str(marking.text(lines[line], is_hit=marking.is_hit(numbers[line])))
                for line in block
            )
            is_hit = marking.is_hit(numbers[block[0]], numbers[block[-1]])
            tag = marking.tag("p", css=" ".join(["plain", "hit"][: 1 + is_hit]))
            html.append(f"{tag}{chr(10).join(written)}</p>")
            block = []
    return sanitise("\n".join(html), marking.word, lambda _: None)
