"""Add, change and delete tools in memory."""

from __future__ import annotations

from dataclasses import replace

from bunko.build_info import BuildInfo
from bunko.stores.memory import documents, pages, vectors
from bunko.stores.memory.data import MemoryTables
from bunko.types import Tool


def list_tools(tables: MemoryTables) -> list[Tool]:
    """Return all tools, sorted by name."""
    return sorted(tables.tools.values(), key=lambda tool: tool.name)


def put_tool(tables: MemoryTables, tool: Tool) -> Tool:
    """Add a tool or replace the tool of the same name; return it with its id."""
    if old := tables.tools.get(tool.name):
        tables.tools[tool.name] = replace(tool, id=old.id)
    else:
        tables.tools[tool.name] = replace(tool, id=tables.next_tool)
        tables.next_tool += 1
    return tables.tools[tool.name]


def ensure_tool(tables: MemoryTables, tool: Tool) -> None:
    """Add a tool unless one of that name exists."""
    if tool.name not in tables.tools:
        put_tool(tables, tool)


def update_build_info(
    tables: MemoryTables, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = ""
) -> None:
    """Record how or when a tool's index was built, and change no other field."""
    for name, tool in tables.tools.items():
        if tool.id == tool_id:
            updated = replace(tool, built=tool.built if built is None else built)
            if imported_at:
                updated = replace(updated, imported_at=imported_at, checked_at=imported_at)
            tables.tools[name] = updated


def drop_tool(tables: MemoryTables, tool_id: int) -> None:
    """Delete a tool with its documents, pages and pinned vectors."""
    documents.write_documents(tables, tool_id, remove=list(documents.fingerprints(tables, tool_id)))
    vectors.unpin_vectors(tables, tool_id)
    pages.write_pages(tables, tool_id, remove=[page.url for page in pages.list_pages(tables, tool_id)])
    tables.tools = {name: tool for name, tool in tables.tools.items() if tool.id != tool_id}


def swap_tools(tables: MemoryTables, tool: Tool, shadow: Tool) -> int:
    """Replace a tool's documents by those of its shadow and delete the shadow; return the new generation."""
    generation = documents.write_documents(tables, tool.id, remove=list(documents.fingerprints(tables, tool.id)))
    for (tool_id, uri), row in list(tables.documents.items()):
        if tool_id == shadow.id:
            row.tool_id, row.generation = tool.id, generation
            tables.documents[tool.id, uri] = tables.documents.pop((tool_id, uri))
    for (tool_id, uri), failed in list(tables.failures.items()):
        if tool_id == shadow.id:
            tables.failures[tool.id, uri] = failed
    drop_tool(tables, shadow.id)
    put_tool(tables, tool)
    return generation


def adopt_documents(tables: MemoryTables, tool: Tool, shadow: Tool) -> Tool:
    """Store a tool with the documents of its shadow; a tool of the same name is replaced."""
    tool = put_tool(tables, tool)
    swap_tools(tables, tool, shadow)
    return tool
