"""JSON text in, the members of one of its lists out, each with the line it begins on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class JsonListError(ValueError):
    """The text is no object with such a list; says so, and where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


def list_items(text: str, key: str) -> Iterator[tuple[int, Any]]:
    """Yield line and value of each member of the list that stands under a key of the outermost object."""
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonListError(error.lineno, f"this is not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise JsonListError(1, "this JSON is nested too deep") from error
    if not isinstance(whole, dict) or not isinstance(whole.get(key), list):
        raise JsonListError(1, f'there is no list "{key}"')
    line, position = 1, _list_position(text, key)
    counted = 0
    for value in whole[key]:
        position = _skip_blanks(text, position + 1)
        line += text.count("\n", counted, position)
        counted = position
        yield line, value
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])


def _list_position(text: str, key: str) -> int:
    """Return where the list of a key opens; where a key stands twice, the last counts, as everywhere."""
    found = -1
    position = _skip_blanks(text, 0)
    while text[position] != "}":
        position = _skip_blanks(text, position + 1)
        if text[position] == "}":
            break
        name, position = _DECODER.raw_decode(text, position)
        position = _skip_blanks(text, _skip_blanks(text, position) + 1)
        if name == key:
            found = position
        position = _skip_blanks(text, _DECODER.raw_decode(text, position)[1])
    return found


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
