"""Read memo entries from the lines of a JSONL file."""

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
    """Yield an entry for each valid line and a BadLine for each invalid one; skip blank lines.

    Fields that memos do not have are written above the text, one per line: they are returned with the entry, but
    not searched.
    """
    for line_number, line in enumerate(lines, 1):
        if len(line) > max_chars:
            yield oversized_entry("line", line_number, max_chars, line)
        elif line.strip():
            entry = _parse_line(line_number, line)
            yield entry if isinstance(entry, Memo) else BadLine(line_number, entry, line)


def _parse_line(line_number: int, line: str) -> Memo | str:
    """Return the entry on a line, or why it is invalid."""
    try:
        record = json.loads(line)
    except ValueError as error:
        problem = getattr(error, "msg", "") or "it contains a number that is too long"
        column = getattr(error, "pos", 0) + 1
        return f"line {line_number} is not JSON: {problem[0].lower()}{problem[1:]}, at character {column}"
    except RecursionError:
        return f"line {line_number} is nested too deeply"
    if not isinstance(record, dict):
        return f"line {line_number} is not an object with title, date, tags and text"
    title = " ".join(_scalar_text(record.get("title")).split())
    text_key = next((key for key in _TEXT_KEYS if _scalar_text(record.get(key)).strip()), "")
    text = collapse_line_ends(_scalar_text(record[text_key])) if text_key else ""
    if not text and not title:
        return f"line {line_number} has neither a text nor a title"
    date = record.get("date")
    iso = iso_date(str(date)) if isinstance(date, str | int) else ""
    # An invalid date is kept like an unknown field.
    memo_keys = {*_MEMO_KEYS, text_key} - ({"date"} if date and not iso else set())
    extra_fields = "".join(
        f"{_one_line(key)}: {_format_value(field)}\n" for key, field in record.items() if key not in memo_keys
    )
    extra_fields += "\n" if extra_fields else ""
    key = _scalar_text(record.get("id"))
    return Memo(
        line_number, line_number, title, iso, _tags(record), extra_fields + (text or title), len(extra_fields), key
    )


def _tags(record: Mapping[str, Any]) -> tuple[str, ...]:
    raw_tags = record.get("tags")
    if isinstance(raw_tags, list):
        return parse_tags(_scalar_text(tag) for tag in raw_tags)
    return parse_tags(_scalar_text(raw_tags))


def _format_value(value: object) -> str:
    """Return a field value on one line: a string unquoted, anything else as JSON."""
    try:
        return _one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "…"


def _one_line(text: str) -> str:
    return " ".join(_SURROGATE.sub("\ufffd", text).split())


def _scalar_text(value: object) -> str:
    """Return a string or a number as text that can be stored, or "" for any other type."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return _SURROGATE.sub("\ufffd", str(value))
