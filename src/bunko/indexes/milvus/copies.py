"""Keep the copies of tools in collections of Milvus, one for each dimension of vectors.

A collection belongs to one library: its row 0 has the id of the library, and the length of a chunk by which the weights
of all words were computed. The copy of a tool has a row with its negative id, which holds the stamp of the copy. All
other rows are chunks, under their ids in the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from bunko.errors import IndexFailure
from bunko.indexes.milvus import cards, dimensions
from bunko.indexes.milvus.dimensions import FILLER_DIMENSION, FILLER_WEIGHT
from bunko.indexes.milvus.server import SCALAR_FIELDS, MilvusServer
from bunko.indexes.replica import Stamp
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.text import ngrams

# With other cards, dimensions or n-grams in its rows, a copy is made again.
_ROW_FORMAT = f"{cards.VERSION}.{dimensions.VERSION}.{ngrams.VERSION}"
_LOCK_SECONDS = 60.0
_USUAL_LENGTH = 100.0  # of a chunk, in words
_NOT_ALLOWED = re.compile(r"[^0-9A-Za-z_]")


class ToolCopy(NamedTuple):
    """The copy of a tool, where it is and how far it has come."""

    dimension: int  # of its vectors, 0 if it has none
    collection: str
    average_length: float  # by which words are weighed
    stamp: Stamp


class ToolCopies:
    """The collections of one library."""

    def __init__(self, server: MilvusServer, store: Store, collection_name: str) -> None:
        self._server, self._store, self._library_id = server, store, store.id
        self._prefix = f"{_NOT_ALLOWED.sub('_', collection_name)}_{store.id[:12]}_"
        self._average_lengths: dict[str, float] = {}  # of the collections that are known to be ours

    def find(self, tool_id: int) -> ToolCopy | None:
        """Return the copy of a tool; raise an error if a collection with a name of ours is not ours."""
        for name, dimension in self._list_collections():
            for note in self._read_notes(name, dimension, tool_id):
                generation, copy, nonce, row_format = (*note.split(), "", "", "", "")[:4]
                if generation.isdigit() and row_format == _ROW_FORMAT:
                    average_length = self._average_lengths[name]
                    return ToolCopy(dimension, name, average_length, Stamp(int(generation), copy, nonce))
        return None

    def create(self, tool_id: int, dimension: int, stamp: Stamp, average_length: float) -> ToolCopy:
        """Start the copy of a tool, in a collection that is created if there is none; return it.

        All collections weigh words by the average length of the tool that was copied first, so that the weights of all
        tools can be compared.
        """
        name = f"{self._prefix}cards_{dimension}"
        with self._lock():
            self._drop_old_collections()
            if not self._is_checked(name, dimension):
                self._server.create(name, dimension)
                reach_failpoint("index.collection")
                average_length = next(iter(self._average_lengths.values()), average_length or _USUAL_LENGTH)
                self._write_owner(name, dimension, average_length)
            copy = ToolCopy(dimension, name, self._average_lengths[name], stamp)
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
                    self._average_lengths.pop(name, None)

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
            self._average_lengths.pop(name, None)
            return False
        if name not in self._average_lengths:
            self._check_owner(name, dimension, *description)
        return True

    def _list_collections(self) -> list[tuple[str, int]]:
        """Return the names of the collections of this library, and their dimensions."""
        names = self._server.collections()
        self._average_lengths = {name: length for name, length in self._average_lengths.items() if name in names}
        own_names = [name for name in names if re.fullmatch(rf"{self._prefix}cards_\d+", name)]
        return [(name, int(name.removeprefix(f"{self._prefix}cards_"))) for name in own_names]

    def _drop_old_collections(self) -> None:
        """Drop what an earlier version of bunko made for this library: its rows have no cards."""
        for name in self._server.collections():
            if re.fullmatch(rf"{self._prefix}\d+", name):
                rows = self._server.query(name, "id == 0", ["note"], limit=1)
                if [row["note"] for row in rows] == [self._library_id]:
                    for row in self._server.query(name, "id < 0", ["id", "note"]):
                        _, copy, *_ = *str(row["note"]).split(), "", ""
                        self._store.index_statistics.clear(-int(row["id"]), copy)
                    self._server.drop(name)

    def _read_notes(self, name: str, dimension: int, tool_id: int) -> list[str]:
        """Return the note of the copy of a tool, if it has one in a collection."""
        try:
            if name not in self._average_lengths and not self._is_checked(name, dimension):
                return []
            return [str(row["card"]) for row in self._server.query(name, f"id == {-tool_id}", ["card"], limit=1)]
        except IndexFailure as failure:
            if not failure.is_away and self._server.describe(name) is None:
                return []  # another process has dropped it meanwhile
            raise

    def _check_owner(self, name: str, dimension: int, fields: set[str], actual_dimension: int) -> None:
        expected = {*SCALAR_FIELDS, "sparse", *(["dense"] if dimension else [])}
        if fields == expected and actual_dimension == dimension:
            rows = self._server.query(name, "id == 0", ["card"], limit=1)
            owner, _, average_length = str(rows[0]["card"]).partition(" ") if rows else ("", "", "")
            if owner == self._library_id:
                self._average_lengths[name] = float(average_length)
                return
            if not rows and not self._server.query(name, "id != 0", ["id"], limit=1):
                # Its creator was stopped right after.
                self._write_owner(name, dimension, _USUAL_LENGTH)
                return
        raise IndexFailure(
            f"The collection {name!r} in Milvus at {self._server.location} was made by something else",
            hint="Choose another name with milvus.collection_name, or delete the collection.",
        )

    def _write_owner(self, name: str, dimension: int, average_length: float) -> None:
        self._server.upsert(name, [self._note_row(0, f"{self._library_id} {average_length:.1f}", dimension)])
        self._average_lengths[name] = round(average_length, 1)

    def _note_row(self, row_id: int, note: str, dimension: int) -> Mapping[str, Any]:
        row: dict[str, Any] = {
            "id": row_id, "tool": min(row_id, 0), "document_id": 0, "path": "", "date": 0,
            "tags": [], "card": note, "more": [], "sparse": {FILLER_DIMENSION: FILLER_WEIGHT},
        }  # fmt: skip
        return row | ({"dense": [0.0] * dimension} if dimension else {})
