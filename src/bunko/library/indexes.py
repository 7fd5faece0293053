"""Open the search index of each tool at first use."""

from __future__ import annotations

from pathlib import Path

from bunko.indexes.embedded.snapshot import Snapshot
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import Store
from bunko.records import ChunkRow

_READ_BATCH = 200


class ToolIndexes:
    """The indexes of one library's tools; their derived files are stored in `folder`."""

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
        """Return the newest state of several indexes as one; call it inside the store's `read_transaction`."""
        snapshots = [self.index_of(tool_id).snapshot() for tool_id in tool_ids]
        if len(snapshots) == 1:
            return snapshots[0]
        return Snapshot([view for snapshot in snapshots for view in snapshot.views], self._store.generation())

    def sample_chunks(self, tool_id: int, limit: int) -> list[ChunkRow]:
        """Return at most `limit` chunks of a tool, spread evenly, from the same state as its index."""
        with self._store.read_transaction():
            snapshot = self.index_of(tool_id).snapshot()
            rows = snapshot.alive_rows().tolist() if snapshot.size else []
            sample = [rows[index * len(rows) // limit] for index in range(limit)] if len(rows) > limit else rows
            ids = [snapshot.chunk_id(row) for row in sample]
            chunks: dict[int, ChunkRow] = {}
            for start in range(0, len(ids), _READ_BATCH):
                chunks |= self._store.documents.chunks(ids[start : start + _READ_BATCH])
        return [chunks[chunk_id] for chunk_id in ids]

    def delete_index(self, tool_id: int) -> None:
        """Delete the derived files of a tool and drop its index."""
        self.index_of(tool_id).discard()
        del self._by_tool_id[tool_id]
