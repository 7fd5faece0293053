"""Report what changed in memory since a generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bunko.records import ChunkSentences, ChunkTerms, ChunkText, ChunkVector, StoredChunk
from bunko.stores.filters import tiebreak_order
from bunko.stores.memory.data import DocumentRow, MemoryTables
from bunko.text.term_codec import unpack_terms


class MemoryChanges:
    """What changed since a generation, for indexes that follow the store."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def chunks_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""
        return self.chunks_of(self.documents_since(tool_id, since))

    def documents_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of the documents written after a generation, in the order they were written."""
        rows = self._tables.documents.values()
        return sorted(row.id for row in rows if row.tool_id == tool_id and row.generation > since)

    def chunks_of(self, document_ids: Sequence[int]) -> Iterator[StoredChunk]:
        """Yield the chunks of documents, in the order they were written; a document that was removed has none."""
        rows = {row.id: row for row in self._tables.documents.values()}
        return self._stored_chunks([rows[document_id] for document_id in sorted(document_ids) if document_id in rows])

    def chunk_terms(self, ids: Sequence[int]) -> Iterator[ChunkTerms]:
        """Yield the terms of the chunks with these ids that still exist, in any order."""
        for chunk in self._chunks_with_ids(ids):
            yield ChunkTerms(
                chunk.chunk_id, chunk.document_id, chunk.tiebreak_order, chunk.term_keys, chunk.term_counts
            )

    def chunk_vectors(self, ids: Sequence[int]) -> Iterator[ChunkVector]:
        """Yield the vectors of the chunks with these ids that still exist, in any order."""
        for chunk in self._chunks_with_ids(ids):
            yield ChunkVector(chunk.chunk_id, chunk.document_id, chunk.tiebreak_order, chunk.vector)

    def chunk_sentences(self, ids: Sequence[int]) -> Iterator[ChunkSentences]:
        """Yield the sentence vectors of the chunks with these ids that still exist, in any order."""
        for chunk in self._chunks_with_ids(ids):
            yield ChunkSentences(chunk.chunk_id, chunk.document_id, chunk.tiebreak_order, chunk.sentences)

    def chunk_texts(self, ids: Sequence[int]) -> Iterator[ChunkText]:
        """Yield the texts of the chunks with these ids that still exist, in any order."""
        for chunk in self._chunks_with_ids(ids):
            yield ChunkText(chunk.chunk_id, chunk.document_id, chunk.tiebreak_order, chunk.text)

    def _chunks_with_ids(self, ids: Sequence[int]) -> Iterator[StoredChunk]:
        id_set = set(ids)
        return (chunk for chunk in self._stored_chunks(self._tables.documents.values()) if chunk.chunk_id in id_set)

    def _stored_chunks(self, rows: Iterable[DocumentRow]) -> Iterator[StoredChunk]:
        for row in rows:
            prepared = row.prepared
            terms = unpack_terms(prepared.packed_terms)
            for position, chunk in enumerate(prepared.chunks):
                key = prepared.vector_keys[position] if prepared.vector_keys else b""
                yield StoredChunk(
                    row.first_chunk + position,
                    row.id,
                    tiebreak_order(prepared.document.uri, chunk.index),
                    chunk.text_to_index(prepared.document.text.title),
                    *terms[position],
                    self._tables.vectors.get(key),
                    self._tables.sentences.get(key),
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

    def redated_since(self, tool_id: int, since: int) -> list[int]:
        """Return the ids of documents whose date, that of their file, became another day after a generation."""
        current = {row.id for row in self._tables.documents_of(tool_id)}
        ids = {document_id for _, document_id, generation in self._tables.redatings if generation > since}
        return sorted(ids & current)

    def last_generation(self, tool_id: int) -> int:
        """Return a generation after which nothing of a tool was written or removed; it never goes back."""
        written = [row.generation for row in self._tables.documents_of(tool_id)]
        recorded = [*self._tables.removals, *self._tables.redatings]
        return max([0, *written, *(generation for owner_id, _, generation in recorded if owner_id == tool_id)])

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Do nothing: removal records are never pruned here."""

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Do nothing: there are no index files here."""

    def index_file(self, tool_id: int) -> str:
        """Return an empty string: there are no index files here."""
        return ""

    def set_index_note(self, tool_id: int, index: str, note: str) -> None:
        """Store what an index outside the library must know about its copy of a tool; an empty note deletes it."""
        self._tables.index_notes[tool_id, index] = note

    def index_note(self, tool_id: int, index: str) -> str:
        """Return what an index stored about its copy of a tool, or an empty string."""
        return self._tables.index_notes.get((tool_id, index), "")
