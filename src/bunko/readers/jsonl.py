"""The lines of a JSONL file come in, an entry for each goes out, or what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bunko.readers.memo import MAX_ENTRY_CHARS, BadLine, Memo, collapse_line_ends, oversized_entry
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags

_TEXT_KEYS = ("text", "content", "body")
_MEMO_KEYS = ("title", "date", "tags", "id")
_SURROGATE = re.compile("[\ud800-\udfff]")


def memos(lines: Iterable[str], max_chars: int = MAX_ENTRY_CHARS) -> Iterator[Memo | BadLine]:
    """Return an entry for each line that holds one, and what is wrong with the others; blank lines are neither.

    What no memo has to say stands above its text, a line for each: it comes back with the entry and is not searched.
    """
    for number, line in enumerate(lines, 1):
        if len(line) > max_chars:
            yield oversized_entry("line", number, max_chars, line)
        elif line.strip():
            made = _parse_line(number, line)
            yield made if isinstance(made, Memo) else BadLine(number, made, line)


def _parse_line(number: int, line: str) -> Memo | str:
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
    title = " ".join(_scalar_text(value.get("title")).split())
    name = next((one for one in _TEXT_KEYS if _scalar_text(value.get(one)).strip()), "")
    text = collapse_line_ends(_scalar_text(value[name])) if name else ""
    if not text and not title:
        return f"line {number} has neither a text nor a title"
    date = value.get("date")
    stated = iso_date(str(date)) if isinstance(date, str | int) else ""
    # A date that is none is kept like a field that nobody knows.
    known = {*_MEMO_KEYS, name} - ({"date"} if date and not stated else set())
    above = "".join(f"{_one_line(key)}: {_format_value(one)}\n" for key, one in value.items() if key not in known)
    above += "\n" if above else ""
    key = _scalar_text(value.get("id"))
    return Memo(number, number, title, stated, _tags(value), above + (text or title), len(above), key)


def _tags(value: Mapping[str, Any]) -> tuple[str, ...]:
    written = value.get("tags")
    if isinstance(written, list):
        return parse_tags(_scalar_text(one) for one in written)
    return parse_tags(_scalar_text(written))


def _format_value(value: object) -> str:
    """Return what a field holds on one line: a text as it is, anything else as JSON."""
    try:
        return _one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "…"


def _one_line(text: str) -> str:
    return " ".join(_SURROGATE.sub("\ufffd", text).split())


def _scalar_text(value: object) -> str:
    """Return a string or a number as text that can be stored; anything else is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return _SURROGATE.sub("\ufffd", str(value))
