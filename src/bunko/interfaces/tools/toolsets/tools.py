"""The library's own tools: each becomes one that an assistant can call, under its user's description."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.interfaces.tools.answers import SEARCH_OUTPUT
from bunko.interfaces.tools.tool import Tool
from bunko.interfaces.tools.toolsets import search_tool
from bunko.library.catalog import RESERVED, called, marked
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
                search_tool.QUERY,
                search_tool.top_k(top_k),
                search_tool.extract(tool.options.get("extract", "chunk")),
                *search_tool.SHAPE,
            ),
            SEARCH_OUTPUT,
            lambda call, name=tool.name: search_tool.search(call, name),  # type: ignore[misc]
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
