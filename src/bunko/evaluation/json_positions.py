"""Find the line of each item of a list in JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class JsonListError(ValueError):
    """Raised when the text is not a JSON object with the list; names the line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def list_items(text: str, key: str) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each item of the list under a top-level key."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonListError(error.lineno, f"invalid JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise JsonListError(1, "the JSON is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get(key), list):
        raise JsonListError(1, f'there is no list "{key}"')
    line, position = 1, _list_position(text, key)
    counted_to = 0
    for value in data[key]:
        position = _skip_blanks(text, position + 1)
        line += text.count("\n", counted_to, position)
        counted_to = position
        yield line, value
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])


def _list_position(text: str, key: str) -> int:
    """Return where the list of a key starts; of a duplicate key the last counts, as in `json.loads`."""
    list_start = -1
    position = _skip_blanks(text, 0)
    while text[position] != "}":
        position = _skip_blanks(text, position + 1)
        if text[position] == "}":
            break
        name, position = _DECODER.raw_decode(text, position)
        position = _skip_blanks(text, _skip_blanks(text, position) + 1)
        if name == key:
            list_start = position
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])
    return list_start


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
