"""Write, remove and touch documents inside one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bunko.failpoints import reach_failpoint
from bunko.records import EmbeddingUsage, FailedDocument, PreparedDocument
from bunko.stores.filters import separate_chunk_text
from bunko.stores.sqlite import embeddings, generations
from bunko.types import SourceEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Created once: json.dumps creates an encoder for every list, which takes longer than encoding it.
_encode_json = json.JSONEncoder(ensure_ascii=False).encode


def write_documents(
    connection: sqlite3.Connection,
    tool_id: int,
    *,
    upsert: Sequence[PreparedDocument],
    fail: Sequence[FailedDocument],
    remove: Sequence[str],
    touch: Sequence[SourceEntry],
    vectors: Mapping[bytes, npt.NDArray[np.float32]],
    usage: Mapping[str, EmbeddingUsage],
) -> int:
    """Write documents; return the generation, a new one if the change affects search results."""
    if upsert or fail or remove:
        generation = generations.advance_generation(connection)
    else:
        generation = generations.generation_in_transaction(connection)
    replaced = (*(prepared.document.uri for prepared in upsert), *(failure.entry.uri for failure in fail))
    _remove_documents(connection, generation, [(tool_id, uri) for uri in (*remove, *replaced)])
    connection.executemany(
        "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (tool_id, entry.uri, failure.content_hash, entry.size, entry.modified_ns, entry.seen_ns, failure.reason)
            for failure in fail
            for entry in (failure.entry,)
        ],
    )
    reach_failpoint("store.removed")
    embeddings.store_vectors(connection, vectors, usage)
    reach_failpoint("store.vectors")
    for prepared in upsert:
        _insert_document(connection, tool_id, generation, prepared)
        reach_failpoint("store.document")
    _touch_documents(connection, tool_id, touch)
    return generation


def _remove_documents(connection: sqlite3.Connection, generation: int, removals: Sequence[tuple[int, str]]) -> None:
    connection.executemany(
        "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ? AND uri = ?",
        [(generation, tool_id, uri) for tool_id, uri in removals],
    )
    connection.executemany("DELETE FROM documents WHERE tool_id = ? AND uri = ?", removals)
    connection.executemany("DELETE FROM failures WHERE tool_id = ? AND uri = ?", removals)


def _touch_documents(connection: sqlite3.Connection, tool_id: int, entries: Sequence[SourceEntry]) -> None:
    connection.executemany(
        "UPDATE chunks SET (first_line, last_line) = (SELECT chunks.first_line + ?1 - documents.first_line,"
        " chunks.last_line + ?1 - documents.first_line FROM documents WHERE id = document_id) WHERE document_id ="
        " (SELECT id FROM documents WHERE tool_id = ?2 AND uri = ?3 AND first_line <> ?1)",
        [(entry.lines.first, tool_id, entry.uri) for entry in entries],
    )
    connection.executemany(
        "UPDATE documents SET size = ?, modified_ns = ?, seen_ns = ?, first_line = ?, last_line = ?"
        " WHERE tool_id = ? AND uri = ?",
        [
            (entry.size, entry.modified_ns, entry.seen_ns, entry.lines.first, entry.lines.last, tool_id, entry.uri)
            for entry in entries
        ],
    )
    connection.executemany(
        "UPDATE failures SET size = ?, modified_ns = ?, seen_ns = ? WHERE tool_id = ? AND uri = ?",
        [(entry.size, entry.modified_ns, entry.seen_ns, tool_id, entry.uri) for entry in entries],
    )


def _insert_document(connection: sqlite3.Connection, tool_id: int, generation: int, prepared: PreparedDocument) -> None:
    document, text = prepared.document, prepared.document.text
    entry = document.entry
    document_id = connection.execute(
        "INSERT INTO documents (tool_id, uri, generation, content_hash, size, modified_ns, seen_ns, first_line,"
        " last_line, media_type, encoding, title, date, tags, body, text, terms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tool_id, entry.uri, generation, document.content_hash, entry.size, entry.modified_ns, entry.seen_ns,
            entry.lines.first, entry.lines.last, text.media_type, text.encoding, text.title, text.date,
            _encode_json(text.tags), text.body_start, text.text, prepared.packed_terms,
        ),
    ).lastrowid  # fmt: skip
    keys: Sequence[bytes | None] = prepared.vector_keys or [None] * len(prepared.chunks)
    connection.executemany(
        "INSERT INTO chunks (document_id, ordinal, start, end, first_line, last_line, heading, heading_path, text,"
        " vector_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                document_id, chunk.index, chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading,
                _encode_json(chunk.heading_path), separate_chunk_text(chunk, text.text), key,
            )
            for chunk, key in zip(prepared.chunks, keys, strict=True)
        ],
    )  # fmt: skip
