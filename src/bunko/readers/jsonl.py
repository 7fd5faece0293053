"""Read memo entries from the lines of a JSONL file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bunko.readers.memo import MAX_ENTRY_CHARS, BadLine, Memo, collapse_line_ends, oversized_entry
from bunko.text.dates import iso_date
from bunko.text.tags import parse_tags

_TEXT_KEYS = ("text", "content", "body", "page_content")
_MEMO_KEYS = ("title", "date", "tags", "id")
_MAX_DATE_CHARS = 50  # of a date in a message
_SURROGATE = re.compile("[\ud800-\udfff]")


def memos(lines: Iterable[str], max_chars: int = MAX_ENTRY_CHARS) -> Iterator[Memo | BadLine]:
    """Yield an entry for each valid line and a BadLine for each invalid one; skip blank lines and # comments.

    Fields that memos do not have are written above the text, one per line: they are returned with the entry, but
    not searched. A date that cannot be read is one of them; it is yielded as a BadLine before its entry.
    """
    for line_number, line in enumerate(lines, 1):
        if len(line) > max_chars:
            yield oversized_entry("line", line_number, max_chars, line)
        elif line.strip() and not line.lstrip().startswith("#"):
            record = _parse_line(line_number, line)
            if isinstance(record, str):
                yield BadLine(line_number, record, line)
            else:
                yield from _build_memo(line_number, line, record)


def _parse_line(line_number: int, line: str) -> dict[str, Any] | str:
    """Return the object on a line, or why it is invalid."""
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
    return _lift_metadata(record)


def _lift_metadata(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the title, date and tags of its `metadata`, where it has none itself."""
    metadata = record.get("metadata")
    if not isinstance(metadata, dict):
        return record
    lifted = {key: metadata[key] for key in ("title", "date", "tags") if metadata.get(key) and not record.get(key)}
    rest = {key: value for key, value in metadata.items() if key not in lifted}
    others = {key: value for key, value in record.items() if key != "metadata"}
    return others | lifted | ({"metadata": rest} if rest else {})


def _build_memo(line_number: int, line: str, record: Mapping[str, Any]) -> Iterator[Memo | BadLine]:
    title = " ".join(_scalar_text(record.get("title")).split())
    text_key, text = _find_text(record)
    if not text and not title:
        yield BadLine(line_number, f"line {line_number} has neither a text nor a title", line)
        return
    date = record.get("date")
    iso = iso_date(str(date)) if isinstance(date, str | int) else ""
    memo_keys = {*_MEMO_KEYS, text_key}
    if date and not iso:
        memo_keys.remove("date")  # it is kept like an unknown field
        reason = f"line {line_number} has the date {_format_value(date)[:_MAX_DATE_CHARS]}, which cannot be read"
        yield BadLine(line_number, f"{reason}: its entry is indexed without a date", line)
    extra_fields = "".join(
        f"{_one_line(key)}: {_format_value(field)}\n" for key, field in record.items() if key not in memo_keys
    )
    extra_fields += "\n" if extra_fields else ""
    key = _scalar_text(record.get("id"))
    yield Memo(
        line_number, line_number, title, iso, _tags(record), extra_fields + (text or title), len(extra_fields), key
    )


def _find_text(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of a record's text, and the text; both are empty if it has none."""
    for key in _TEXT_KEYS:
        text = _scalar_text(record.get(key))
        if text and not text.isspace():
            return key, collapse_line_ends(text)
    return "", ""


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
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return str(value) if is_number else ""
