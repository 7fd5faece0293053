"""The text of a JSONL file comes in, an entry for each line goes out, and what is wrong with the others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bunko.readers.memo import Bad, Memo, unified
from bunko.text.dates import iso
from bunko.text.tags import tags

# A file with more bad lines is of another kind, or badly damaged: one sentence says so better than thousands.
_MOST_BAD = 100
_TEXT = ("text", "content", "body")
_SURROGATE = re.compile("[\ud800-\udfff]")


def memos(text: str) -> tuple[list[Memo], list[Bad]]:
    """Return an entry for each line that holds one, and the lines that do not; blank lines are neither."""
    good: list[Memo] = []
    bad: list[Bad] = []
    for number, line in enumerate(unified(text).split("\n"), 1):
        if line.strip():
            made = _memo(number, line)
            if isinstance(made, Memo):
                good.append(made)
            else:
                bad.append(Bad(number, made, line))
    if len(bad) > _MOST_BAD:
        rest = bad[_MOST_BAD - 1 :]
        reason = f"{rest[0].reason}; {len(rest) - 1} more lines cannot be used either"
        bad[_MOST_BAD - 1 :] = [Bad(rest[0].line, reason, "\n".join(one.text for one in rest))]
    return good, bad


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
    text = next((found for name in _TEXT if (found := unified(_plain(value.get(name)))).strip()), "")
    if not text and not title:
        return f"line {number} has neither a text nor a title"
    date = value.get("date")
    stated = iso(str(date)) if isinstance(date, str | int) else ""
    return Memo(number, number, title, stated, _tags(value), text or title, key=_plain(value.get("id")))


def _tags(value: Mapping[str, Any]) -> tuple[str, ...]:
    written = value.get("tags")
    if isinstance(written, list):
        return tags(_plain(one) for one in written)
    return tags(_plain(written))


def _plain(value: object) -> str:
    """Return a string or a number as text that can be stored; anything else is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return _SURROGATE.sub("\ufffd", str(value))
