"""Provide the store interface over a SQLite file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.build_info import BuildInfo
from bunko.failpoints import reach_failpoint
from bunko.records import (
    ChunkRow,
    DatedDocument,
    DocumentSummary,
    EmbeddingUsage,
    FailedDocument,
    Filter,
    LoggedSearch,
    PreparedDocument,
    StorageSize,
    StoredChunk,
    StoredDocument,
    Totals,
    WebPage,
)
from bunko.stores.sqlite import cache, embeddings, export, generations, pages, reading, stats, tools, writing
from bunko.stores.sqlite.connection import Database
from bunko.types import Fingerprint, Problem, SourceEntry, Tool

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Sqlite:
    """A library in a SQLite file; committed data survives a crash."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._database = Database(path, read_only=read_only)
        self.id = str(self._database.rows("SELECT value FROM meta WHERE key = 'id'")[0][0])

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        return self._database.read_transaction()

    def tools(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return tools.list_tools(self._database)

    def put_tool(self, tool: Tool) -> Tool:
        """Add a tool or replace the tool of the same name; return it with its id."""
        with self._database.transaction() as connection:
            return tools.put_tool(connection, tool)

    def ensure_tool(self, tool: Tool) -> None:
        """Add a tool unless one of that name exists."""
        with self._database.transaction() as connection:
            tools.ensure_tool(connection, tool)

    def update_build_info(self, tool_id: int, *, built: BuildInfo | None = None, imported_at: str = "") -> None:
        """Record how or when a tool's index was built, without overwriting concurrent changes to its other fields."""
        with self._database.transaction() as connection:
            tools.update_build_info(connection, tool_id, built=built, imported_at=imported_at)

    def drop_tool(self, tool_id: int) -> None:
        """Delete a tool with its documents, pages and pinned vectors."""
        with self._database.transaction() as connection:
            tools.drop_tool(connection, tool_id)

    def swap_tools(self, tool: Tool, shadow: Tool) -> int:
        """Replace a tool's documents by those of its shadow and delete the shadow, atomically."""
        with self._database.transaction() as connection:
            return tools.swap_tools(connection, tool, shadow)

    def adopt_documents(self, tool: Tool, shadow: Tool) -> Tool:
        """Store a tool with the documents of its shadow, atomically; a tool of the same name is replaced."""
        with self._database.transaction() as connection:
            return tools.adopt_documents(connection, tool, shadow)

    def fingerprints(self, tool_id: int) -> dict[str, Fingerprint]:
        """Return the fingerprint of each document and of each failed entry, by URI."""
        return reading.fingerprints(self._database, tool_id)

    def failures(self, tool_id: int) -> list[Problem]:
        """Return the entries that could not be imported."""
        return reading.failures(self._database, tool_id)

    def write(
        self,
        tool_id: int,
        *,
        upsert: Sequence[PreparedDocument] = (),
        fail: Sequence[FailedDocument] = (),
        remove: Sequence[str] = (),
        touch: Sequence[SourceEntry] = (),
        vectors: Mapping[bytes, npt.NDArray[np.float32]] | None = None,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> int:
        """Write documents atomically and return the new generation; a failed entry replaces its document."""
        with self._database.transaction() as connection:
            return writing.write_documents(
                connection,
                tool_id,
                upsert=upsert,
                fail=fail,
                remove=remove,
                touch=touch,
                vectors=vectors or {},
                usage=usage or {},
            )

    def pin_vectors(
        self,
        tool_id: int,
        embedder: str,
        vectors: Mapping[bytes, npt.NDArray[np.float32]],
        *,
        usage: Mapping[str, EmbeddingUsage] | None = None,
    ) -> None:
        """Store vectors that no chunk uses yet, and keep them from being deleted as orphans until they are unpinned."""
        with self._database.transaction() as connection:
            embeddings.store_vectors(connection, vectors, usage or {})
            embeddings.pin_vectors(connection, tool_id, embedder, vectors)

    def unpin_vectors(self, tool_id: int, embedder: str | None = None) -> None:
        """Unpin the vectors of a tool, of one embedder or of all."""
        if embeddings.has_pinned_vectors(self._database):
            with self._database.transaction() as connection:
                embeddings.unpin_vectors(connection, tool_id, embedder)

    def replace_vectors(self, tool_id: int, keys: Mapping[str, Sequence[bytes]], built: BuildInfo) -> int:
        """Assign new vectors to all chunks of a tool, atomically; return the new generation."""
        with self._database.transaction() as connection:
            generation = generations.advance_generation(connection)
            embeddings.replace_vectors(connection, tool_id, generation, keys)
            reach_failpoint("reembed.rekeyed")
            tools.update_build_info(connection, tool_id, built=built)
            return generation

    def embedding_usage(self) -> dict[str, EmbeddingUsage]:
        """Return how much imports have used each embedder, by embedder name."""
        return embeddings.embedding_usage(self._database)

    def missing_vectors(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that have no stored vector."""
        return export.missing_vectors(self._database, keys)

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""
        return generations.read_generation(self._database)

    def changes_since(self, tool_id: int, since: int) -> Iterator[StoredChunk]:
        """Yield the chunks of all documents written after a generation, in the order they were written."""
        return reading.changes_since(self._database, tool_id, since)

    def removed_since(self, tool_id: int, since: int) -> list[int] | None:
        """Return the ids of the documents removed after a generation, or None if those records were pruned."""
        return generations.removed_since(self._database, tool_id, since)

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation."""
        with self._database.transaction() as connection:
            generations.prune_removals(connection, tool_id, before)

    def set_index_file(self, tool_id: int, name: str) -> None:
        """Store the name of the tool's current index file."""
        with self._database.transaction() as connection:
            generations.set_index_file(connection, tool_id, name)

    def index_file(self, tool_id: int) -> str:
        """Return the name of the tool's current index file, or an empty string."""
        return generations.index_file(self._database, tool_id)

    def delete_orphan_vectors(self) -> None:
        """Delete vectors that no chunk uses and that are not pinned."""
        with self._database.transaction() as connection:
            embeddings.delete_orphan_vectors(connection)

    def chunks(self, ids: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the chunks with these ids that still exist."""
        return reading.chunks(self._database, ids)

    def document(self, tool_id: int, uri: str) -> StoredDocument | None:
        """Return the document with this URI, or None."""
        return reading.document(self._database, tool_id, uri)

    def export_documents(self, tool_id: int, uris: Sequence[str]) -> list[PreparedDocument]:
        """Return the documents as they were written, sorted by URI."""
        return export.export_documents(self._database, tool_id, uris)

    def vectors(self, keys: Iterable[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Return the stored vectors among these keys."""
        return export.vectors(self._database, keys)

    def uris(self, tool_id: int, *, after: str = "", limit: int = 100) -> list[str]:
        """Return the URIs after a given one, sorted."""
        return reading.uris(self._database, tool_id, after=after, limit=limit)

    def uris_with_hash(self, tool_id: int, prefix: str) -> list[str]:
        """Return the URIs of documents whose content hash starts with a prefix."""
        return reading.uris_with_hash(self._database, tool_id, prefix)

    def select_documents(self, tool_id: int, where: Filter) -> list[int]:
        """Return the ids of the documents that match a filter."""
        return reading.select_documents(self._database, tool_id, where)

    def totals(self, tool_id: int) -> Totals:
        """Return how many documents, chunks, vectors and characters a tool has."""
        return stats.totals(self._database, tool_id)

    def storage_size(self, tool_id: int) -> StorageSize:
        """Return how many bytes a tool's rows take."""
        return stats.storage_size(self._database, tool_id)

    def chunk_lengths(self, tool_id: int) -> list[tuple[int, int]]:
        """Return pairs of chunk length in characters and number of chunks, shortest first."""
        return stats.chunk_lengths(self._database, tool_id)

    def list_documents(self, tool_id: int, *, skip: int = 0, limit: int = 20) -> list[DocumentSummary]:
        """Return a page of documents, sorted by URI."""
        return stats.list_documents(self._database, tool_id, skip=skip, limit=limit)

    def tags(self, tool_id: int) -> list[tuple[str, int]]:
        """Return each tag with its number of documents, most used first."""
        return stats.tags(self._database, tool_id)

    def recent_documents(self, tool_id: int, *, limit: int = 10) -> list[DatedDocument]:
        """Return the most recent documents, newest first; documents without a date come last."""
        return stats.recent_documents(self._database, tool_id, limit=limit)

    def pages(self, tool_id: int, urls: Sequence[str] | None = None) -> list[WebPage]:
        """Return all pages of a tool, or those with the given URLs, sorted by URL."""
        return pages.list_pages(self._database, tool_id, urls)

    def page_content(self, tool_id: int, url: str) -> bytes | None:
        """Return the content of a page as it was fetched, or None."""
        return pages.page_content(self._database, tool_id, url)

    def write_pages(
        self,
        tool_id: int,
        *,
        upsert: Sequence[WebPage] = (),
        contents: Mapping[str, bytes] | None = None,
        remove: Sequence[str] = (),
    ) -> None:
        """Write pages atomically; a page without new content keeps its old content."""
        with self._database.transaction() as connection:
            pages.write_pages(connection, tool_id, upsert, contents or {}, remove)

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        return cache.log_search(self._database, query, tool, searched_at, limit=limit)

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        return cache.logged_searches(self._database)

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        return cache.clear_searches(self._database)

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        return cache.cached_answer(self._database, kind, key, now)

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if another process is writing."""
        return cache.cache_answer(self._database, kind, key, value, now=now, expires_at=expires_at, limit=limit)

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        problems = [str(row[0]) for row in self._database.rows("PRAGMA integrity_check(5)") if row[0] != "ok"]
        problems += [
            f"{row[0]} refers to a row that does not exist" for row in self._database.rows("PRAGMA foreign_key_check")
        ]
        return "; ".join(problems)

    def close(self) -> None:
        """Close the store."""
        self._database.close()
