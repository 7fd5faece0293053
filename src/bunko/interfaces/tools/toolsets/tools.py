"""One search tool for each active tool of the library, with the user's description."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.interfaces.tools import search_tool
from bunko.interfaces.tools.tool import OBJECT, ToolDefinition
from bunko.interfaces.tools.toolsets import Toolset, ToolsetContext, folder, reserved_names
from bunko.library.tools.assistant_names import assistant_names, clean_name, hashed_name
from bunko.library.tools.catalog import clean_description
from bunko.types import Tool as LibraryTool


def _build_tools(context: ToolsetContext) -> list[ToolDefinition]:
    """Return a search tool for each active tool, and those of `folder` over all of them.

    A tool whose documents another toolset searches has none: the same data under two names costs tokens and misleads.
    If the schemas of the search tools would be too long, only `search` is left, whose description lists the tools.
    """
    library_tools, top_k, subject = context.library_tools, folder.default_top_k(context), context.subject
    shown_tools = [tool for tool in library_tools if tool.kind not in context.searched_kinds]
    names = safe_names(shown_tools)
    search_tools = [
        ToolDefinition(
            names[tool.name],
            clean_name(tool.name),
            _describe(tool),
            (
                search_tool.QUERY_PARAM,
                *search_tool.WORDING_PARAMS,
                search_tool.top_k_param(top_k),
                search_tool.EXTRACT_PARAM,
                search_tool.CURSOR_PARAM,
            ),
            OBJECT,
            lambda call, name=tool.name: search_tool.search(call, name),  # type: ignore[misc]
            right="read",
        )
        for tool in shown_tools
    ]
    tool_choices = context.tool_choices
    if search_tools and context.exceeds_schema_budget(search_tools):
        subject += ": " + "; ".join(
            f"{name} ({clean_description(tool.description)[:80]})"
            for name, tool in zip(tool_choices, library_tools, strict=True)
        )
        search_tools = []
    return [*folder.build_folder_tools(subject, top_k, tool_choices=tool_choices), *search_tools]


def _describe(tool: LibraryTool) -> str:
    """Return the description of a tool, with its name if assistants see a reading of it: users ask for the name."""
    name, description = clean_name(tool.name), clean_description(tool.description)
    if not description:
        return f"Search {name}."
    return description if name.isascii() or name in description else clean_description(f"{name}: {description}")


def safe_names(tools: Sequence[LibraryTool]) -> dict[str, str]:
    """Return the name of each tool that assistants see, by its real one; none is the name of a built-in tool."""
    return {
        name: hashed_name(name) if alias.lower() in reserved_names() else alias
        for name, alias in assistant_names(tools).items()
    }


TOOLSET = Toolset(
    "tools", "Search each active tool of the library by its own name.", folder.TOOLSET.tool_names, _build_tools
)
