"""HTML of any kind comes in; goes out such that a parser needs time in proportion to its length.

The rules of HTML make some input expensive: unclosed elements are looked through at every tag, unclosed <b> are
opened again in every paragraph, attributes are compared with each other. Real pages come nowhere near these limits,
and beyond them tags are left out, never text.
"""

from __future__ import annotations

import re

_FEW_TAGS = 1000  # tags
_SMALL_PAGE_CHARS = 50_000  # characters; less than this cannot hold enough to matter
_MAX_DEPTH = 400  # elements in each other; browsers stop at 512
_MAX_REOPENED_ELEMENTS = (
    300_000  # elements that unclosed formatting may come to, at most: so many of them in so many tags
)
_MAX_TAG_CHARS = 4000  # characters

_TAG = re.compile(
    r"<(?:(?P<comment>!--)|(?P<close>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    r"(?:[^>\"'=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')?+|[\"'])*+(?:>|\Z))"
)
_VOID_TAGS = frozenset("area base br col embed hr img input link meta source track wbr param".split())
_RAW_TEXT_TAGS = frozenset("script style textarea title xmp iframe noembed noframes".split())
_FORMATTING_TAGS = frozenset("b big code em font i s small strike strong tt u nobr".split())
_FORMATTING_TAG = re.compile(rf"(?i)</?(?:{'|'.join(sorted(_FORMATTING_TAGS))})(?:[\s/][^>]*+)?>")
# An element of these ends the one before it, as people leave their end tags out.
_OPTIONAL_END_TAGS = frozenset("p li dt dd tr td th option optgroup thead tbody tfoot colgroup".split())


def sanitize_html(html: str) -> str:
    """Return the page, without the tags that go beyond the limits."""
    if len(html) < _SMALL_PAGE_CHARS and html.count("<") < _FEW_TAGS:
        return html
    kept: list[str] = []
    start = position = 0
    open_tags: list[str] = []
    unclosed: dict[str, int] = {}
    tags = most = 0
    while tag := _TAG.search(html, position):
        position = tag.end()
        if tag["comment"]:
            end = html.find("-->", position)
            if end < 0:
                break
            position = end + 3
            continue
        name = tag["name"].lower()
        if tag["close"]:
            if unclosed.get(name):
                unclosed[name] -= 1
            _close_tag(open_tags, name)
            continue
        replaced = None
        tags += 1
        if name in _FORMATTING_TAGS:
            unclosed[name] = unclosed.get(name, 0) + 1
            most = max(most, sum(unclosed.values()))
        elif name not in _VOID_TAGS and name not in _RAW_TEXT_TAGS:
            if open_tags and open_tags[-1] == name and name in _OPTIONAL_END_TAGS:
                open_tags.pop()
            if len(open_tags) >= _MAX_DEPTH:
                replaced = " "
            else:
                open_tags.append(name)
        if replaced is None and position - tag.start() > _MAX_TAG_CHARS:
            replaced = f"<{name}>"
        if replaced is not None:
            kept += (html[start : tag.start()], replaced)
            start = position
        if name in _RAW_TEXT_TAGS:
            end = html.find("</", position)
            closing = re.compile(rf"(?i)</{re.escape(name)}").search(html, end) if end >= 0 else None
            if closing is None:
                break
            position = closing.start()
    if kept:
        html = "".join((*kept, html[start:]))
    return _FORMATTING_TAG.sub("", html) if most * tags > _MAX_REOPENED_ELEMENTS else html


def _close_tag(open_tags: list[str], name: str) -> None:
    # Looking only so far up keeps the pass linear; what stays open by it only makes the limit come sooner.
    for at in range(len(open_tags) - 1, max(-1, len(open_tags) - 30), -1):
        if open_tags[at] == name:
            del open_tags[at:]
            return
