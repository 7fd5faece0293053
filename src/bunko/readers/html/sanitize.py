"""Limit the nesting of HTML, so that it can be parsed in time proportional to its length.

The rules of HTML make some input expensive: unclosed elements are searched at every tag, unclosed <b> are reopened
in every paragraph, attributes are compared with each other. Real pages come nowhere near these limits; beyond them
tags are removed, never text.
"""

from __future__ import annotations

import re

_FEW_TAGS = 1000  # tags
_SMALL_PAGE_CHARS = 50_000  # characters; less than this cannot hold enough to matter
_MAX_DEPTH = 400  # nested elements; browsers stop at 512
_MAX_REOPENED_ELEMENTS = 300_000  # unclosed formatting elements times tags
_MAX_TAG_CHARS = 4000  # characters

_TAG_START = re.compile(r"<(?:(?P<comment>!--)|(?P<close>/?)(?P<name>[a-zA-Z][^\s/>]*+))")
_TAG_END_OR_VALUE = re.compile(r">|=\s*+(?:\"[^\"]*+\"|'[^']*+')")
_VOID_TAGS = frozenset("area base br col embed hr img input link meta source track wbr param".split())
_RAW_TEXT_TAGS = frozenset("script style textarea title xmp iframe noembed noframes".split())
_ATTRIBUTE = re.compile(r"[^\s/>=\"'][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>]*+))?")
_FORMATTING_TAGS = frozenset("b big code em font i s small strike strong tt u nobr".split())
_FORMATTING_TAG = re.compile(rf"(?i)</?(?:{'|'.join(sorted(_FORMATTING_TAGS))})(?:[\s/][^>]*+)?>")
# Such an element ends the one before it, since their end tags are optional.
_OPTIONAL_END_TAGS = frozenset("p li dt dd tr td th option optgroup thead tbody tfoot colgroup".split())


def count_tags(html: str) -> int:
    """Return the number of tags and attributes: a tree takes about 500 bytes and 5 µs for each."""
    count = position = 0
    while match := _TAG_START.search(html, position):
        count += 1
        position = match.end()
        if match["name"] and not html.startswith(">", position):
            position = _find_tag_end(html, position)
            count += len(_ATTRIBUTE.findall(html, match.end(), position))
    return count


def sanitize_html(html: str) -> str:
    """Return the page without the tags beyond the limits."""
    if len(html) < _SMALL_PAGE_CHARS and html.count("<") < _FEW_TAGS:
        return html
    parts: list[str] = []
    start = position = 0
    open_tags: list[str] = []
    unclosed: dict[str, int] = {}
    tag_count = max_unclosed = 0
    while match := _TAG_START.search(html, position):
        position = match.end()
        if match["comment"]:
            end = html.find("-->", position)
            if end < 0:
                break
            position = end + 3
            continue
        position = _find_tag_end(html, position)
        name = match["name"].lower()
        if match["close"]:
            if unclosed.get(name):
                unclosed[name] -= 1
            _close_tag(open_tags, name)
            continue
        replacement = None
        tag_count += 1
        if name in _FORMATTING_TAGS:
            unclosed[name] = unclosed.get(name, 0) + 1
            max_unclosed = max(max_unclosed, sum(unclosed.values()))
        elif name not in _VOID_TAGS and name not in _RAW_TEXT_TAGS and not _open_tag(open_tags, name):
            replacement = " "
        if replacement is None and position - match.start() > _MAX_TAG_CHARS:
            replacement = f"<{name}>"
        if replacement is not None:
            parts += (html[start : match.start()], replacement)
            start = position
        if name in _RAW_TEXT_TAGS:
            position = _find_end_tag(html, name, position)
            if position < 0:
                break
    if parts:
        html = "".join((*parts, html[start:]))
    return _FORMATTING_TAG.sub("", html) if max_unclosed * tag_count > _MAX_REOPENED_ELEMENTS else html


def _find_tag_end(html: str, position: int) -> int:
    """Return the end of the tag whose name ends at `position`: a > in the value of an attribute does not end it."""
    while match := _TAG_END_OR_VALUE.search(html, position):
        position = match.end()
        if html[position - 1] == ">":
            return position
    return len(html)


def _find_end_tag(html: str, name: str, position: int) -> int:
    """Return the start of the end tag of an element with raw text; -1 if there is none."""
    end = html.find("</", position)
    closing = re.compile(rf"(?i)</{re.escape(name)}").search(html, end) if end >= 0 else None
    return closing.start() if closing else -1


def _open_tag(open_tags: list[str], name: str) -> bool:
    """Add an element to the open ones; return False if it is nested too deeply."""
    if open_tags and open_tags[-1] == name and name in _OPTIONAL_END_TAGS:
        open_tags.pop()
    if len(open_tags) >= _MAX_DEPTH:
        return False
    open_tags.append(name)
    return True


def _close_tag(open_tags: list[str], name: str) -> None:
    # Searching only the innermost 30 keeps the pass linear; tags left open by that only reach the limit sooner.
    for index in range(len(open_tags) - 1, max(-1, len(open_tags) - 30), -1):
        if open_tags[index] == name:
            del open_tags[index:]
            return
