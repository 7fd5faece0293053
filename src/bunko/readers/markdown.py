"""Read Markdown files and their front matter."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

from bunko.readers import outline
from bunko.readers.encoding import decode
from bunko.readers.reader import Reader
from bunko.runtime.package_errors import package_errors
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags
from bunko.types import Text

_MAX_FRONT_MATTER_CHARS = 64 * 1024  # characters; front matter is a few lines, anything longer is something else
_MAX_DEPTH = 50  # levels of nesting; three are common
_YAML_BLOCK = re.compile(r"---[^\S\n]*\n((?s:.*?)(?<=\n))(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)")
_TOML_BLOCK = re.compile(r"\+\+\+[^\S\n]*\n((?s:.*?)(?<=\n))\+\+\+[^\S\n]*(?:\n|\Z)")
_TABLE_ROW = re.compile(r"\|.*\|")  # above --- it is a heading, but no title
_FRONT_MATTER_KEYS = ("title", "date", "tags", "aliases", "alias")
_LIST_KEYS = ("tags", "aliases", "alias")
_KEY_LINE = re.compile(r"([A-Za-z_][\w-]*):(?:[^\S\n]+(.*)|)\Z")
_CONTROL_CHAR = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LIST_ITEM = re.compile(r"\s*+-\s++(.*)\Z")

# Front matter values that are used: a string or a list of strings.
FrontMatter = dict[str, str | list[str]]


def read(text: str, encoding: str) -> Text:
    """Return the text with its title, date and tags from the front matter or the first heading."""
    lines = outline.unify_line_ends(text)
    values, body_start = parse_front_matter(lines)
    title, date = values.get("title", ""), values.get("date", "")
    title = " ".join(title.split()) if isinstance(title, str) else ""
    return Text(
        text=text,
        media_type="text/markdown",
        encoding=encoding,
        title=title or _first_heading(lines, body_start),
        date="" if isinstance(date, list) else iso_date(date),
        tags=parse_tags(values.get("tags", "")),
        body_start=body_start,
    )


def _first_heading(lines: str, body_start: int) -> str:
    first_title = ""
    for mark in outline.scan_outline(lines, body_start):
        if isinstance(mark, outline.Heading) and mark.title and not _TABLE_ROW.fullmatch(mark.title):
            if mark.level == 1:
                return mark.title
            first_title = first_title or mark.title
    return first_title


def parse_front_matter(lines: str) -> tuple[FrontMatter, int]:
    """Return the values of the front matter and its end; a block that cannot be parsed is body text."""
    for mark, pattern, parse in (("---", _YAML_BLOCK, _parse_yaml), ("+++", _TOML_BLOCK, _parse_toml)):
        if lines.startswith(mark):
            block = pattern.match(lines, 0, _MAX_FRONT_MATTER_CHARS)
            # At the limit the pattern cannot see whether the closing line really ends there.
            if block and (block.end() < _MAX_FRONT_MATTER_CHARS or len(lines) <= _MAX_FRONT_MATTER_CHARS):
                values = parse(block[1])
                if values is not None:
                    return values, block.end()
    return {}, 0


def _parse_yaml(block: str) -> FrontMatter | None:
    """Parse title, date and tags from YAML, as written.

    Only the events of the parser are used: 007 and yes stay what the author wrote, aliases and merge keys
    cannot expand without limit, and deep nesting cannot overflow the stack (composing nodes crashes the process).
    """
    yaml = _load_yaml()
    values: FrontMatter = {}
    depth = documents = 0
    key: str | None = None  # the key whose value comes next
    try:
        for event in yaml.parse(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif not isinstance(event, yaml.NodeEvent):
                continue
            elif depth == 0 and not isinstance(event, yaml.MappingStartEvent):
                return None
            elif isinstance(event, yaml.CollectionStartEvent):
                if depth == 1 and key in _FRONT_MATTER_KEYS and isinstance(event, yaml.SequenceStartEvent):
                    values[key] = []
                depth += 1
                if depth > _MAX_DEPTH:
                    return None
                continue
            elif key in _FRONT_MATTER_KEYS and isinstance(event, yaml.ScalarEvent) and not _is_null(event):
                items = values.get(key)
                if depth == 1:
                    values[key] = event.value
                elif depth == 2 and isinstance(items, list):
                    items.append(event.value)
            if depth == 1:
                scalar = event.value.casefold() if isinstance(event, yaml.ScalarEvent) else ""
                key = scalar if key is None else None
    except (yaml.YAMLError, ValueError):
        return _parse_yaml_lines(block)
    return values if documents <= 1 else None


@cache
def _load_yaml() -> ModuleType:
    with package_errors("PyYAML"):
        import yaml

        yaml.safe_load("a: b")  # what cannot work fails here
    return yaml


def _parse_yaml_lines(block: str) -> FrontMatter | None:
    """Parse almost valid YAML line by line: people write unquoted colons and brackets in titles."""
    values: FrontMatter = {}
    key = ""
    for line in block.splitlines():
        if key_line := _KEY_LINE.match(line):
            key = key_line[1].casefold()
            if key in _FRONT_MATTER_KEYS:
                values[key] = (key_line[2] or "").strip().strip("[]\"'" if key in _LIST_KEYS else "\"'")
        elif key in _LIST_KEYS and (item := _LIST_ITEM.match(line)):
            previous = values[key]
            values[key] = [
                *(previous if isinstance(previous, list) else [previous] if previous else []),
                item[1].rstrip().strip("\"'"),
            ]
        elif line.strip() and not line.startswith((" ", "\t", "#", "-")):
            return None  # running text
    return None if _CONTROL_CHAR.search(block) else values or None


def _is_null(event: Any) -> bool:
    return event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL")


def _parse_toml(block: str) -> FrontMatter | None:
    import tomllib

    try:
        table = tomllib.loads(block)
    except (ValueError, RecursionError):
        return None

    def scalars(items: Iterable[Any]) -> list[str]:
        return [str(item) for item in items if isinstance(item, str | int | float | datetime.date)]

    return {
        name: scalars(value) if isinstance(value, list) else "".join(scalars([value]))
        for name, value in ((key.casefold(), value) for key, value in table.items())
        if name in _FRONT_MATTER_KEYS
    }


def read_file(data: bytes) -> Text:
    """Read a file in any encoding; raise SourceError if it is not text."""
    return read(*decode(data))


READER = Reader(
    read_file,
    suffixes=(".md", ".markdown", ".mdown", ".mkd"),
    media_type="text/markdown",
    default_suffixes=(".md",),
    label="Markdown",
)
