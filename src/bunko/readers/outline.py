"""Find the headings of Markdown text, and the ranges that are not Markdown (code, comments)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Heading(NamedTuple):
    """A heading: the range of its lines, its level and its text."""

    start: int
    end: int
    level: int
    source: str  # as written, on one line: ## インストール手順 ##
    title: str  # without the marks: インストール手順


class Verbatim(NamedTuple):
    """Fenced code, an HTML comment or preformatted HTML: nothing in it is a heading."""

    start: int
    end: int


# The leading newline is a literal that the regex engine searches for at memory speed; ^ is not.
# The look-ahead rejects most lines before the alternatives are tried. Each mark of a list takes memory, so their number
# is limited.
_BLOCK_START = re.compile(
    r"\n( {0,3})(?=[-#=`~<+*\d])(?:"
    r"(?P<atx>#{1,6})(?=[ \t\n]|\Z)"
    r"|(?P<underline>=++|-++)[ \t]*+(?=\n|\Z)"
    r"|(?>(?:(?:[-+*]|\d{1,9}[.)])[ \t]++){0,100})(?P<fence>`{3,}+(?=[^`\n]*+(?:\n|\Z))|~{3,}+)"
    r"|(?P<html>(?i:<(?:!--|(?:pre|script|style|textarea)(?=[\s>])|h[1-6](?=[\s>]))))"
    r")"
)
_CLOSING_FENCE = re.compile(r"\n( *)(`{3,}+|~{3,}+)[ \t]*+(?=\n|\Z)")
_END_TAG = re.compile(r"(?i)</(?:pre|script|style|textarea)>")
_HTML_HEADING = re.compile(r"(?i)<h([1-6])(?:[ \t][^>\n]*+)?>(.*?)</h\1[ \t]*>[ \t]*(?=\n|\Z)")
_HTML_TAG = re.compile(r"<[^<>]*>")
_RULE = re.compile(
    r" {0,3}(?:-[ \t]*+-[ \t]*+-[- \t]*+|_[ \t]*+_[ \t]*+_[_ \t]*+|\*[ \t]*+\*[ \t]*+\*[* \t]*+)",
)
_INDENTED_LINES = re.compile(r"(?:\n(?: {4}| {0,3}\t)[^\n]*+)*")
# Lists, quotes and tables: a line of dashes below them is a rule, not an underline.
_CONTAINER = re.compile(
    r"\n {0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t\n]|\Z)|(?=[^\n|]*+\|)[-:| \t]++(?=\n|\Z))",
)

# A heading is repeated in the context of every chunk under it, so a long one would multiply the size of a text.
_MAX_HEADING_CHARS = 300
# Why there is no heading above an underline: there is no text, or it belongs to a container or is too long.
_NO_PARAGRAPH = -1
_IN_CONTAINER = -2


def unify_line_ends(text: str) -> str:
    r"""Return the text with \n as its only line end, every other character at its old offset."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def scan_outline(lines: str, start: int = 0, end: int | None = None) -> Iterator[Heading | Verbatim]:
    """Yield headings and verbatim blocks from `start` to `end`, by the rules of CommonMark.

    `lines` is the result of `unify_line_ends`. Unlike in CommonMark, a heading has at most 300 characters: a longer one
    is a paragraph that happens to stand above a line of dashes or to begin with #.
    """
    body = "\n" + lines[start:end]
    offset = start - 1
    paragraph_limit = 0  # the newline that ends the last block: no paragraph begins before it
    container_underline = -1  # the last underline that is text of a quote or list
    position = 0
    while match := _BLOCK_START.search(body, position):
        newline = match.start()
        kind = match.lastgroup
        position = _line_end(body, match.end())
        if kind == "atx":
            if position - newline > _MAX_HEADING_CHARS:
                continue
            source = body[newline + 1 : position].strip()
            yield Heading(newline + 1 + offset, position + offset, len(match["atx"]), source, _atx_title(source))
        elif kind == "fence":
            position = _fence_end(body, match)
            yield Verbatim(newline + 1 + offset, position + offset)
        elif kind == "underline":
            paragraph = _paragraph_start(body, paragraph_limit, container_underline, newline)
            if paragraph < 0:
                # Without a paragraph above it, ---- is a rule and ends the block before it; ==== is text.
                if not _RULE.fullmatch(body, newline + 1, position):
                    container_underline = newline if paragraph == _IN_CONTAINER else container_underline
                    continue
            else:
                source = " ".join(line.strip() for line in body[paragraph + 1 : newline].split("\n"))
                level = 1 if match["underline"][0] == "=" else 2
                yield Heading(paragraph + 1 + offset, position + offset, level, source, _strip_attributes(source))
        elif match["html"][1] in "hH":
            heading = _HTML_HEADING.match(body, match.start("html"))
            if not heading or len(heading[0]) > _MAX_HEADING_CHARS:
                continue
            title = " ".join(_HTML_TAG.sub("", heading[2]).split())
            yield Heading(newline + 1 + offset, position + offset, int(heading[1]), heading[0].strip(), title)
        else:
            position = _html_end(body, match)
            yield Verbatim(newline + 1 + offset, position + offset)
        paragraph_limit = position


def _line_end(body: str, position: int) -> int:
    end = body.find("\n", position)
    return len(body) if end < 0 else end


def _fence_end(body: str, opening: re.Match[str]) -> int:
    column = opening.start("fence") - opening.start() - 1
    fence = opening["fence"]
    position = _line_end(body, opening.end())
    for closing in _CLOSING_FENCE.finditer(body, position):
        # In a list item the closing fence may be indented as far as the item's text, plus three spaces.
        if closing[2].startswith(fence) and len(closing[1]) <= column + 3:
            return closing.end()
    return len(body)


def _html_end(body: str, opening: re.Match[str]) -> int:
    start = opening.start("html")
    if opening["html"] == "<!--":
        end = body.find("-->", start + 2)
    else:
        closing = _END_TAG.search(body, start)
        end = closing.start() if closing else -1
    return len(body) if end < 0 else _line_end(body, end)


def _paragraph_start(body: str, earliest: int, container_underline: int, end: int) -> int:
    """Return the newline before the paragraph that ends at the newline `end`, or why there is none."""
    first = end
    while first > earliest:
        previous_newline = body.rfind("\n", earliest, first)
        line = body[previous_newline + 1 : first]
        if not line or line.isspace() or _RULE.fullmatch(line):
            break
        if previous_newline <= container_underline:
            return _IN_CONTAINER
        first = previous_newline
        if end - first > _MAX_HEADING_CHARS:
            return _IN_CONTAINER
    indented = _INDENTED_LINES.match(body, first, end)
    first = indented.end() if indented else first
    if first >= end:
        return _NO_PARAGRAPH
    return _IN_CONTAINER if _CONTAINER.search(body, first, end) else first


def _atx_title(source: str) -> str:
    title = source.lstrip("#").strip()
    bare = title.rstrip("#")
    if not bare or bare[-1] in " \t":
        title = bare.rstrip()
    return _strip_attributes(title)


def _strip_attributes(title: str) -> str:
    """Return a title without the anchor that many site generators allow at its end: 使い方 {#usage}."""
    opening = title.rfind("{")
    if title.endswith("}") and opening > 0 and title[opening + 1 :].lstrip()[:1] in ("#", ".", ":"):
        return title[:opening].rstrip()
    return title
