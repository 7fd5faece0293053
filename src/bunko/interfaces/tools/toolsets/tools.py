"""The library's own tools: each becomes one that an assistant can call, under its user's description."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.interfaces.tools.answers import SEARCH_OUTPUT
from bunko.interfaces.tools.tool import ToolDefinition
from bunko.interfaces.tools.toolsets import search_tool
from bunko.library.catalog import RESERVED_NAMES, hashed_name, public_name
from bunko.types import Tool as LibraryTool


def tools(library_tools: Sequence[LibraryTool], top_k: int) -> list[ToolDefinition]:
    """Return one tool for each active tool of the library."""
    names = safe_names([tool.name for tool in library_tools])
    return [
        ToolDefinition(
            names[tool.name],
            tool.name,
            tool.description or f"Search {tool.name}.",
            (
                search_tool.QUERY_PARAM,
                search_tool.top_k_param(top_k),
                search_tool.extract_param(tool.options.get("extract", "chunk")),
                *search_tool.OUTPUT_PARAMS,
            ),
            SEARCH_OUTPUT,
            lambda call, name=tool.name: search_tool.search(call, name),  # type: ignore[misc]
        )
        for tool in library_tools
    ]


def safe_names(names: Sequence[str]) -> dict[str, str]:
    """Return a name that every client accepts for each, all different."""
    taken = set(RESERVED_NAMES)
    found = {}
    for name in names:
        plain = public_name(name)
        if plain in taken:
            plain = hashed_name(name)  # which keeps it apart
        taken.add(plain)
        found[name] = plain
    return found
