"""Keep vectors and the usage of embedders in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bunko.errors import LibraryError
from bunko.records import EmbeddingUsage
from bunko.stores.memory.data import MemoryTables, with_lock
from bunko.stores.memory.tools import MemoryTools
from bunko.types.build_info import BuildInfo

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceVectors


class MemoryVectors:
    """The vectors of chunks by key, and the usage of the embedders that computed them."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def get(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""
        stored = self._tables.vectors
        return {key: stored[key] for key in keys if key in stored}

    @with_lock
    def missing(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that have no stored vector."""
        return {key for key in keys if key not in self._tables.vectors}

    @with_lock
    def has_any(self, tool_id: int) -> bool:
        """Return whether any chunk of a tool has a vector."""
        return any(row.prepared.vector_keys for row in self._tables.documents_of(tool_id))

    @with_lock
    def uris_without(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one of the documents that have a chunk without a vector, sorted."""
        prepared = (row.prepared for row in self._tables.documents_of(tool_id))
        uris = sorted(one.document.uri for one in prepared if one.chunks and not one.vector_keys)
        return [uri for uri in uris if uri > after][:limit]

    @with_lock
    def document_means(self, tool_id: int) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the URIs of the documents that have vectors, and the mean of the vectors of each."""
        import numpy as np

        uris, means, size = [], [], 0
        for row in sorted(self._tables.documents_of(tool_id), key=lambda row: row.id):
            vectors = [self._tables.vectors[key] for key in row.prepared.vector_keys if key in self._tables.vectors]
            size = size or (len(vectors[0]) if vectors else 0)
            vectors = [vector for vector in vectors if len(vector) == size]
            if vectors:
                uris.append(row.prepared.document.uri)
                means.append(np.mean(vectors, axis=0, dtype=np.float32))
        return uris, np.stack(means) if means else np.zeros((0, 0), np.float32)

    @with_lock
    def pin(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        sentences: Mapping[bytes, SentenceVectors] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""
        self._tables.store_vectors(vectors, sentences or {}, usage or {})
        self._tables.pinned.setdefault((tool_id, embedder), set()).update(vectors)

    @with_lock
    def unpin(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all."""
        for owner_id, name in list(self._tables.pinned):
            if owner_id == tool_id and embedder in (None, name):
                del self._tables.pinned[owner_id, name]

    @with_lock
    def replace(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: BuildInfo) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation."""
        tables = self._tables
        rows = tables.documents_of(tool_id)
        has_vectors = any(keys.values())
        for row in rows:
            document_keys = keys.get(row.prepared.document.uri, ())
            expected = len(row.prepared.chunks) if has_vectors else 0
            if len(document_keys) != expected or self.missing(document_keys):
                raise LibraryError(
                    "The documents changed while their vectors were computed",
                    hint="Run bunko reembed again; the computed vectors are kept.",
                )
        tables.generation += 1
        for row in rows:
            vector_keys = list(keys.get(row.prepared.document.uri, ()))
            row.prepared = dataclasses.replace(row.prepared, vector_keys=vector_keys)
            row.generation = tables.generation
            tables.removals.append((tool_id, row.id, tables.generation))
        MemoryTools(tables).update_build_info(tool_id, built=built)
        return tables.generation

    @with_lock
    def delete_orphans(self) -> None:
        """Delete vectors that no chunk uses and that are not pinned."""
        tables = self._tables
        used = {key for row in tables.documents.values() for key in row.prepared.vector_keys}
        used = used.union(*tables.pinned.values())
        tables.vectors = {key: vector for key, vector in tables.vectors.items() if key in used}
        tables.sentences = {key: rows for key, rows in tables.sentences.items() if key in used}

    @with_lock
    def usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""
        return dict(sorted(self._tables.usage.items()))
