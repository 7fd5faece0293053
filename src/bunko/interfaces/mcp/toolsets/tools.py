"""The library's own tools: each becomes one that an assistant can call, under its user's description."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.catalog import RESERVED, called, marked
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
        plain = called(name)
        if plain in taken:
            plain = marked(name)  # which keeps it apart
        taken.add(plain)
        found[name] = plain
    return found
