"""Store, pin, assign and delete vectors, and record the usage of embedders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.errors import LibraryError
from bunko.runtime.failpoints import reach_failpoint
from bunko.stores.sql.changes import advance_generation, put_meta
from bunko.stores.sql.database import BLOB, INTEGER, TEXT, Connection, Database, batches, placeholders, retried
from bunko.stores.sql.tools import set_built
from bunko.stores.sql.totals import keep_counts, read_counts
from bunko.stores.sql.unused_vectors import (
    RELEASED,
    delete_released,
    delete_unused,
    release_vectors,
    unused_room,
)
from bunko.types.build_info import BuildInfo
from bunko.types.records import EmbeddingUsage, VectorRoom

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords

_DOCUMENT_BATCH = 500  # documents whose vectors are in memory at a time
_USAGE_PREFIX = "spent "  # of the keys in `meta` that hold the usage of an embedder
_IS_SPLIT = "EXISTS (SELECT 1 FROM subwords WHERE subwords.key = vectors.key)"


class SqlVectors:
    """The vectors of chunks by key, and the usage of the embedders that computed them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""
        stored = {}
        for batch in batches(list(set(keys))):
            query = f"SELECT key, vector FROM vectors WHERE key IN ({placeholders(batch)})"
            for key, vector in self._database.rows(query, batch, types=(BLOB, BLOB)):
                with self._database.decode_values():
                    stored[key] = np.frombuffer(vector, np.float32)
        return stored

    def missing(self, keys: Iterable[bytes], *, split: bool = False) -> set[bytes]:
        """Return the keys that have no stored vector; with `split`, or no subwords of sentences."""
        missing = set(keys)
        if split and not self._database.has_table("subwords"):
            return missing
        condition = f" AND {_IS_SPLIT}" if split else ""
        for batch in batches(list(missing)):
            rows = self._database.rows(
                f"SELECT key FROM vectors WHERE key IN ({placeholders(batch)}){condition}", batch, types=(BLOB,)
            )
            missing.difference_update(row[0] for row in rows)
        return missing

    def unsplit(self, tool_id: int) -> int:
        """Return how many chunks of a tool have a vector and no subwords of their sentences."""
        condition = f" AND NOT {_IS_SPLIT}" if self._database.has_table("subwords") else ""
        query = (
            "SELECT count(*) FROM chunks JOIN documents ON documents.id = document_id"
            f" JOIN vectors ON vectors.key = vector_key WHERE tool_id = ?{condition}"
        )
        count: int = self._database.rows(query, (tool_id,), types=(INTEGER,))[0][0]
        return count

    def has_any(self, tool_id: int) -> bool:
        """Return whether any chunk of a tool has a vector."""
        query = (
            "SELECT 1 FROM chunks JOIN documents ON documents.id = document_id"
            " WHERE tool_id = ? AND vector_key IS NOT NULL LIMIT 1"
        )
        return bool(self._database.rows(query, (tool_id,), types=(INTEGER,)))

    def uris_without(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one of the documents that have a chunk without a vector, sorted."""
        key = self._database.uri_key("uri")
        rows = self._database.rows(
            f"SELECT uri FROM documents WHERE tool_id = ? AND {key} > ? AND EXISTS"
            f" (SELECT 1 FROM chunks WHERE document_id = documents.id AND vector_key IS NULL) ORDER BY {key} LIMIT ?",
            (tool_id, self._database.key_of(after), limit),
            types=(TEXT,),
        )
        return [row[0] for row in rows]

    def document_means(self, tool_id: int, uri: str = "") -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the URIs of the documents, or of one, that have vectors, and the mean of the vectors of each."""
        documents = self._database.rows(
            f"SELECT id, uri FROM documents WHERE tool_id = ?{' AND uri = ?' if uri else ''} ORDER BY id",
            (tool_id, uri) if uri else (tool_id,),
            types=(INTEGER, TEXT),
        )
        uri_of: dict[int, str] = dict(documents)
        uris: list[str] = []
        means: list[npt.NDArray[np.float32]] = []
        size = 0  # of the first vector, in bytes
        for batch in batches(list(uri_of), _DOCUMENT_BATCH):
            rows = self._database.rows(
                "SELECT document_id, vector FROM chunks JOIN vectors ON key = vector_key"
                f" WHERE document_id IN ({placeholders(batch)}) ORDER BY document_id",
                batch,
                types=(INTEGER, BLOB),
            )
            size = size or (len(rows[0][1]) if rows else 0)
            rows = [row for row in rows if len(row[1]) == size]
            if not rows:
                continue
            with self._database.decode_values():
                vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float32).reshape(len(rows), -1)
            ids, starts, counts = np.unique([row[0] for row in rows], return_index=True, return_counts=True)
            sums: npt.NDArray[np.float32] = np.add.reduceat(vectors, starts, axis=0)
            means.append(np.divide(sums, counts[:, None], dtype=np.float32))
            uris += [uri_of[document_id] for document_id in ids.tolist()]
        return uris, np.concatenate(means) if means else np.zeros((0, 0), np.float32)

    @retried
    def pin(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        sentences: Mapping[bytes, SentenceSubwords] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""
        with self._database.transaction() as connection:
            store_vectors(connection, vectors, sentences or {}, usage or {})
            connection.ensure_table("kept")
            connection.executemany(
                "INSERT INTO kept VALUES (?, ?, ?)"
                " ON CONFLICT (tool_id, key) DO UPDATE SET embedder = excluded.embedder",
                [(tool_id, key, embedder) for key in vectors],
            )

    @retried
    def unpin(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all; those that no chunk uses are released."""
        condition, values = "tool_id = ? AND embedder <> ?", [tool_id, RELEASED]
        if embedder is not None:
            condition, values = f"{condition} AND embedder = ?", [*values, embedder]
        if not self._has_kept_vectors(condition, values):
            return
        with self._database.transaction() as connection:
            connection.execute(f"UPDATE kept SET embedder = ? WHERE {condition}", [RELEASED, *values])

    @retried
    def replace(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: BuildInfo) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation."""
        with self._database.transaction() as connection:
            generation = advance_generation(connection)
            counts = read_counts(connection, tool_id)
            release_vectors(connection, "tool_id = ?", (tool_id,))
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
            vector_count = _check_vectors(connection, tool_id, has_vectors=any(keys.values()))
            if counts is not None:
                keep_counts(connection, tool_id, generation, counts._replace(vectors=vector_count))
            reach_failpoint("reembed.rekeyed")
            set_built(connection, tool_id, built)
            return generation

    @retried
    def delete_released(self, tool_id: int) -> None:
        """Delete the vectors that a tool's documents used or that were pinned for it, and that nothing uses now."""
        delete_released(self._database, tool_id)

    @retried
    def delete_orphans(self) -> None:
        """Delete all vectors that no chunk uses and that are not pinned."""
        delete_unused(self._database)

    def unused(self) -> VectorRoom:
        """Return how many vectors no chunk uses, pinned or not, and how many bytes they take."""
        return unused_room(self._database)

    def usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""
        rows = self._database.rows(
            "SELECT key, value FROM meta WHERE substr(key, 1, CAST(? AS INTEGER)) = ? ORDER BY key",
            (len(_USAGE_PREFIX), _USAGE_PREFIX),
            types=(TEXT, TEXT),
        )
        return {key.removeprefix(_USAGE_PREFIX): _parse_usage(value) for key, value in rows}

    def _has_kept_vectors(self, condition: str, values: Sequence[Any]) -> bool:
        return self._database.has_table("kept") and bool(
            self._database.rows(f"SELECT 1 FROM kept WHERE {condition} LIMIT 1", values, types=(INTEGER,))
        )


def store_vectors(
    connection: Connection,
    vectors: Mapping[bytes, npt.NDArray[np.float32]],
    sentences: Mapping[bytes, SentenceSubwords],
    usage: Mapping[str, EmbeddingUsage],
) -> None:
    """Store vectors of texts and the subwords of their sentences, and add the usage to the totals of each embedder."""
    connection.executemany(
        "INSERT INTO vectors VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        [(key, vector.astype(np.float32, copy=False).tobytes()) for key, vector in vectors.items()],
    )
    if sentences:
        connection.ensure_table("subwords")
        connection.executemany(
            "INSERT INTO subwords VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
            [(key, subwords.tobytes()) for key, subwords in sentences.items()],
        )
    for name, added in usage.items():
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (_USAGE_PREFIX + name,)).fetchone()
        total = added + (_parse_usage(row[0]) if row else EmbeddingUsage())
        put_meta(connection, _USAGE_PREFIX + name, json.dumps(asdict(total)))


def _check_vectors(connection: Connection, tool_id: int, *, has_vectors: bool) -> int:
    """Return how many chunks have a vector; raise unless all or none of them have a stored one."""
    chunk_count, key_count, vector_count = connection.execute(
        "SELECT count(*), count(vector_key), count(vectors.key) FROM chunks"
        " JOIN documents ON documents.id = document_id LEFT JOIN vectors ON vectors.key = vector_key WHERE tool_id = ?",
        (tool_id,),
    ).fetchone()
    if vector_count != key_count or key_count != (chunk_count if has_vectors else 0):
        raise LibraryError(
            "The documents changed while their vectors were computed",
            hint="Run bunko reembed again; the computed vectors are kept.",
        )
    return int(key_count)


def _parse_usage(value: str) -> EmbeddingUsage:
    """Return stored totals; they are only for information, so damaged ones start again."""
    try:
        return EmbeddingUsage() + EmbeddingUsage(**json.loads(value))
    except (TypeError, ValueError, RecursionError):
        return EmbeddingUsage()
