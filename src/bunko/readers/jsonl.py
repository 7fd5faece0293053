"""The lines of a JSONL file come in, an entry for each goes out, or what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bunko.readers.memo import MOST, Bad, Memo, too_long, unified
from bunko.text.dates import iso
from bunko.text.tags import tags

_TEXT = ("text", "content", "body")
_OWN = ("title", "date", "tags", "id")
_SURROGATE = re.compile("[\ud800-\udfff]")


def memos(lines: Iterable[str], most: int = MOST) -> Iterator[Memo | Bad]:
    """Return an entry for each line that holds one, and what is wrong with the others; blank lines are neither.

    What no memo has to say stands above its text, a line for each: it comes back with the entry and is not searched.
    """
    for number, line in enumerate(lines, 1):
        if len(line) > most:
            yield too_long("line", number, most, line)
        elif line.strip():
            made = _memo(number, line)
            yield made if isinstance(made, Memo) else Bad(number, made, line)


def _memo(number: int, line: str) -> Memo | str:
    """Return the entry on a line, or why there is none."""
    try:
        value = json.loads(line)
    except ValueError as error:
        what = getattr(error, "msg", "") or "it holds a number that is too long"
        return f"line {number} is not JSON: {what[0].lower()}{what[1:]}, at character {getattr(error, 'pos', 0) + 1}"
    except RecursionError:
        return f"line {number} is nested too deeply"
    if not isinstance(value, dict):
        return f"line {number} is not an object with title, date, tags and text"
    title = " ".join(_plain(value.get("title")).split())
    name = next((one for one in _TEXT if _plain(value.get(one)).strip()), "")
    text = unified(_plain(value[name])) if name else ""
    if not text and not title:
        return f"line {number} has neither a text nor a title"
    date = value.get("date")
    stated = iso(str(date)) if isinstance(date, str | int) else ""
    # A date that is none is kept like a field that nobody knows.
    known = {*_OWN, name} - ({"date"} if date and not stated else set())
    above = "".join(f"{_line(key)}: {_written(one)}\n" for key, one in value.items() if key not in known)
    above += "\n" if above else ""
    key = _plain(value.get("id"))
    return Memo(number, number, title, stated, _tags(value), above + (text or title), len(above), key)


def _tags(value: Mapping[str, Any]) -> tuple[str, ...]:
    written = value.get("tags")
    if isinstance(written, list):
        return tags(_plain(one) for one in written)
    return tags(_plain(written))


def _written(value: object) -> str:
    """Return what a field holds on one line: a text as it is, anything else as JSON."""
    try:
        return _line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "…"


def _line(text: str) -> str:
    return " ".join(_SURROGATE.sub("\ufffd", text).split())


def _plain(value: object) -> str:
    """Return a string or a number as text that can be stored; anything else is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return _SURROGATE.sub("\ufffd", str(value))
