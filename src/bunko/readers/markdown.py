"""The text of a Markdown file comes in, the same text with its title, date, tags and body goes out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from bunko.readers import outline
from bunko.text.tags import tag
from bunko.types import Text

_LIMIT = 64 * 1024  # characters; front matter is a few lines, whatever is longer is something else
_DEPTH = 50  # levels of nesting; three are common
_YAML = re.compile(r"---[^\S\n]*\n((?s:.*?)(?<=\n))(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)")
_TOML = re.compile(r"\+\+\+[^\S\n]*\n((?s:.*?)(?<=\n))\+\+\+[^\S\n]*(?:\n|\Z)")
_KEYS = ("title", "date", "tags")
_DATE = re.compile(
    r"(\d{4})(?:年?|\s*[-/.年]\s*(\d\d?)(?:月?|\s*[-/.月]\s*(\d\d?)日?(?:\s*\([月火水木金土日]\))?))"
    r"(?:(?:[Tt]|\s+)(\d\d?)[:時](\d\d?)(?:分?|[:分](\d\d?)(?:\.\d+)?秒?)\s*(?:([-+]\d\d?)(?::?(\d\d))?|([Zz]))?)?"
)
_COMPACT_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)")
_COMMAS = re.compile(r"[,，、;；\n]")

# What a key of front matter can hold that is of use here: a text, or a list of texts.
Values = dict[str, str | list[str]]


def read(text: str, encoding: str) -> Text:
    """Return the text with what it says about itself."""
    lines = outline.unify(text)
    values, body = _front_matter(lines)
    title = values.get("title", "")
    return Text(
        text=text,
        media_type="text/markdown",
        encoding=encoding,
        title=" ".join(title.split()) if isinstance(title, str) and title.strip() else _heading(lines, body),
        date=_iso(values.get("date", "")),
        tags=_tags(values.get("tags", "")),
        body=body,
    )


def _heading(lines: str, body: int) -> str:
    first = ""
    for mark in outline.scan(lines, body):
        if isinstance(mark, outline.Heading) and mark.title:
            if mark.level == 1:
                return mark.title
            first = first or mark.title
    return first


def _front_matter(lines: str) -> tuple[Values, int]:
    """Return what the front matter says and where it ends; what cannot be read as such is body text."""
    for mark, pattern, parse in (("---", _YAML, _yaml), ("+++", _TOML, _toml)):
        if lines.startswith(mark):
            block = pattern.match(lines, 0, _LIMIT)
            # At the limit the pattern cannot see whether the closing line really ends there.
            if block and (block.end() < _LIMIT or len(lines) <= _LIMIT):
                values = parse(block[1])
                if values is not None:
                    return values, block.end()
    return {}, 0


def _yaml(block: str) -> Values | None:
    """Read the keys that matter from YAML, as they are written.

    Only the parser's events are looked at: 007 and yes stay what the author wrote, aliases and merge keys
    cannot grow without end, and deep nesting cannot overflow the stack (composing nodes crashes the process).
    """
    import yaml

    values: Values = {}
    depth = documents = 0
    name: str | None = None  # the key whose value comes next
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
                if depth == 1 and name in _KEYS and isinstance(event, yaml.SequenceStartEvent):
                    values[name] = []
                depth += 1
                if depth > _DEPTH:
                    return None
                continue
            elif name in _KEYS and isinstance(event, yaml.ScalarEvent) and not _is_null(event):
                listed = values.get(name)
                if depth == 1:
                    values[name] = event.value
                elif depth == 2 and isinstance(listed, list):
                    listed.append(event.value)
            if depth == 1:
                key = event.value.casefold() if isinstance(event, yaml.ScalarEvent) else ""
                name = key if name is None else None
    except (yaml.YAMLError, ValueError):
        return None
    return values if documents <= 1 else None


def _is_null(event: Any) -> bool:
    return event.implicit[0] and event.value in ("", "~", "null", "Null", "NULL")


def _toml(block: str) -> Values | None:
    import tomllib

    try:
        table = tomllib.loads(block)
    except (ValueError, RecursionError):
        return None

    def scalars(items: Iterable[Any]) -> list[str]:
        return [str(item) for item in items if isinstance(item, str | int | float | date | datetime)]

    return {
        name: scalars(value) if isinstance(value, list) else "".join(scalars([value]))
        for name, value in ((key.casefold(), value) for key, value in table.items())
        if name in _KEYS
    }


def _iso(value: str | list[str]) -> str:
    """Return a date as ISO 8601, as far as it was given, or nothing if it is not a date."""
    if isinstance(value, list) or len(value) > 64:
        return ""
    text = unicodedata.normalize("NFKC", value).strip()
    match = _DATE.fullmatch(text) or _COMPACT_DATE.fullmatch(text)
    if not match:
        return ""
    year, month, day, hour, minute, second, hours, minutes, utc = (*match.groups(), *[None] * 6)[:9]
    numbers = [int(part) for part in (year, month, day, hour, minute, second) if part]
    try:
        # The smallest date that fits says whether there is one.
        moment = datetime(*[*numbers, 1, 1][: max(3, len(numbers))])  # type: ignore[arg-type]
    except ValueError:
        return ""
    if hour:
        zone = f"{int(hours):+03d}:{minutes or '00'}" if hours else "+00:00" if utc else ""
        return moment.isoformat(timespec="seconds") + zone if day else ""
    return moment.date().isoformat()[: (4, 7, 10)[len(numbers) - 1]]


def _tags(value: str | list[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _COMMAS.split(value) if _COMMAS.search(value) else value.split()
    return tuple(dict.fromkeys(kept for one in value if (kept := tag(one))))
