"""One search tool for each active tool of the library, with the user's description."""

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
                search_tool.extract_param(tool.options.extract or "chunk"),
                *search_tool.OUTPUT_PARAMS,
            ),
            SEARCH_OUTPUT,
            lambda call, name=tool.name: search_tool.search(call, name),  # type: ignore[misc]
        )
        for tool in library_tools
    ]


def safe_names(names: Sequence[str]) -> dict[str, str]:
    """Return a unique name for each tool that every client accepts."""
    used_names = set(RESERVED_NAMES)
    result = {}
    for name in names:
        safe_name = public_name(name)
        if safe_name in used_names:
            safe_name = hashed_name(name)  # unique
        used_names.add(safe_name)
        result[name] = safe_name
    return result
