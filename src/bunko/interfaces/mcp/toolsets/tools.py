"""The library's own tools: each becomes one that an assistant can call, under its user's description."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from bunko.interfaces.mcp.answers import SEARCH_OUTPUT
from bunko.interfaces.mcp.call import Tool
from bunko.interfaces.mcp.toolsets import RESERVED, searching
from bunko.types import Tool as LibraryTool

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST = 40


def tools(known: Sequence[LibraryTool], top_k: int) -> list[Tool]:
    """Return one tool for each active tool of the library."""
    names = safe_names([tool.name for tool in known])
    return [
        Tool(
            names[tool.name],
            tool.name,
            tool.description or f"Search {tool.name}.",
            (searching.QUERY, searching.top_k(top_k), *searching.SHAPE),
            SEARCH_OUTPUT,
            lambda call, name=tool.name: searching.search(call, name),  # type: ignore[misc]
        )
        for tool in known
    ]


def safe_names(names: Sequence[str]) -> dict[str, str]:
    """Return a name that every client accepts for each, all different."""
    taken = set(RESERVED)
    found = {}
    for name in names:
        safe = _UNSAFE.sub("_", name).strip("_")[:_LONGEST]
        if not safe or safe in taken or safe != name:
            # Something was lost or is taken: a mark of the real name keeps it apart, and stays the same every time.
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
            safe = f"{safe[: _LONGEST - 7]}_{mark}" if safe else f"tool_{mark}"
        taken.add(safe)
        found[name] = safe
    return found
