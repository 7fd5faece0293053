"""Write, read and select documents and chunks in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bunko.records import ChunkRow, FailedDocument, Filter, PreparedDocument, StoredChunk, StoredDocument
from bunko.stores import filters
from bunko.stores.filters import document_matcher, tiebreak_order
from bunko.stores.memory.data import DocumentRow, MemoryTables
from bunko.text.term_codec import unpack_terms
from bunko.types import Fingerprint, Problem, SourceEntry


def fingerprints(tables: MemoryTables, tool_id: int) -> dict[str, Fingerprint]:
    """Return the fingerprint of each document and of each failed entry, by URI."""
    failed = {
        uri: filters.fingerprint(failure.content_hash, failure.entry)
        for (owner_id, uri), failure in tables.failures.items()
        if owner_id == tool_id
    }
    return failed | {
        uri: filters.fingerprint(row.prepared.document.content_hash, row.entry)
        for (owner_id, uri), row in tables.documents.items()
        if owner_id == tool_id
    }


def failures(tables: MemoryTables, tool_id: int) -> list[Problem]:
    """Return the entries that could not be imported."""
    return [
        Problem(uri, failure.reason)
        for (owner_id, uri), failure in sorted(tables.failures.items())
        if owner_id == tool_id
    ]


def write_documents(
    tables: MemoryTables,
    tool_id: int,
    *,
    upsert: Sequence[PreparedDocument] = (),
    fail: Sequence[FailedDocument] = (),
    remove: Sequence[str] = (),
    touch: Sequence[SourceEntry] = (),
) -> int:
    """Write documents; return the generation, a new one if the change affects search results."""
    if upsert or fail or remove:
        tables.generation += 1
    replaced = (*(prepared.document.uri for prepared in upsert), *(failure.entry.uri for failure in fail))
    for uri in (*remove, *replaced):
        _remove_document(tables, tool_id, uri)
    tables.failures.update({(tool_id, failure.entry.uri): failure for failure in fail})
    for prepared in upsert:
        _insert_document(tables, tool_id, prepared)
    for entry in touch:
        _touch_entry(tables, tool_id, entry)
    return tables.generation


def _remove_document(tables: MemoryTables, tool_id: int, uri: str) -> None:
    tables.failures.pop((tool_id, uri), None)
    if row := tables.documents.pop((tool_id, uri), None):
        tables.removals.append((tool_id, row.id, tables.generation))


def _insert_document(tables: MemoryTables, tool_id: int, prepared: PreparedDocument) -> None:
    document = prepared.document
    tables.documents[tool_id, document.uri] = DocumentRow(
        tables.next_document, tool_id, tables.generation, prepared, document.entry, tables.next_chunk
    )
    tables.next_document += 1
    tables.next_chunk += len(prepared.chunks)


def _touch_entry(tables: MemoryTables, tool_id: int, entry: SourceEntry) -> None:
    if row := tables.documents.get((tool_id, entry.uri)):
        row.prepared = _shift_lines(row.prepared, entry.lines.first - row.entry.lines.first)
        row.entry = entry
    if failure := tables.failures.get((tool_id, entry.uri)):
        tables.failures[tool_id, entry.uri] = replace(failure, entry=entry)


def _shift_lines(prepared: PreparedDocument, offset: int) -> PreparedDocument:
    if not offset:
        return prepared
    chunks = [
        replace(chunk, first_line=chunk.first_line + offset, last_line=chunk.last_line + offset)
        for chunk in prepared.chunks
    ]
    return replace(prepared, chunks=chunks)


def changes_since(tables: MemoryTables, tool_id: int, since: int) -> Iterator[StoredChunk]:
    """Yield the chunks of all documents written after a generation, in the order they were written."""
    for row in sorted(tables.documents.values(), key=lambda row: row.id):
        if row.tool_id != tool_id or row.generation <= since:
            continue
        prepared = row.prepared
        terms = unpack_terms(prepared.packed_terms)
        for position, chunk in enumerate(prepared.chunks):
            vector = tables.vectors.get(prepared.vector_keys[position]) if prepared.vector_keys else None
            yield StoredChunk(
                row.first_chunk + position,
                row.id,
                tiebreak_order(prepared.document.uri, chunk.index),
                chunk.text_in_context(prepared.document.text.title),
                *terms[position],
                vector,
            )


def removed_since(tables: MemoryTables, tool_id: int, since: int) -> list[int]:
    """Return the ids of the documents removed after a generation."""
    return [
        document_id
        for owner_id, document_id, generation in tables.removals
        if owner_id == tool_id and generation > since
    ]


def chunks(tables: MemoryTables, ids: Sequence[int]) -> dict[int, ChunkRow]:
    """Return the chunks with these ids that still exist."""
    rows = {}
    for row in tables.documents.values():
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
                )
    return rows


def document(tables: MemoryTables, tool_id: int, uri: str) -> StoredDocument | None:
    """Return the document with this URI, or None."""
    row = tables.documents.get((tool_id, uri))
    if row is None:
        return None
    content_hash, text = row.prepared.document.content_hash, row.prepared.document.text
    return StoredDocument(
        uri, text.title, row.date, text.tags, content_hash, text.media_type, text.text, text.body_start, row.entry.lines
    )


def export_documents(tables: MemoryTables, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
    """Return the documents as they were written, sorted by URI."""
    rows = [tables.documents[tool_id, uri] for uri in sorted(set(uris)) if (tool_id, uri) in tables.documents]
    return [replace(row.prepared, document=replace(row.prepared.document, entry=row.entry)) for row in rows]


def uris(tables: MemoryTables, tool_id: int, *, after: str, limit: int) -> list[str]:
    """Return the URIs after a given one, sorted."""
    return sorted(uri for owner_id, uri in tables.documents if owner_id == tool_id and uri > after)[:limit]


def uris_with_hash(tables: MemoryTables, tool_id: int, prefix: str) -> list[str]:
    """Return the URIs of documents whose content hash starts with a prefix."""
    return sorted(
        row.prepared.document.uri
        for row in tables.documents_of(tool_id)
        if row.prepared.document.content_hash.startswith(prefix)
    )


def select_documents(tables: MemoryTables, tool_id: int, where: Filter) -> list[int]:
    """Return the ids of the documents that match a filter."""
    matches = document_matcher(where)
    return [
        row.id
        for row in tables.documents_of(tool_id)
        if matches(row.prepared.document.uri, row.date, frozenset(row.prepared.document.text.tags))
    ]
