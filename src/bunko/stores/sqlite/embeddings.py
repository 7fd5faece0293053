"""Store, pin, assign and delete vectors, and record the usage of embedders."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from bunko.errors import LibraryError
from bunko.records import EmbeddingUsage
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.connection import Database

if TYPE_CHECKING:
    import numpy.typing as npt

_SELECT_KEPT_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'kept'"
_USAGE_PREFIX = "spent "  # of the keys in `meta` that hold the usage of an embedder


def store_vectors(
    connection: sqlite3.Connection,
    vectors: Mapping[bytes, npt.NDArray[np.float32]],
    usage: Mapping[str, EmbeddingUsage],
) -> None:
    """Store vectors and add the usage to the totals of each embedder."""
    connection.executemany(
        "INSERT OR IGNORE INTO vectors VALUES (?, ?)",
        [(key, vector.astype(np.float32, copy=False).tobytes()) for key, vector in vectors.items()],
    )
    for name, added in usage.items():
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_USAGE_PREFIX + name,)).fetchone()
        total = added + (_parse_usage(row[0]) if row else EmbeddingUsage())
        connection.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", (_USAGE_PREFIX + name, json.dumps(asdict(total)))
        )


def pin_vectors(connection: sqlite3.Connection, tool_id: int, embedder: str, keys: Iterable[bytes]) -> None:
    """Keep vectors from being deleted as orphans."""
    connection.execute(schema.CREATE_KEPT)
    connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", [(tool_id, key, embedder) for key in keys])


def has_pinned_vectors(database: Database) -> bool:
    """Return whether any vector is pinned."""
    return bool(database.rows(_SELECT_KEPT_TABLE)) and bool(database.rows("SELECT 1 FROM kept LIMIT 1"))


def unpin_vectors(connection: sqlite3.Connection, tool_id: int, embedder: str | None) -> None:
    """Unpin the vectors of a tool, of one embedder or of all."""
    connection.execute("DELETE FROM kept WHERE tool_id = ? AND embedder = ifnull(?, embedder)", (tool_id, embedder))


def delete_orphan_vectors(connection: sqlite3.Connection) -> None:
    """Delete vectors that no chunk uses and that are not pinned."""
    unpinned = " AND key NOT IN (SELECT key FROM kept)" if connection.execute(_SELECT_KEPT_TABLE).fetchone() else ""
    connection.execute(
        f"DELETE FROM vectors WHERE key NOT IN (SELECT vector_key FROM chunks WHERE vector_key IS NOT NULL){unpinned}"
    )


def replace_vectors(
    connection: sqlite3.Connection, tool_id: int, generation: int, keys: Mapping[str, Sequence[bytes]]
) -> None:
    """Assign new vectors to all chunks of a tool, and mark its documents as changed for every index."""
    documents = connection.execute("SELECT id, uri FROM documents WHERE tool_id = ?", (tool_id,)).fetchall()
    connection.execute(
        "UPDATE chunks SET vector_key = NULL WHERE document_id IN (SELECT id FROM documents WHERE tool_id = ?)",
        (tool_id,),
    )
    connection.executemany(
        "UPDATE chunks SET vector_key = ? WHERE document_id = ? AND ordinal = ?",
        [
            (key, document_id, ordinal)
            for document_id, uri in documents
            for ordinal, key in enumerate(keys.get(uri, ()))
        ],
    )
    # The same document may be both removed and changed: an index drops the removed before it adds the changed.
    connection.execute(
        "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ?", (generation, tool_id)
    )
    connection.execute("UPDATE documents SET generation = ? WHERE tool_id = ?", (generation, tool_id))
    chunk_count, key_count, vector_count = connection.execute(
        "SELECT count(*), count(vector_key), count(vectors.key) FROM chunks"
        " JOIN documents ON documents.id = document_id LEFT JOIN vectors ON vectors.key = vector_key WHERE tool_id = ?",
        (tool_id,),
    ).fetchone()
    if vector_count != key_count or key_count != (chunk_count if any(keys.values()) else 0):
        raise LibraryError(
            "The documents changed while their vectors were computed",
            hint="Run bunko reembed again; the computed vectors are kept.",
        )


def embedding_usage(database: Database) -> dict[str, EmbeddingUsage]:
    """Return how much imports have used each embedder, by embedder name."""
    rows = database.rows(
        "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key", (len(_USAGE_PREFIX), _USAGE_PREFIX)
    )
    return {key.removeprefix(_USAGE_PREFIX): _parse_usage(value) for key, value in rows}


def _parse_usage(value: str) -> EmbeddingUsage:
    return EmbeddingUsage(**json.loads(value))
