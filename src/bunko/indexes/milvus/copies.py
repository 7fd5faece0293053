"""Keep the copies of tools in collections of Milvus, one for each dimension of vectors.

A collection belongs to one library: its row 0 has the id of the library. The copy of a tool has a row with its negative
id, which holds the stamp of the copy. All other rows are chunks, under their ids in the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bunko.errors import IndexFailure
from bunko.indexes.milvus import dimensions
from bunko.indexes.milvus.server import SCALAR_FIELDS, MilvusServer
from bunko.indexes.replica import Stamp
from bunko.text import ngrams

# With other dimensions or n-grams in its rows, a copy is made anew.
_ROW_FORMAT = f"{dimensions.VERSION}.{ngrams.VERSION}"
_NOT_ALLOWED = re.compile(r"[^0-9A-Za-z_]")


class ToolCopies:
    """The collections of one library."""

    def __init__(self, server: MilvusServer, library_id: str, collection_name: str) -> None:
        self._server, self._library_id = server, library_id
        self._prefix = f"{_NOT_ALLOWED.sub('_', collection_name)}_{library_id[:12]}_"
        self._checked: set[str] = set()  # collections that are known to be ours

    def name(self, dimension: int) -> str:
        """Return the name of the collection for vectors of a dimension, 0 for chunks without vectors."""
        return f"{self._prefix}{dimension}"

    def exists(self, dimension: int) -> bool:
        """Return whether there is a collection for a dimension; raise an error if it is not ours."""
        name = self.name(dimension)
        description = self._server.describe(name)
        if description is None:
            self._checked.discard(name)
            return False
        if name not in self._checked:
            self._check_owner(name, dimension, *description)
            self._checked.add(name)
        return True

    def ensure(self, dimension: int) -> str:
        """Return the name of the collection for a dimension, created if there is none."""
        name = self.name(dimension)
        if not self.exists(dimension):
            self._server.create(name, dimension)
            self._server.upsert(name, [self._note_row(0, self._library_id, dimension)])
            self._checked.add(name)
        return name

    def stamp(self, dimension: int, tool_id: int) -> Stamp | None:
        """Return the stamp of the copy of a tool, or None if there is no copy."""
        for row in self._server.query(self.name(dimension), f"id == {-tool_id}", ["note"], limit=1):
            generation, nonce, row_format = (*str(row["note"]).split(), "", "", "")[:3]
            if generation.isdigit() and row_format == _ROW_FORMAT:
                return Stamp(int(generation), nonce)
        return None

    def write_stamp(self, dimension: int, tool_id: int, stamp: Stamp) -> None:
        """Stamp the copy of a tool."""
        row = self._note_row(-tool_id, f"{stamp.generation} {stamp.nonce} {_ROW_FORMAT}", dimension)
        self._server.upsert(self.name(dimension), [row])

    def delete(self, tool_id: int) -> None:
        """Delete the copies of a tool from all collections, and collections that hold no other tool."""
        for name, dimension in self._own_collections():
            if not self.exists(dimension):
                continue
            self._server.delete(name, f"id == {-tool_id}")  # first: a copy without a stamp is filled from scratch
            self._server.delete(name, f"tool == {tool_id}")
            if not self._server.count(name, "id != 0"):
                self._server.drop(name)
                self._checked.discard(name)

    def _own_collections(self) -> Iterator[tuple[str, int]]:
        for name in self._server.collections():
            dimension = name.removeprefix(self._prefix)
            if name.startswith(self._prefix) and dimension.isdigit():
                yield name, int(dimension)

    def _check_owner(self, name: str, dimension: int, fields: set[str], actual_dimension: int) -> None:
        expected = {*SCALAR_FIELDS, "sparse", *(["dense"] if dimension else [])}
        if fields == expected and actual_dimension == dimension:
            rows = self._server.query(name, "id == 0", ["note"], limit=1)
            if [row["note"] for row in rows] == [self._library_id]:
                return
            if not rows and not self._server.query(name, "id != 0", ["id"], limit=1):
                # Whoever created it was stopped right after.
                self._server.upsert(name, [self._note_row(0, self._library_id, dimension)])
                return
        raise IndexFailure(
            f"The collection {name!r} in Milvus at {self._server.location} was made by something else",
            hint="Choose another name with milvus.collection_name, or delete the collection.",
        )

    def _note_row(self, row_id: int, note: str, dimension: int) -> Mapping[str, Any]:
        row: dict[str, Any] = {
            "id": row_id, "tool": min(row_id, 0), "document_id": 0, "generation": 0, "length": 0, "path": "",
            "tags": [], "note": note, "sparse": {1: 1e-6},
        }  # fmt: skip
        return row | ({"dense": [0.0] * dimension} if dimension else {})
