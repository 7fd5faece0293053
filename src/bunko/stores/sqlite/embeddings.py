"""A library file and vectors in, what was paid for stored, kept, given to chunks, counted and swept out."""

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
_USAGE_PREFIX = "spent "  # begins the keys under which what was spent is noted


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
    for name, more in usage.items():
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_USAGE_PREFIX + name,)).fetchone()
        total = more + (_parse_usage(row[0]) if row else EmbeddingUsage())
        connection.execute(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", (_USAGE_PREFIX + name, json.dumps(asdict(total)))
        )


def pin_vectors(connection: sqlite3.Connection, tool_id: int, embedder: str, keys: Iterable[bytes]) -> None:
    """Keep vectors from being deleted as orphans."""
    connection.execute(schema.CREATE_KEPT)
    connection.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", [(tool_id, key, embedder) for key in keys])


def has_pinned_vectors(file: Database) -> bool:
    """Return whether any vector is pinned."""
    return bool(file.rows(_SELECT_KEPT_TABLE)) and bool(file.rows("SELECT 1 FROM kept LIMIT 1"))


def unpin_vectors(connection: sqlite3.Connection, tool_id: int, embedder: str | None) -> None:
    """Unpin the vectors of a tool, of one embedder or of all."""
    connection.execute("DELETE FROM kept WHERE tool_id = ? AND embedder = ifnull(?, embedder)", (tool_id, embedder))


def delete_orphan_vectors(connection: sqlite3.Connection) -> None:
    """Delete vectors that no chunk uses and that are not pinned."""
    kept = " AND key NOT IN (SELECT key FROM kept)" if connection.execute(_SELECT_KEPT_TABLE).fetchone() else ""
    connection.execute(
        f"DELETE FROM vectors WHERE key NOT IN (SELECT vector_key FROM chunks WHERE vector_key IS NOT NULL){kept}"
    )


def replace_vectors(
    connection: sqlite3.Connection, tool_id: int, generation: int, keys: Mapping[str, Sequence[bytes]]
) -> None:
    """Assign new vectors to all chunks of a tool, and mark its documents as changed for every index."""
    rows = connection.execute("SELECT id, uri FROM documents WHERE tool_id = ?", (tool_id,)).fetchall()
    connection.execute(
        "UPDATE chunks SET vector_key = NULL WHERE document_id IN (SELECT id FROM documents WHERE tool_id = ?)",
        (tool_id,),
    )
    connection.executemany(
        "UPDATE chunks SET vector_key = ? WHERE document_id = ? AND ordinal = ?",
        [(key, number, place) for number, uri in rows for place, key in enumerate(keys.get(uri, ()))],
    )
    # A document that died and one that is newer may be the same: readers drop what died before they add what is new.
    connection.execute(
        "INSERT INTO removed SELECT tool_id, id, ? FROM documents WHERE tool_id = ?", (generation, tool_id)
    )
    connection.execute("UPDATE documents SET generation = ? WHERE tool_id = ?", (generation, tool_id))
    number, named, stored = connection.execute(
        "SELECT count(*), count(vector_key), count(vectors.key) FROM chunks"
        " JOIN documents ON documents.id = document_id LEFT JOIN vectors ON vectors.key = vector_key WHERE tool_id = ?",
        (tool_id,),
    ).fetchone()
    if stored != named or named != (number if any(keys.values()) else 0):
        raise LibraryError(
            "The documents changed while their vectors were made",
            hint="Run bunko reembed again; what was made is kept.",
        )


def embedding_usage(file: Database) -> dict[str, EmbeddingUsage]:
    """Return how much imports have used each embedder, by embedder name."""
    rows = file.rows(
        "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key", (len(_USAGE_PREFIX), _USAGE_PREFIX)
    )
    return {key.removeprefix(_USAGE_PREFIX): _parse_usage(value) for key, value in rows}


def _parse_usage(value: str) -> EmbeddingUsage:
    return EmbeddingUsage(**json.loads(value))
