"""A library file and ids, names or a filter in, chunks and documents out as an index or an answer needs them."""

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


def fingerprints(file: Database, tool_id: int) -> dict[str, Fingerprint]:
    """Return the fingerprint of each document and of each failed entry, by URI."""
    rows = file.rows(
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


def failures(file: Database, tool_id: int) -> list[Problem]:
    """Return the entries that could not be imported."""
    rows = file.rows("SELECT uri, reason FROM failures WHERE tool_id = ? ORDER BY uri", (tool_id,))
    return [Problem(*row) for row in rows]


def changes_since(file: Database, tool_id: int, since: int) -> Iterator[StoredChunk]:
    """Yield the chunks of all documents written after a generation, in the order they were written."""
    documents = file.rows("SELECT id FROM documents WHERE tool_id = ? AND generation > ? ORDER BY id", (tool_id, since))
    for at in range(0, len(documents), 200):
        some = [row[0] for row in documents[at : at + 200]]
        rows = {
            row[0]: row[1:]
            for row in file.rows(
                f"SELECT id, uri, title, text, terms FROM documents WHERE id IN ({placeholders(some)})", some
            )
        }
        current, number = 0, 0
        terms: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]] = []
        for chunk_id, document_id, ordinal, start, end, path, text, vector in file.rows(
            "SELECT chunks.id, document_id, ordinal, start, end, heading_path, chunks.text, vector FROM chunks"
            f" LEFT JOIN vectors ON key = vector_key WHERE document_id IN ({placeholders(some)})"
            " ORDER BY document_id, ordinal",
            some,
        ):
            uri, title, whole, blob = rows[document_id]
            if document_id != current:
                current, number = document_id, 0
                terms = unpack_terms(blob)
            yield StoredChunk(
                chunk_id,
                document_id,
                tiebreak_order(uri, ordinal),
                text_in_context(title, json.loads(path), whole[start:end] if text is None else text),
                *terms[number],
                None if vector is None else np.frombuffer(vector, np.float32),
            )
            number += 1


def chunks(file: Database, ids: Sequence[int]) -> dict[int, ChunkRow]:
    """Return the chunks with these ids that still exist."""
    rows = file.rows(
        "SELECT chunks.id, document_id, ordinal, start, end, chunks.first_line, chunks.last_line, heading,"
        " heading_path, chunks.text, uri, title, date, modified_ns, tags, content_hash,"
        " CASE WHEN chunks.text IS NULL THEN documents.text END, tool_id, documents.last_line"
        f" FROM chunks JOIN documents ON documents.id = document_id WHERE chunks.id IN ({placeholders(ids)})",
        ids,
    )
    found = {}
    for row in rows:
        text = row[16][row[3] : row[4]] if row[9] is None else row[9]
        chunk = Chunk(row[2], row[3], row[4], row[5], row[6], text, row[7], tuple(json.loads(row[8])))
        found[row[0]] = ChunkRow(
            row[17],
            row[1],
            row[10],
            row[11],
            effective_date(row[12], row[13], row[18]),
            tuple(json.loads(row[14])),
            row[15],
            chunk,
        )
    return found


def document(file: Database, tool_id: int, uri: str) -> StoredDocument | None:
    """Return the document with this URI, or None."""
    rows = file.rows(
        "SELECT title, date, modified_ns, last_line, tags, content_hash, media_type, text, body, first_line"
        " FROM documents WHERE tool_id = ? AND uri = ?",
        (tool_id, uri),
    )
    for title, date, modified_ns, last, tags, content_hash, media_type, text, body, first in rows:
        date, own = effective_date(date, modified_ns, last), tuple(json.loads(tags))
        return StoredDocument(uri, title, date, own, content_hash, media_type, text, body, LineSpan(first, last))
    return None


def uris(file: Database, tool_id: int, *, after: str, limit: int) -> list[str]:
    """Return the URIs after a given one, sorted."""
    rows = file.rows(
        "SELECT uri FROM documents WHERE tool_id = ? AND uri > ? ORDER BY uri LIMIT ?", (tool_id, after, limit)
    )
    return [row[0] for row in rows]


def uris_with_hash(file: Database, tool_id: int, prefix: str) -> list[str]:
    """Return the URIs of documents whose content hash starts with a prefix."""
    rows = file.rows(
        "SELECT uri FROM documents WHERE tool_id = ? AND substr(content_hash, 1, ?) = ? ORDER BY uri",
        (tool_id, len(prefix), prefix),
    )
    return [row[0] for row in rows]


def select_documents(file: Database, tool_id: int, where: Filter) -> list[int]:
    """Return the ids of the documents that match a filter."""
    test = document_matcher(where)
    rows = file.rows("SELECT id, uri, date, modified_ns, last_line, tags FROM documents WHERE tool_id = ?", (tool_id,))
    return [row[0] for row in rows if test(row[1], effective_date(*row[2:5]), frozenset(json.loads(row[5])))]
