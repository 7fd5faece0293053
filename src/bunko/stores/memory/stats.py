"""Count, measure and list the documents of a tool in memory."""

from __future__ import annotations

import json
from collections import Counter

from bunko.records import NO_FILTER, DatedDocument, DocumentSummary, Filter, PreparedDocument, StorageSize, Totals
from bunko.stores.filters import BEGINNING_CHARS, count_tags, document_matcher, newest_first, separate_chunk_text
from bunko.stores.memory.data import MemoryTables, with_lock
from bunko.types import Chunk, Text


class MemoryStats:
    """Counts, sizes and lists of a tool's documents, without their texts."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""
        documents = self._prepared_documents(tool_id)
        return Totals(
            len(documents),
            sum(len(prepared.chunks) for prepared in documents),
            sum(len(prepared.vector_keys) for prepared in documents),
            sum(len(prepared.document.text.text) for prepared in documents),
        )

    def count_incomplete(self) -> int:
        """Return 0: documents are never incomplete here."""
        return 0

    @with_lock
    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows would take in a file."""
        documents = self._prepared_documents(tool_id)
        text = sum(_utf8_length(prepared.document.text.text) for prepared in documents)
        terms = sum(len(prepared.packed_terms) for prepared in documents)
        chunks = sum(
            _chunk_bytes(chunk, prepared.document.text.text) for prepared in documents for chunk in prepared.chunks
        )
        vectors = [self._tables.vectors[key] for key in {key for prepared in documents for key in prepared.vector_keys}]
        dimension = len(vectors[0]) if vectors else 0
        return StorageSize(text, terms + chunks, 4 * dimension * len(vectors), dimension)

    @with_lock
    def dimension(self, tool_id: int) -> int:
        """Return the dimension of a tool's vectors, 0 if there are none."""
        keys = (key for prepared in self._prepared_documents(tool_id) for key in prepared.vector_keys)
        return next((len(self._tables.vectors[key]) for key in keys), 0)

    @with_lock
    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""
        documents = self._prepared_documents(tool_id)
        return sorted(Counter(len(chunk.text) for prepared in documents for chunk in prepared.chunks).items())

    @with_lock
    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""
        documents = sorted(self._prepared_documents(tool_id), key=lambda prepared: prepared.document.uri)
        return [
            DocumentSummary(
                prepared.document.uri, text.title, len(prepared.chunks), len(text.text), _body_beginning(text)
            )
            for prepared in documents[skip : skip + limit]
            for text in (prepared.document.text,)
        ]

    @with_lock
    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""
        return count_tags(prepared.document.text.tags for prepared in self._prepared_documents(tool_id))

    @with_lock
    def recent_documents(self, tool_id: int, *, limit: int = 10, where: Filter = NO_FILTER) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""
        matches = document_matcher(where, tool_id)
        rows = {
            row.prepared.document.uri: row
            for row in self._tables.documents_of(tool_id)
            if matches(row.prepared.document.uri, row.date, frozenset(row.prepared.document.text.tags))
        }
        return [
            DatedDocument(uri, text.title, date, text.tags, _body_beginning(text), rows[uri].entry.lines)
            for uri, date in newest_first((uri, row.date) for uri, row in rows.items())[:limit]
            for text in (rows[uri].prepared.document.text,)
        ]

    def _prepared_documents(self, tool_id: int) -> list[PreparedDocument]:
        return [row.prepared for row in self._tables.documents_of(tool_id)]


def _chunk_bytes(chunk: Chunk, document_text: str) -> int:
    return (
        _utf8_length(chunk.heading)
        + _utf8_length(json.dumps(chunk.heading_path, ensure_ascii=False))
        + _utf8_length(separate_chunk_text(chunk, document_text) or "")
    )


def _body_beginning(text: Text) -> str:
    return text.text[text.body_start :][:BEGINNING_CHARS]


def _utf8_length(text: str) -> int:
    return len(text.encode())
