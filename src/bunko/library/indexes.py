"""A store and the ids of tools in, their searchable indexes out, each opened at first use."""

from __future__ import annotations

from pathlib import Path

from bunko.indexes.embedded.snapshot import Snapshot
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.records import ChunkRow

_READ_BATCH = 200


class ToolIndexes:
    """The index of each tool of one library; what is derived from the store lies in a folder."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.folder = folder
        self._store = store
        self._by_tool_id: dict[int, ToolIndex] = {}

    def index_of(self, tool_id: int) -> ToolIndex:
        """Return the index of one tool."""
        if tool_id not in self._by_tool_id:
            self._by_tool_id[tool_id] = ToolIndex(self._store, tool_id, self.folder)
        return self._by_tool_id[tool_id]

    def snapshot(self, tool_ids: list[int]) -> Snapshot:
        """Return the newest state of some tools' indexes as one; call it inside the store's `reading`."""
        found = [self.index_of(tool_id).snapshot() for tool_id in tool_ids]
        if len(found) == 1:
            return found[0]
        return Snapshot([part for one in found for part in one.views], self._store.generation())

    def sample_chunks(self, tool_id: int, limit: int) -> list[ChunkRow]:
        """Return at most so many chunks of a tool, spread evenly over it, of one state with its index."""
        with self._store.read_transaction():
            snapshot = self.index_of(tool_id).snapshot()
            rows = snapshot.alive_rows().tolist() if snapshot.size else []
            some = [rows[number * len(rows) // limit] for number in range(limit)] if len(rows) > limit else rows
            ids = [snapshot.chunk_id(row) for row in some]
            found: dict[int, ChunkRow] = {}
            for at in range(0, len(ids), _READ_BATCH):
                found |= self._store.chunks(ids[at : at + _READ_BATCH])
        return [found[chunk_id] for chunk_id in ids]

    def delete_index(self, tool_id: int) -> None:
        """Remove the derived files of a tool and forget its index."""
        self.index_of(tool_id).discard()
        del self._by_tool_id[tool_id]
