"""Store, pin and replace vectors in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bunko.errors import LibraryError
from bunko.records import EmbeddingUsage
from bunko.stores.memory.data import MemoryTables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def store_vectors(
    tables: MemoryTables, vectors: Mapping[bytes, npt.NDArray[np.float32]], usage: Mapping[str, EmbeddingUsage]
) -> None:
    """Store vectors and add the usage to the totals of each embedder."""
    tables.vectors.update(vectors)
    for embedder, added in usage.items():
        tables.usage[embedder] = tables.usage.get(embedder, EmbeddingUsage()) + added


def pin_vectors(tables: MemoryTables, tool_id: int, embedder: str, keys: Iterable[bytes]) -> None:
    """Keep vectors from being deleted as orphans."""
    tables.pinned.setdefault((tool_id, embedder), set()).update(keys)


def unpin_vectors(tables: MemoryTables, tool_id: int, embedder: str | None = None) -> None:
    """Unpin the vectors of a tool, of one embedder or of all."""
    for owner_id, name in list(tables.pinned):
        if owner_id == tool_id and embedder in (None, name):
            del tables.pinned[owner_id, name]


def replace_vectors(tables: MemoryTables, tool_id: int, keys: Mapping[str, Sequence[bytes]]) -> int:
    """Assign new vectors to all chunks of a tool; return the new generation."""
    rows = tables.documents_of(tool_id)
    has_vectors = any(keys.values())
    for row in rows:
        document_keys = keys.get(row.prepared.document.uri, ())
        expected = len(row.prepared.chunks) if has_vectors else 0
        if len(document_keys) != expected or missing_vectors(tables, document_keys):
            raise LibraryError(
                "The documents changed while their vectors were computed",
                hint="Run bunko reembed again; the computed vectors are kept.",
            )
    tables.generation += 1
    for row in rows:
        row.prepared = replace(row.prepared, vector_keys=list(keys.get(row.prepared.document.uri, ())))
        row.generation = tables.generation
        tables.removals.append((tool_id, row.id, tables.generation))
    return tables.generation


def missing_vectors(tables: MemoryTables, keys: Iterable[bytes]) -> set[bytes]:
    """Return the keys that have no stored vector."""
    return {key for key in keys if key not in tables.vectors}


def delete_orphan_vectors(tables: MemoryTables) -> None:
    """Delete vectors that no chunk uses and that are not pinned."""
    used = {key for row in tables.documents.values() for key in row.prepared.vector_keys}
    used = used.union(*tables.pinned.values())
    tables.vectors = {key: vector for key, vector in tables.vectors.items() if key in used}
