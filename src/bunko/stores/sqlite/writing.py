"""Prepared documents, failures and removals in, the rows of a library file changed out, inside one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bunko.failpoints import reach
from bunko.records import Failed, Prepared, Spent
from bunko.stores.filters import own_text
from bunko.stores.sqlite import embeddings, generations
from bunko.types import Entry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Made once: json.dumps makes another for every list, which takes longer than writing it.
_written = json.JSONEncoder(ensure_ascii=False).encode


def write(
    connection: sqlite3.Connection,
    tool_id: int,
    *,
    put: Sequence[Prepared],
    fail: Sequence[Failed],
    remove: Sequence[str],
    touch: Sequence[Entry],
    vectors: Mapping[bytes, npt.NDArray[np.float32]],
    spent: Mapping[str, Spent],
) -> int:
    """Change documents; return the generation, a new one if a search could see the change."""
    changes = bool(put or fail or remove)
    generation = generations.grow(connection) if changes else generations.current(connection)
    replaced = (*(one.document.uri for one in put), *(one.entry.uri for one in fail))
    _remove(connection, generation, [(tool_id, uri) for uri in (*remove, *replaced)])
    connection.executemany(
        "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (tool_id, e.uri, one.content_hash, e.size, e.modified_ns, e.seen_ns, one.reason)
            for one in fail
            for e in (one.entry,)
        ],
    )
    reach("store.removed")
    embeddings.put(connection, vectors, spent)
    reach("store.vectors")
    for prepared in put:
        _put(connection, tool_id, generation, prepared)
        reach("store.document")
    _touch(connection, tool_id, touch)
    return generation


def _remove(connection: sqlite3.Connection, generation: int, gone: Sequence[tuple[int, str]]) -> None:
    connection.executemany(
        "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ? AND uri = ?",
        [(generation, *one) for one in gone],
    )
    connection.executemany("DELETE FROM documents WHERE tool_id = ? AND uri = ?", gone)
    connection.executemany("DELETE FROM failures WHERE tool_id = ? AND uri = ?", gone)


def _touch(connection: sqlite3.Connection, tool_id: int, entries: Sequence[Entry]) -> None:
    connection.executemany(
        "UPDATE chunks SET (first_line, last_line) = (SELECT chunks.first_line + ?1 - documents.first_line,"
        " chunks.last_line + ?1 - documents.first_line FROM documents WHERE id = document_id) WHERE document_id ="
        " (SELECT id FROM documents WHERE tool_id = ?2 AND uri = ?3 AND first_line <> ?1)",
        [(one.lines.first, tool_id, one.uri) for one in entries],
    )
    connection.executemany(
        "UPDATE documents SET size = ?, modified_ns = ?, seen_ns = ?, first_line = ?, last_line = ?"
        " WHERE tool_id = ? AND uri = ?",
        [(e.size, e.modified_ns, e.seen_ns, e.lines.first, e.lines.last, tool_id, e.uri) for e in entries],
    )
    connection.executemany(
        "UPDATE failures SET size = ?, modified_ns = ?, seen_ns = ? WHERE tool_id = ? AND uri = ?",
        [(one.size, one.modified_ns, one.seen_ns, tool_id, one.uri) for one in entries],
    )


def _put(connection: sqlite3.Connection, tool_id: int, generation: int, prepared: Prepared) -> None:
    document, text = prepared.document, prepared.document.text
    entry = document.entry
    document_id = connection.execute(
        "INSERT INTO documents (tool_id, uri, generation, content_hash, size, modified_ns, seen_ns, first_line,"
        " last_line, media_type, encoding, title, date, tags, body, text, terms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tool_id, entry.uri, generation, document.content_hash, entry.size, entry.modified_ns, entry.seen_ns,
            entry.lines.first, entry.lines.last, text.media_type, text.encoding, text.title, text.date,
            _written(text.tags), text.body, text.text, prepared.terms,
        ),
    ).lastrowid  # fmt: skip
    names: Sequence[bytes | None] = prepared.vector_keys or [None] * len(prepared.chunks)
    connection.executemany(
        "INSERT INTO chunks (document_id, ordinal, start, end, first_line, last_line, heading, heading_path, text,"
        " vector_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                document_id, chunk.index, chunk.start, chunk.end, chunk.first_line, chunk.last_line, chunk.heading,
                _written(chunk.heading_path), own_text(chunk, text.text), name,
            )
            for chunk, name in zip(prepared.chunks, names, strict=True)
        ],
    )  # fmt: skip
