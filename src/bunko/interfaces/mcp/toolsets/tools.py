"""The library's own tools: each becomes one that an assistant can call, under its user's description."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bunko.catalog import LONGEST, RESERVED, safe
from bunko.interfaces.mcp.answers import SEARCH_OUTPUT
from bunko.interfaces.mcp.call import Tool
from bunko.interfaces.mcp.toolsets import searching
from bunko.types import Tool as LibraryTool


def tools(known: Sequence[LibraryTool], top_k: int) -> list[Tool]:
    """Return one tool for each active tool of the library."""
    names = safe_names([tool.name for tool in known])
    return [
        Tool(
            names[tool.name],
            tool.name,
            tool.description or f"Search {tool.name}.",
            (
                searching.QUERY,
                searching.top_k(top_k),
                searching.extract(tool.options.get("extract", "chunk")),
                *searching.SHAPE,
            ),
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
        plain = safe(name)
        if not plain or plain in taken or plain != name:
            # Something was lost or is taken: a mark of the real name keeps it apart, and stays the same every time.
            mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
            plain = f"{plain[: LONGEST - 7]}_{mark}" if plain else f"tool_{mark}"
        taken.add(plain)
        found[name] = plain
    return found
