"""Show, update, rebuild and drop what the index holds of each tool."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from bunko.errors import BunkoError, IndexFailure
from bunko.library.importing.importer import Importer
from bunko.library.tools import catalog
from bunko.protocols import Index, Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.types import Tool
from bunko.types.records import IndexState


@dataclass(frozen=True, slots=True)
class ToolIndexState:
    """How far the index has followed the store for a tool."""

    tool: Tool
    state: IndexState


class IndexCare:
    """The index of one library, as something to look after; losing it loses nothing."""

    def __init__(self, store: Store, index: Index, importer: Importer) -> None:
        self._store, self._index, self._importer = store, index, importer
        self.kind, self.location = index.kind, index.location

    def status(self, name: str | None = None) -> list[ToolIndexState]:
        """Return the state of one tool or of all."""
        tools = catalog.tools(self._store) if name is None else [catalog.get_tool(self._store, name)]
        return [ToolIndexState(tool, self._index.state(tool.id)) for tool in tools]

    def sync(self, name: str, *, observer: Observer = NO_OBSERVER) -> ToolIndexState:
        """Bring the index of a tool up to date; raise an error if that fails."""
        with self._importer.write_lock(observer, tools=[name]):
            return bring_up_to_date(self._index, catalog.get_tool(self._store, name), observer)

    def rebuild(self, name: str, *, observer: Observer = NO_OBSERVER) -> ToolIndexState:
        """Build the index of a tool anew from the library."""
        with self._importer.write_lock(observer, tools=[name]):
            tool = catalog.get_tool(self._store, name)
            self._index.drop(tool.id)
            return bring_up_to_date(self._index, tool, observer)

    def drop(self, name: str, *, observer: Observer = NO_OBSERVER) -> None:
        """Delete what the index holds of a tool; the next import or `sync` builds it again."""
        with self._importer.write_lock(observer, tools=[name]):
            self._index.drop(catalog.get_tool(self._store, name).id)


def save_unsaved(store: Store, index: Index, importer: Importer) -> None:
    """Save what searches had to build, so that the next process need not; an import that is running does the same."""
    tool_ids = index.unsaved_tools()
    with suppress(BunkoError):
        for tool in catalog.tools(store):
            if tool.id in tool_ids:
                with importer.write_lock(tools=[tool.name], wait_seconds=0):
                    index.sync(tool.id)


def bring_up_to_date(index: Index, tool: Tool, observer: Observer = NO_OBSERVER) -> ToolIndexState:
    """Bring an index of a tool up to date; raise an error if that fails."""
    view = index.sync(tool.id, observer)
    state = index.state(tool.id)
    if state.problem:
        raise IndexFailure(state.problem, hint=state.hint)
    if state.pending:
        raise IndexFailure(f"The index of {tool.name} could not be brought up to date", hint=" ".join(view.notices))
    return ToolIndexState(tool, state)
