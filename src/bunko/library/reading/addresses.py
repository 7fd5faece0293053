"""Understand addresses of documents: bunko://tool/path, or tool/path for short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from bunko.library.tools.catalog import ADDRESS_SCHEME


class Address(NamedTuple):
    """A tool and what is named of it: a path or a citation."""

    tool: str  # its real name, or one that no tool has
    path: str


def parse_address(text: str, assistant_names: Mapping[str, str]) -> Address | None:
    """Return what an address names, or None if the text is none. The names are those that assistants see, by tool."""
    scheme, mark, rest = text.strip().partition("://")
    if not mark or scheme != ADDRESS_SCHEME:
        return None
    seen_name, _, path = rest.partition("/")
    return Address(_real_name(seen_name, assistant_names) or seen_name, unquote(path))


def parse_short_address(text: str, assistant_names: Mapping[str, str]) -> Address | None:
    """Return what a path names whose first folder is a tool, or None if no tool has that name."""
    first, _, path = text.strip().partition("/")
    tool = _real_name(first, assistant_names)
    return Address(tool, path) if tool and path else None


def _real_name(name: str, assistant_names: Mapping[str, str]) -> str | None:
    by_seen_name = {seen_name: tool for tool, seen_name in assistant_names.items()}
    return by_seen_name.get(name) or (name if name in assistant_names else None)
