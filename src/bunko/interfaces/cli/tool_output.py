"""Show a tool after a command has added or changed it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bunko.interfaces.cli.options import SharedOptions, print_json, print_stderr, say
from bunko.interfaces.serialize_library import tool_to_dict
from bunko.library.assistant_names import assistant_name
from bunko.types import Tool


def describe_alias(tool: Tool) -> str:
    """Return a sentence about the name that assistants see, if it is another one."""
    seen_name = assistant_name(tool)
    return f" Assistants see it as {seen_name}." if seen_name != tool.name else ""


def print_result(
    shared: SharedOptions, tool: Tool, message: str, *, notices: Sequence[str] = (), **fields: Any
) -> None:
    """Print a tool as JSON, or the message about it and notices."""
    if shared.as_json:
        print_json(tool_to_dict(tool) | fields | ({"notices": notices} if notices else {}))
        return
    say(message)
    for notice in notices:
        print_stderr(notice)
