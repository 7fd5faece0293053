"""Report what changed in memory since a generation."""

from __future__ import annotations

from collections.abc import Iterator

from bunko.records import StoredChunk
from bunko.stores.filters import tiebreak_order
from bunko.stores.memory.data import MemoryTables
from bunko.text.term_codec import unpack_terms


class MemoryChanges:
    """What changed since a generation, for indexes that follow the store."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""
        for row in sorted(self._tables.documents.values(), key=lambda row: row.id):
            if row.tool_id != tool_id or row.generation <= since:
                continue
            prepared = row.prepared
            terms = unpack_terms(prepared.packed_terms)
            for position, chunk in enumerate(prepared.chunks):
                vector = self._tables.vectors.get(prepared.vector_keys[position]) if prepared.vector_keys else None
                yield StoredChunk(
                    row.first_chunk + position,
                    row.id,
                    tiebreak_order(prepared.document.uri, chunk.index),
                    chunk.text_to_index(prepared.document.text.title),
                    *terms[position],
                    vector,
                )

    def chunk_ids(self, tool_id: int) -> list[int]:
        """Return the ids of all chunks of a tool."""
        return [
            row.first_chunk + position
            for row in self._tables.documents.values()
            if row.tool_id == tool_id
            for position in range(len(row.prepared.chunks))
        ]

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation; no records are ever pruned here."""
        return [
            document_id
            for owner_id, document_id, generation in self._tables.removals
            if owner_id == tool_id and generation > since
        ]

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Do nothing: removal records are never pruned here."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Do nothing: there are no index files here."""

    def index_file(self, tool_id: int) -> str:
        """Return an empty string: there are no index files here."""
        return ""
