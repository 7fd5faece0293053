"""Markdown text comes in, its headings and the stretches that are not Markdown (code, comments) go out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Heading(NamedTuple):
    """A heading: where its lines stand, how deep it is, and what it says."""

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
# The look-ahead sorts most lines out before the alternatives are tried.
_BLOCK_START = re.compile(
    r"\n( {0,3})(?=[-#=`~<+*\d])(?:"
    r"(?P<atx>#{1,6})(?=[ \t\n]|\Z)"
    r"|(?P<underline>=++|-++)[ \t]*+(?=\n|\Z)"
    r"|(?P<item>(?:(?:[-+*]|\d{1,9}[.)])[ \t]++)*+)(?P<fence>`{3,}+(?=[^`\n]*+(?:\n|\Z))|~{3,}+)"
    r"|(?P<html>(?i:<(?:!--|(?:pre|script|style|textarea)(?=[\s>])|h[1-6](?=[\s>]))))"
    r")"
)
_CLOSING_FENCE = re.compile(r"\n( *)(`{3,}+|~{3,}+)[ \t]*+(?=\n|\Z)")
_END_TAG = re.compile(r"(?i)</(?:pre|script|style|textarea)>")
_HTML_HEADING = re.compile(r"(?i)<h([1-6])(?:[ \t][^>\n]*+)?>(.*?)</h\1[ \t]*>[ \t]*(?=\n|\Z)")
_HTML_TAG = re.compile(r"<[^>]*>")
_RULE = re.compile(r" {0,3}([-_*])(?:[ \t]*+\1){2,}+[ \t]*+")
_INDENTED_LINES = re.compile(r"(?:\n(?: {4}| {0,3}\t)[^\n]*+)*+")
# Lists, quotes and tables: a line of dashes below them is a rule, not an underline.
_CONTAINER = re.compile(
    r"\n {0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t\n]|\Z)|(?=[^\n|]*+\|)[-:| \t]++(?=\n|\Z))",
)

_NO_PARAGRAPH, _IN_CONTAINER = (
    -1,
    -2,
)  # why no paragraph stands above an underline: there is no text, or it is a container's


def unify_line_ends(text: str) -> str:
    r"""Return the text with \n as its only line end, every other character at its old place."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


def scan_outline(lines: str, start: int = 0) -> Iterator[Heading | Verbatim]:
    """Yield what stands from `start` on, in order, by the rules of CommonMark; `lines` comes from `unify`."""
    body = "\n" + lines[start:]
    shift = start - 1
    floor = 0  # the newline after the last line that no paragraph can reach back over
    stuck = -1  # an underline that turned out to be text of a quote or list
    position = 0
    while match := _BLOCK_START.search(body, position):
        at = match.start()
        kind = match.lastgroup
        position = _line_end(body, match.end())
        if kind == "atx":
            source = body[at + 1 : position].strip()
            yield Heading(at + 1 + shift, position + shift, len(match["atx"]), source, _atx_title(source))
        elif kind == "fence":
            position = _fence_end(body, match)
            yield Verbatim(at + 1 + shift, position + shift)
        elif kind == "underline":
            first = _paragraph_start(body, floor, stuck, at)
            if first < 0:
                # Where no paragraph stands above, ---- is a rule and ends what came before; ==== is text.
                if not _RULE.fullmatch(body, at + 1, position):
                    stuck = at if first == _IN_CONTAINER else stuck
                    continue
            else:
                source = " ".join(line.strip() for line in body[first + 1 : at].split("\n"))
                level = 1 if match["underline"][0] == "=" else 2
                yield Heading(first + 1 + shift, position + shift, level, source, _strip_attributes(source))
        elif match["html"][1] in "hH":
            heading = _HTML_HEADING.match(body, match.start("html"))
            if not heading:
                continue
            title = " ".join(_HTML_TAG.sub("", heading[2]).split())
            yield Heading(at + 1 + shift, position + shift, int(heading[1]), heading[0].strip(), title)
        else:
            position = _html_end(body, match)
            yield Verbatim(at + 1 + shift, position + shift)
        floor = position


def _line_end(body: str, position: int) -> int:
    end = body.find("\n", position)
    return len(body) if end < 0 else end


def _fence_end(body: str, opening: re.Match[str]) -> int:
    column = opening.start("fence") - opening.start() - 1
    fence = opening["fence"]
    position = _line_end(body, opening.end())
    for closing in _CLOSING_FENCE.finditer(body, position):
        # In a list item the closing fence may stand as deep as the item's text, and three more.
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
    """Return the newline before the paragraph that ends at the newline `at`, or why there is none."""
    first = end
    while first > earliest:
        before = body.rfind("\n", earliest, first)
        line = body[before + 1 : first]
        if not line or line.isspace() or _RULE.fullmatch(line):
            break
        if before <= container_underline:
            return _IN_CONTAINER
        first = before
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
    """Drop the anchor that many site generators allow at the end: 使い方 {#usage}."""
    opening = title.rfind("{")
    if title.endswith("}") and opening > 0 and title[opening + 1 :].lstrip()[:1] in ("#", ".", ":"):
        return title[:opening].rstrip()
    return title
