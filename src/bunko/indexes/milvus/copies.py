"""Keep the copies of tools in collections of Milvus, one for each dimension of vectors.

A collection belongs to one library: its row 0 has the id of the library. The copy of a tool has a row with its negative
id, which holds the stamp of the copy. All other rows are chunks, under their ids in the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from bunko.errors import IndexFailure
from bunko.indexes.milvus import dimensions
from bunko.indexes.milvus.server import SCALAR_FIELDS, MilvusServer
from bunko.indexes.replica import Stamp
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.text import ngrams

# With other dimensions or n-grams in its rows, a copy is made again.
_ROW_FORMAT = f"{dimensions.VERSION}.{ngrams.VERSION}"
_LOCK_SECONDS = 60.0
_NOT_ALLOWED = re.compile(r"[^0-9A-Za-z_]")


class ToolCopy(NamedTuple):
    """The copy of a tool, where it is and how far it has come."""

    dimension: int  # of its vectors, 0 if it has none
    collection: str
    stamp: Stamp


class ToolCopies:
    """The collections of one library."""

    def __init__(self, server: MilvusServer, store: Store, collection_name: str) -> None:
        self._server, self._store, self._library_id = server, store, store.id
        self._prefix = f"{_NOT_ALLOWED.sub('_', collection_name)}_{store.id[:12]}_"
        self._checked: set[str] = set()  # collections that are known to be ours

    def find(self, tool_id: int) -> ToolCopy | None:
        """Return the copy of a tool; raise an error if a collection with a name of ours is not ours."""
        for name, dimension in self._list_collections():
            for note in self._read_notes(name, dimension, tool_id):
                generation, copy, nonce, row_format = (*note.split(), "", "", "", "")[:4]
                if generation.isdigit() and row_format == _ROW_FORMAT:
                    return ToolCopy(dimension, name, Stamp(int(generation), copy, nonce))
        return None

    def create(self, tool_id: int, dimension: int, stamp: Stamp) -> ToolCopy:
        """Start the copy of a tool, in a collection that is created if there is none; return it."""
        name = f"{self._prefix}{dimension}"
        with self._lock():
            if not self._is_checked(name, dimension):
                self._server.create(name, dimension)
                reach_failpoint("index.collection")
                self._server.upsert(name, [self._note_row(0, self._library_id, dimension)])
                self._checked.add(name)
            copy = ToolCopy(dimension, name, stamp)
            self.write_stamp(tool_id, copy)
        return copy

    def write_stamp(self, tool_id: int, copy: ToolCopy) -> None:
        """Stamp the copy of a tool."""
        note = f"{copy.stamp.generation} {copy.stamp.copy} {copy.stamp.nonce} {_ROW_FORMAT}"
        self._server.upsert(copy.collection, [self._note_row(-tool_id, note, copy.dimension)])

    def delete(self, tool_id: int) -> None:
        """Delete the copies of a tool from all collections, and collections that hold no other tool."""
        with self._lock():
            for name, dimension in self._list_collections():
                if not self._is_checked(name, dimension):
                    continue
                self._server.delete(name, f"id == {-tool_id}")  # first: a copy without a stamp is filled from scratch
                self._server.delete(name, f"tool == {tool_id}")
                if not self._server.count(name, "id != 0"):
                    self._server.drop(name)
                    self._checked.discard(name)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep others from creating and dropping collections: imports of different tools may run at the same time."""
        lock = self._store.lock("index")
        if not lock.acquire(_LOCK_SECONDS):
            raise IndexFailure(
                f"{lock.holder() or 'Another process'} is creating a collection in Milvus at {self._server.location}",
                hint="Wait for it, then run: bunko index sync.",
            )
        try:
            yield
        finally:
            lock.release()

    def _is_checked(self, name: str, dimension: int) -> bool:
        """Return whether there is a collection of this name; raise an error if it is not ours."""
        description = self._server.describe(name)
        if description is None:
            self._checked.discard(name)
            return False
        if name not in self._checked:
            self._check_owner(name, dimension, *description)
            self._checked.add(name)
        return True

    def _list_collections(self) -> list[tuple[str, int]]:
        """Return the names of the collections of this library, and their dimensions."""
        names = self._server.collections()
        self._checked.intersection_update(names)
        own_names = [name for name in names if re.fullmatch(rf"{self._prefix}\d+", name)]
        return [(name, int(name.removeprefix(self._prefix))) for name in own_names]

    def _read_notes(self, name: str, dimension: int, tool_id: int) -> list[str]:
        """Return the note of the copy of a tool, if it has one in a collection."""
        try:
            if name not in self._checked and not self._is_checked(name, dimension):
                return []
            return [str(row["note"]) for row in self._server.query(name, f"id == {-tool_id}", ["note"], limit=1)]
        except IndexFailure as failure:
            if not failure.is_away and self._server.describe(name) is None:
                return []  # another process has dropped it meanwhile
            raise

    def _check_owner(self, name: str, dimension: int, fields: set[str], actual_dimension: int) -> None:
        expected = {*SCALAR_FIELDS, "sparse", *(["dense"] if dimension else [])}
        if fields == expected and actual_dimension == dimension:
            rows = self._server.query(name, "id == 0", ["note"], limit=1)
            if [row["note"] for row in rows] == [self._library_id]:
                return
            if not rows and not self._server.query(name, "id != 0", ["id"], limit=1):
                # Its creator was stopped right after.
                self._server.upsert(name, [self._note_row(0, self._library_id, dimension)])
                return
        raise IndexFailure(
            f"The collection {name!r} in Milvus at {self._server.location} was made by something else",
            hint="Choose another name with milvus.collection_name, or delete the collection.",
        )

    def _note_row(self, row_id: int, note: str, dimension: int) -> Mapping[str, Any]:
        row: dict[str, Any] = {
            "id": row_id, "tool": min(row_id, 0), "document_id": 0, "generation": 0, "length": 0, "path": "", "date": 0,
            "tags": [], "note": note, "sparse": {1: 1e-6},
        }  # fmt: skip
        return row | ({"dense": [0.0] * dimension} if dimension else {})
