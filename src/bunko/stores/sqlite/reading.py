"""Read documents and chunks for indexes and search results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.records import ChunkRow, Filter, StoredChunk, StoredDocument
from bunko.stores import filters
from bunko.stores.filters import document_matcher, effective_date, tiebreak_order
from bunko.stores.sqlite.connection import Database, placeholders
from bunko.text.term_codec import unpack_terms
from bunko.types import WHOLE_FILE, Chunk, Fingerprint, LineSpan, Problem, SourceEntry, text_in_context

if TYPE_CHECKING:
    import numpy.typing as npt


def fingerprints(database: Database, tool_id: int) -> dict[str, Fingerprint]:
    """Return the fingerprint of each document and of each failed entry, by URI."""
    rows = database.rows(
        "SELECT uri, content_hash, size, modified_ns, seen_ns, first_line FROM documents WHERE tool_id = :tool"
        " UNION ALL SELECT uri, content_hash, size, modified_ns, seen_ns, 1 FROM failures WHERE tool_id = :tool",
        {"tool": tool_id},
    )
    return {
        row[0]: filters.fingerprint(
            row[1], SourceEntry(row[0], *row[2:5], lines=WHOLE_FILE if row[5] == 1 else LineSpan(row[5]))
        )
        for row in rows
    }


def failures(database: Database, tool_id: int) -> list[Problem]:
    """Return the entries that could not be imported."""
    rows = database.rows("SELECT uri, reason FROM failures WHERE tool_id = ? ORDER BY uri", (tool_id,))
    return [Problem(*row) for row in rows]


def changes_since(database: Database, tool_id: int, since: int) -> Iterator[StoredChunk]:
    """Yield the chunks of all documents written after a generation, in the order they were written."""
    documents = database.rows(
        "SELECT id FROM documents WHERE tool_id = ? AND generation > ? ORDER BY id", (tool_id, since)
    )
    for batch_start in range(0, len(documents), 200):
        batch = [row[0] for row in documents[batch_start : batch_start + 200]]
        rows = {
            row[0]: row[1:]
            for row in database.rows(
                f"SELECT id, uri, title, text, terms FROM documents WHERE id IN ({placeholders(batch)})", batch
            )
        }
        current_id, position = 0, 0
        terms: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]] = []
        for chunk_id, document_id, ordinal, start, end, heading_path, text, vector in database.rows(
            "SELECT chunks.id, document_id, ordinal, start, end, heading_path, chunks.text, vector FROM chunks"
            f" LEFT JOIN vectors ON key = vector_key WHERE document_id IN ({placeholders(batch)})"
            " ORDER BY document_id, ordinal",
            batch,
        ):
            uri, title, document_text, packed_terms = rows[document_id]
            if document_id != current_id:
                current_id, position = document_id, 0
                terms = unpack_terms(packed_terms)
            yield StoredChunk(
                chunk_id,
                document_id,
                tiebreak_order(uri, ordinal),
                text_in_context(title, json.loads(heading_path), document_text[start:end] if text is None else text),
                *terms[position],
                None if vector is None else np.frombuffer(vector, np.float32),
            )
            position += 1


def chunks(database: Database, ids: Sequence[int]) -> dict[int, ChunkRow]:
    """Return the chunks with these ids that still exist."""
    rows = database.rows(
        "SELECT chunks.id, document_id, ordinal, start, end, chunks.first_line, chunks.last_line, heading,"
        " heading_path, chunks.text, uri, title, date, modified_ns, tags, content_hash,"
        " CASE WHEN chunks.text IS NULL THEN documents.text END, tool_id, documents.last_line"
        f" FROM chunks JOIN documents ON documents.id = document_id WHERE chunks.id IN ({placeholders(ids)})",
        ids,
    )
    chunk_rows = {}
    for row in rows:
        text = row[16][row[3] : row[4]] if row[9] is None else row[9]
        chunk = Chunk(row[2], row[3], row[4], row[5], row[6], text, row[7], tuple(json.loads(row[8])))
        chunk_rows[row[0]] = ChunkRow(
            row[17],
            row[1],
            row[10],
            row[11],
            effective_date(row[12], row[13], row[18]),
            tuple(json.loads(row[14])),
            row[15],
            chunk,
        )
    return chunk_rows


def document(database: Database, tool_id: int, uri: str) -> StoredDocument | None:
    """Return the document with this URI, or None."""
    rows = database.rows(
        "SELECT title, date, modified_ns, last_line, tags, content_hash, media_type, text, body, first_line"
        " FROM documents WHERE tool_id = ? AND uri = ?",
        (tool_id, uri),
    )
    for title, date, modified_ns, last_line, tags, content_hash, media_type, text, body_start, first_line in rows:
        date, lines = effective_date(date, modified_ns, last_line), LineSpan(first_line, last_line)
        tags = tuple(json.loads(tags))
        return StoredDocument(uri, title, date, tags, content_hash, media_type, text, body_start, lines)
    return None


def uris(database: Database, tool_id: int, *, after: str, limit: int) -> list[str]:
    """Return the URIs after a given one, sorted."""
    rows = database.rows(
        "SELECT uri FROM documents WHERE tool_id = ? AND uri > ? ORDER BY uri LIMIT ?", (tool_id, after, limit)
    )
    return [row[0] for row in rows]


def uris_with_hash(database: Database, tool_id: int, prefix: str) -> list[str]:
    """Return the URIs of documents whose content hash starts with a prefix."""
    rows = database.rows(
        "SELECT uri FROM documents WHERE tool_id = ? AND substr(content_hash, 1, ?) = ? ORDER BY uri",
        (tool_id, len(prefix), prefix),
    )
    return [row[0] for row in rows]


def select_documents(database: Database, tool_id: int, where: Filter) -> list[int]:
    """Return the ids of the documents that match a filter."""
    matches = document_matcher(where)
    rows = database.rows(
        "SELECT id, uri, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ?", (tool_id,)
    )
    return [row[0] for row in rows if matches(row[1], effective_date(*row[2:5]), frozenset(json.loads(row[5])))]
