"""A store and the ids of tools in, their searchable indexes out, each opened at first use."""

from __future__ import annotations

from pathlib import Path

from bunko.indexes.embedded.snapshot import Snapshot
from bunko.indexes.embedded.tool_index import Live
from bunko.protocols import Store
from bunko.records import Found

_READ_AT_ONCE = 200


class Indexes:
    """The index of each tool of one library; what is derived from the store lies in a folder."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.folder = folder
        self._store = store
        self._live: dict[int, Live] = {}

    def of(self, tool_id: int) -> Live:
        """Return the index of one tool."""
        if tool_id not in self._live:
            self._live[tool_id] = Live(self._store, tool_id, self.folder)
        return self._live[tool_id]

    def snapshot(self, tool_ids: list[int]) -> Snapshot:
        """Return the newest state of some tools' indexes as one; call it inside the store's `reading`."""
        found = [self.of(tool_id).snapshot() for tool_id in tool_ids]
        if len(found) == 1:
            return found[0]
        return Snapshot([part for one in found for part in one.parts], self._store.generation())

    def sample(self, tool_id: int, most: int) -> list[Found]:
        """Return at most so many chunks of a tool, spread evenly over it, of one state with its index."""
        with self._store.reading():
            snapshot = self.of(tool_id).snapshot()
            rows = snapshot.living().tolist() if snapshot.size else []
            some = [rows[number * len(rows) // most] for number in range(most)] if len(rows) > most else rows
            ids = [snapshot.chunk_id(row) for row in some]
            found: dict[int, Found] = {}
            for at in range(0, len(ids), _READ_AT_ONCE):
                found |= self._store.chunks(ids[at : at + _READ_AT_ONCE])
        return [found[chunk_id] for chunk_id in ids]

    def discard(self, tool_id: int) -> None:
        """Remove the derived files of a tool and forget its index."""
        self.of(tool_id).discard()
        del self._live[tool_id]
