"""Give each tool a name that every assistant accepts: its own, its reading, or a hashed one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from bunko.text.labels import clean_label
from bunko.types import Tool

MAX_NAME_LENGTH = 40
MAX_STORED_NAME_LENGTH = 100  # a name in Japanese or with spaces may be longer than what assistants see of it
_UNSAFE_CHARS = re.compile(r"[^a-zA-Z0-9_-]+")


def safe_name(name: str) -> str:
    """Return a name that every client accepts: letters, digits, _ and -, at most 40; possibly empty."""
    return _UNSAFE_CHARS.sub("_", name).strip("_")[:MAX_NAME_LENGTH]


def clean_name(name: str) -> str:
    """Return a name as assistants and people may see it, whoever wrote it."""
    return clean_label(name, MAX_STORED_NAME_LENGTH)


def hashed_name(name: str, plain: str = "") -> str:
    """Return a stable name that every client accepts, ending in a hash of the real name."""
    plain = plain or safe_name(name)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[: MAX_NAME_LENGTH - 7]}_{digest}" if plain else f"tool_{digest}"


def choose_alias(name: str, existing_tools: Iterable[Tool]) -> str | None:
    """Return the name by which assistants will see a new tool; None if its own suits them.

    It is stored with the tool, so that neither other tools nor a newer dictionary of readings change it.
    """
    if is_safe(name):
        return None
    from bunko.text.romaji import romanize  # loads MeCab

    romanized = romanize(name)
    plain = safe_name(romanized)
    is_read = not any(char.isalnum() and not char.isascii() for char in romanized)
    taken = {assistant_name(tool).lower() for tool in existing_tools}
    return plain if is_read and plain and plain.lower() not in taken else hashed_name(name, plain)


def is_safe(name: str) -> bool:
    """Return whether every client accepts a name."""
    return bool(name) and safe_name(name) == name


def assistant_name(tool: Tool) -> str:
    """Return the name by which assistants see a tool; a tool of an older library may have no stored one."""
    if is_safe(tool.name):
        return tool.name
    alias = tool.options.alias or ""
    return alias if is_safe(alias) else hashed_name(tool.name)  # somebody else may have written the library


class AssistantNames(dict[str, str]):
    """The names of tools that assistants see, by the real ones."""

    def __missing__(self, name: str) -> str:
        return hashed_name(name)  # of a tool that was renamed or deleted meanwhile


def assistant_names(tools: Sequence[Tool]) -> AssistantNames:
    """Return the name of each tool that assistants see, by its real one; all are different."""
    names = AssistantNames()
    used = {tool.name.lower() for tool in tools if is_safe(tool.name)}
    for tool in tools:
        name = assistant_name(tool)
        if name != tool.name and name.lower() in used:  # in a library that bunko did not write
            name = hashed_name(tool.name)
        used.add(name.lower())
        names[tool.name] = name
    return names


def shown_name(tool: Tool) -> str:
    """Return the name of a tool for people, with the one that assistants see if it differs."""
    name = assistant_name(tool)
    return tool.name if name == tool.name else f"{tool.name} ({name})"


def file_name(tool: Tool) -> str:
    """Return the name of a file about a tool, without its ending."""
    name = assistant_name(tool)
    return name if name == tool.options.alias else safe_name(tool.name) or name
