"""Read JSON with comments and trailing commas, and change one member of it without touching the rest."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")
_SPACE = re.compile(r"\s*")
_INDENT = "  "


class _Member(NamedTuple):
    """Where the value of a member stands in a text."""

    start: int
    end: int


def parse_commented_json(text: str) -> Any:
    """Return the value of a text; invalid JSON raises ValueError."""
    return json.loads(_to_plain_json(text))


def set_member(text: str, section: str, name: str, value: Any) -> str:
    """Return an object's text in which a member of one of its objects has a value; both may be new."""
    plain = _to_plain_json(text)
    root = _Member(_skip_space(plain, 0), len(plain))
    found_section = _members(plain, root).get(section)
    if found_section is None:
        return _insert(text, plain, root, section, {name: value}, depth=1)
    if member := _members(plain, found_section).get(name):
        return text[: member.start] + _indented(value, 2) + text[member.end :]
    return _insert(text, plain, found_section, name, value, depth=2)


def _to_plain_json(text: str) -> str:
    """Return a text of the same length with spaces for comments and trailing commas."""
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(_blank_unless_string, text)
    return text


def _blank_unless_string(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


def _members(plain: str, parent: _Member) -> dict[str, _Member]:
    """Return the members of an object of valid JSON."""
    decoder, members = json.JSONDecoder(), {}
    position = _skip_space(plain, parent.start + 1)
    while plain[position] != "}":
        name, position = decoder.raw_decode(plain, position)
        start = _skip_space(plain, _skip_space(plain, position) + 1)  # after the colon
        _, end = decoder.raw_decode(plain, start)
        members[name] = _Member(start, end)
        position = _skip_space(plain, end)
        if plain[position] == ",":
            position = _skip_space(plain, position + 1)
    return members


def _insert(text: str, plain: str, parent: _Member, name: str, value: Any, *, depth: int) -> str:
    """Return a text with a new first member of an object; its last one may be followed by a comment."""
    after_brace = parent.start + 1
    end = "," if _members(plain, parent) else f"\n{_INDENT * (depth - 1)}"
    if "\n" in plain[after_brace : _skip_space(plain, after_brace)]:
        end = end.rstrip()  # the closing brace has a line of its own already
    member = f"\n{_INDENT * depth}{json.dumps(name, ensure_ascii=False)}: {_indented(value, depth)}"
    return text[:after_brace] + member + end + text[after_brace:]


def _indented(value: Any, depth: int) -> str:
    return json.dumps(value, ensure_ascii=False, indent=_INDENT).replace("\n", f"\n{_INDENT * depth}")


def _skip_space(plain: str, position: int) -> int:
    match = _SPACE.match(plain, position)
    return match.end() if match else position
