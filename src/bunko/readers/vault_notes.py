"""Read the additions of Obsidian and Logseq to Markdown: tags in the text, other names of a note, and properties."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from bunko.readers.markdown import parse_front_matter
from bunko.readers.outline import Verbatim, scan_outline, unify_line_ends
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags
from bunko.types import Text

_MAX_ALIASES = 50
_MAX_ALIAS_CHARS = 200
# A tag follows a blank or begins a line; it ends at a blank or at punctuation other than - _ and /.
_INLINE_TAG = re.compile(
    r"(?<!\S)#(?:\[\[([^\[\]\n]{1,100})\]\]|([^\s#!-,.:-@\[-^`{-~、。，．「」『』（）！？：；…・]{1,100}))"
)
_INLINE_CODE = re.compile(r"(?<!`)(`++)[^\n]{1,300}?(?<!`)\1(?!`)")
_COMMENT = re.compile(r"%%.{0,10000}?%%", re.DOTALL)
# The properties of a page in Logseq are its first lines.
_PROPERTIES = re.compile(r"(?:[ \t]*(?:-[ \t]+)?[\w./-]+::(?:[ \t][^\n]*)?(?:\n|\Z))+")
_PROPERTY = re.compile(r"(?m)^[ \t]*(?:-[ \t]+)?([\w./-]+)::[ \t]*([^\n]*)$")
_LINK_MARKS = re.compile(r"#?\[\[|\]\]")


def add_metadata(text: Text) -> Text:
    """Return a note with its properties, the tags inside of its text, and its other names."""
    lines = unify_line_ends(text.text)
    properties, body_start = _properties(lines, text.body_start)
    tags = parse_tags(
        (*text.tags, *_split(properties.get("tags", "")), *_inline_tags(lines, body_start)),
    )
    return replace(
        text,
        title=" ".join(properties.get("title", "").split()) or text.title,
        date=text.date or iso_date(_LINK_MARKS.sub("", properties.get("date", ""))),
        tags=tuple(dict.fromkeys(name for tag in tags for name in _with_parents(tag))),
        body_start=body_start,
        aliases=aliases(text.text),
    )


def aliases(text: str) -> tuple[str, ...]:
    """Return the other names of a note, from its front matter or its properties."""
    lines = unify_line_ends(text)
    values, body_start = parse_front_matter(lines)
    properties, _ = _properties(lines, body_start)
    names: list[str] = []
    for value in (values.get("aliases", ""), values.get("alias", ""), properties.get("alias", "")):
        names += _split(value) if isinstance(value, str) else value
    plain_names = (" ".join(name.split()) for name in names[:_MAX_ALIASES])
    return tuple(dict.fromkeys(name for name in plain_names if 0 < len(name) <= _MAX_ALIAS_CHARS))


def _properties(lines: str, start: int) -> tuple[dict[str, str], int]:
    """Return the properties of a page by their names in lower case, and where the text after them begins."""
    first = start + len(lines[start:]) - len(lines[start:].lstrip("\n"))
    block = _PROPERTIES.match(lines, first)
    if not block:
        return {}, start
    return {name.casefold(): value.strip() for name, value in _PROPERTY.findall(block[0])}, block.end()


def _inline_tags(lines: str, start: int) -> list[str]:
    tags: list[str] = []
    position = start
    for mark in scan_outline(lines, start):
        if isinstance(mark, Verbatim):
            tags += _tags_of(lines[position : mark.start])
            position = mark.end
    return tags + _tags_of(lines[position:])


def _tags_of(text: str) -> list[str]:
    if "#" not in text:
        return []
    visible = _COMMENT.sub(" ", _INLINE_CODE.sub(" ", text))
    names = (match[1] or match[2].strip("/") for match in _INLINE_TAG.finditer(visible))
    # A number is the number of something, such as an issue.
    return [tag for tag in names if not tag.isdecimal()]


def _with_parents(tag: str) -> Iterable[str]:
    """Return a tag such as project/alpha, and before it the tags that contain it."""
    parts = tag.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1) if parts[count - 1])


def _split(value: str) -> list[str]:
    """Return names that are separated by commas, without the marks of links and tags."""
    return [_LINK_MARKS.sub("", name).strip().lstrip("#") for name in re.split("[,，、]", value) if name.strip()]
