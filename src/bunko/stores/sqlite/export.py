"""Export complete documents and vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.records import PreparedDocument
from bunko.stores.sqlite.connection import Database, placeholders
from bunko.types import Chunk, Document, LineSpan, SourceEntry, Text

if TYPE_CHECKING:
    import numpy.typing as npt

_BATCH_SIZE = 500  # values in one query


def export_documents(database: Database, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
    """Return the documents as they were written, sorted by URI."""
    documents = []
    for batch in _batches(uris):
        rows = database.rows(
            "SELECT id, uri, size, modified_ns, seen_ns, text, media_type, encoding, title, date, tags, body,"
            " content_hash, terms, first_line, last_line FROM documents"
            f" WHERE tool_id = ? AND uri IN ({placeholders(batch)})",
            [tool_id, *batch],
        )
        chunks_by_document = _chunks_by_document(database, {row[0]: row[5] for row in rows})
        for row in rows:
            text = Text(row[5], row[6], row[7], row[8], row[9], tuple(json.loads(row[10])), row[11])
            chunks, chunk_keys = chunks_by_document[row[0]]
            keys = [key for key in chunk_keys if key is not None]
            document = Document(SourceEntry(*row[1:5], lines=LineSpan(*row[14:])), text, row[12])
            documents.append(PreparedDocument(document, chunks, row[13], keys if len(keys) == len(chunk_keys) else []))
    return sorted(documents, key=lambda prepared: prepared.document.uri)


def _chunks_by_document(database: Database, texts: dict[int, str]) -> dict[int, tuple[list[Chunk], list[bytes | None]]]:
    """Return the chunks and the vector keys of each document, by document id."""
    by_document: dict[int, tuple[list[Chunk], list[bytes | None]]] = {document_id: ([], []) for document_id in texts}
    ids = list(texts)
    for row in database.rows(
        "SELECT document_id, ordinal, start, end, first_line, last_line, text, heading, heading_path, vector_key"
        f" FROM chunks WHERE document_id IN ({placeholders(ids)}) ORDER BY document_id, ordinal",
        ids,
    ):
        text = texts[row[0]][row[2] : row[3]] if row[6] is None else row[6]
        chunks, keys = by_document[row[0]]
        chunks.append(Chunk(row[1], row[2], row[3], row[4], row[5], text, row[7], tuple(json.loads(row[8]))))
        keys.append(row[9])
    return by_document


def vectors(database: Database, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
    """Return the stored vectors among these keys."""
    stored = {}
    for batch in _batches(list(set(keys))):
        query = f"SELECT key, vector FROM vectors WHERE key IN ({placeholders(batch)})"
        for key, vector in database.rows(query, batch):
            stored[key] = np.frombuffer(vector, np.float32)
    return stored


def missing_vectors(database: Database, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys that have no stored vector."""
    missing = set(keys)
    for batch in _batches(list(missing)):
        rows = database.rows(f"SELECT key FROM vectors WHERE key IN ({placeholders(batch)})", batch)
        missing.difference_update(row[0] for row in rows)
    return missing


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + _BATCH_SIZE] for start in range(0, len(values), _BATCH_SIZE))
