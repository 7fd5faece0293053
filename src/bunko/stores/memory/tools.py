"""Keep the tools of a library in memory."""

from __future__ import annotations

from dataclasses import replace

from bunko.errors import name_taken_error
from bunko.stores.memory.data import MemoryTables, with_lock
from bunko.types import Tool
from bunko.types.build_info import BuildInfo


class MemoryTools:
    """The tools of a library."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def all(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return sorted(self._tables.tools.values(), key=lambda tool: tool.name)

    @with_lock
    def put(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""
        tables = self._tables
        if old := tables.tools.get(tool.name):
            tables.tools[tool.name] = replace(tool, id=old.id)
        else:
            tables.tools[tool.name] = replace(tool, id=tables.next_tool)
            tables.next_tool += 1
        return tables.tools[tool.name]

    @with_lock
    def ensure(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""
        if tool.name not in self._tables.tools:
            self.put(tool)

    @with_lock
    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""
        for name, tool in self._tables.tools.items():
            if tool.id == tool_id:
                updated = replace(tool, built=tool.built if built is None else built)
                if imported_at:
                    updated = replace(updated, imported_at=imported_at, checked_at=imported_at)
                self._tables.tools[name] = updated

    def claim(self, tool_id: int) -> None:
        """Do nothing: no other machine can see the tool."""

    def is_local(self, tool_id: int) -> bool:
        """Return True: no other machine can see the tool."""
        return True

    @with_lock
    def rename(self, *tools: Tool) -> None:
        """Store the names and options of existing tools atomically; raise SettingsError if another has such a name."""
        stored = {tool.id: tool for tool in self._tables.tools.values()}
        for tool in tools:
            existing = self._tables.tools.get(tool.name)
            if existing is not None and existing.id != tool.id:
                raise name_taken_error(tool.name)
        for tool in tools:
            stored[tool.id] = replace(stored[tool.id], name=tool.name, options=tool.options)
        self._tables.tools = {tool.name: tool for tool in stored.values()}

    @with_lock
    def drop(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""
        tables = self._tables
        self._remove_documents(tool_id)
        for rows in (tables.pinned, tables.pages, tables.contents):
            for key in [key for key in rows if key[0] == tool_id]:
                del rows[key]
        for key in [key for key in tables.statistics if key[0] == tool_id]:
            del tables.statistics[key], tables.frequencies[key]
        tables.tools = {name: tool for name, tool in tables.tools.items() if tool.id != tool_id}

    @with_lock
    def swap(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of the shadow tool that a rebuild wrote, and delete that, atomically."""
        tables = self._tables
        generation = self._remove_documents(tool.id)
        for (tool_id, uri), row in list(tables.documents.items()):
            if tool_id == shadow.id:
                row.tool_id, row.generation = tool.id, generation
                tables.documents[tool.id, uri] = tables.documents.pop((tool_id, uri))
        for (tool_id, uri), failed in list(tables.failures.items()):
            if tool_id == shadow.id:
                tables.failures[tool.id, uri] = failed
        self.drop(shadow.id)
        self.put(tool)
        return generation

    @with_lock
    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool, or replace the one of its name, with the documents of the shadow tool that an import wrote."""
        tool = self.put(tool)
        self.swap(tool, shadow)
        return tool

    def _remove_documents(self, tool_id: int) -> int:
        """Remove the documents and failures of a tool; return the new generation."""
        tables = self._tables
        tables.generation += 1
        tables.versions[tool_id] += 1
        for owner_id, uri in (*tables.documents, *tables.failures):
            if owner_id == tool_id:
                tables.remove_document(tool_id, uri)
        return tables.generation
