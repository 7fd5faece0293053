"""Keep documents and their chunks in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.records import (
    ChunkRow,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    ListedDocument,
    PreparedDocument,
    StoredDocument,
)
from bunko.stores import filters
from bunko.stores.filters import document_matcher, is_redated
from bunko.stores.memory.data import DocumentRow, MemoryTables, with_lock
from bunko.types import Fingerprint, Problem, SourceEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceVectors


class MemoryDocuments:
    """The documents of all tools, with their chunks."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""
        failed = {
            uri: filters.fingerprint(failure.content_hash, failure.entry)
            for (owner_id, uri), failure in self._tables.failures.items()
            if owner_id == tool_id
        }
        return failed | {
            uri: filters.fingerprint(row.prepared.document.content_hash, row.entry)
            for (owner_id, uri), row in self._tables.documents.items()
            if owner_id == tool_id
        }

    @with_lock
    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""
        return [
            Problem(uri, failure.reason)
            for (owner_id, uri), failure in sorted(self._tables.failures.items())
            if owner_id == tool_id
        ]

    @with_lock
    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        sentences: Mapping[bytes, SentenceVectors] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document."""
        tables = self._tables
        tables.versions[tool_id] += 1
        tables.store_vectors(vectors or {}, sentences or {}, usage or {})
        redated = [row for entry in touch if (row := self._find_redated(tool_id, entry))]
        if upsert or fail or remove or redated:
            tables.generation += 1
        tables.redatings += [(tool_id, row.id, tables.generation) for row in redated]
        replaced = (*(prepared.document.uri for prepared in upsert), *(failure.entry.uri for failure in fail))
        for uri in (*remove, *replaced):
            tables.remove_document(tool_id, uri)
        tables.failures.update({(tool_id, failure.entry.uri): failure for failure in fail})
        for prepared in upsert:
            self._insert_document(tool_id, prepared)
        for entry in touch:
            self._touch_entry(tool_id, entry)
        return tables.generation

    @with_lock
    def get_all(self, tool_id: int, uris: Sequence[str]) -> dict[str, StoredDocument]:
        """Return the documents with these URIs that exist, by URI."""
        documents = {uri: self.get(tool_id, uri) for uri in uris}
        return {uri: document for uri, document in documents.items() if document is not None}

    @with_lock
    def get(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""
        row = self._tables.documents.get((tool_id, uri))
        if row is None:
            return None
        content_hash, text = row.prepared.document.content_hash, row.prepared.document.text
        return StoredDocument(
            uri,
            text.title,
            row.date,
            text.tags,
            content_hash,
            text.media_type,
            text.text,
            text.body_start,
            row.entry.lines,
        )

    @with_lock
    def chunks(self, ids: Sequence[int], *, read_documents: bool = False) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist, and with `read_documents` what they were cut from."""
        rows = {}
        for row in self._tables.documents.values():
            for position, chunk in enumerate(row.prepared.chunks):
                if row.first_chunk + position in ids:
                    document = row.prepared.document
                    rows[row.first_chunk + position] = ChunkRow(
                        row.tool_id,
                        row.id,
                        document.uri,
                        document.text.title,
                        row.date,
                        document.text.tags,
                        document.content_hash,
                        chunk,
                        self.get(row.tool_id, document.uri) if read_documents else None,
                    )
        return rows

    @with_lock
    def select(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        matches = document_matcher(where, tool_id)
        return [
            row.id
            for row in self._tables.documents_of(tool_id)
            if matches(row.prepared.document.uri, row.date, frozenset(row.prepared.document.text.tags))
        ]

    @with_lock
    def find(self, tool_id: int, where: Filter) -> list[ListedDocument]:
        """Return the documents that match a filter, without their texts, in any order."""
        matches = document_matcher(where, tool_id)
        documents = map(_listed_document, self._tables.documents_of(tool_id))
        return [document for document in documents if matches(document.uri, document.date, frozenset(document.tags))]

    @with_lock
    def page(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[ListedDocument]:
        """Return the documents whose URIs come after a given one, sorted by URI, without their texts."""
        documents = map(_listed_document, self._tables.documents_of(tool_id))
        return sorted((one for one in documents if one.uri > after), key=lambda one: one.uri)[:limit]

    @with_lock
    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""
        return sorted(uri for owner_id, uri in self._tables.documents if owner_id == tool_id and uri > after)[:limit]

    @with_lock
    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""
        return sorted(
            row.prepared.document.uri
            for row in self._tables.documents_of(tool_id)
            if row.prepared.document.content_hash.startswith(prefix)
        )

    @with_lock
    def export(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""
        rows = [
            self._tables.documents[tool_id, uri]
            for uri in sorted(set(uris))
            if (tool_id, uri) in self._tables.documents
        ]
        return [replace(row.prepared, document=replace(row.prepared.document, entry=row.entry)) for row in rows]

    def _insert_document(self, tool_id: int, prepared: PreparedDocument) -> None:
        document = prepared.document
        self._tables.documents[tool_id, document.uri] = DocumentRow(
            self._tables.next_document,
            tool_id,
            self._tables.generation,
            prepared,
            document.entry,
            self._tables.next_chunk,
        )
        self._tables.next_document += 1
        self._tables.next_chunk += len(prepared.chunks)

    def _find_redated(self, tool_id: int, entry: SourceEntry) -> DocumentRow | None:
        row = self._tables.documents.get((tool_id, entry.uri))
        return row if row and is_redated(row.prepared.document.text.date, row.entry, entry) else None

    def _touch_entry(self, tool_id: int, entry: SourceEntry) -> None:
        if row := self._tables.documents.get((tool_id, entry.uri)):
            row.prepared = _shift_lines(row.prepared, entry.lines.first - row.entry.lines.first)
            row.entry = entry
        if failure := self._tables.failures.get((tool_id, entry.uri)):
            self._tables.failures[tool_id, entry.uri] = replace(failure, entry=entry)


def _shift_lines(prepared: PreparedDocument, offset: int) -> PreparedDocument:
    if not offset:
        return prepared
    chunks = [
        replace(chunk, first_line=chunk.first_line + offset, last_line=chunk.last_line + offset)
        for chunk in prepared.chunks
    ]
    return replace(prepared, chunks=chunks)


def _listed_document(row: DocumentRow) -> ListedDocument:
    entry, text = row.prepared.document.entry, row.prepared.document.text
    return ListedDocument(
        entry.uri, text.title, row.date, text.tags, text.media_type, entry.size, entry.modified_ns, entry.lines
    )
