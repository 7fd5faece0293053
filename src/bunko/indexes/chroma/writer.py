"""Bring the collection of a tool up to date with the store."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bunko.errors import IndexFailure
from bunko.indexes.chroma.client import (
    COPY_KEY,
    GENERATION_KEY,
    LIBRARY_KEY,
    NONCE_KEY,
    TOOL_KEY,
    ChromaClient,
    ChunkRecord,
    CollectionInfo,
)
from bunko.indexes.chroma.file_guard import DamagedFiles
from bunko.indexes.replica import Follower, Replay, Stamp, batches
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.timing import timer

_log = logging.getLogger("bunko.index")

# Records in a request, and document ids in a filter: a few megabytes, and below the limits of Chroma (5,461 records)
# and of SQLite (32,766 parameters).
_RECORD_BATCH, _ID_BATCH = 250, 500


class CollectionWriter:
    """Writes the vectors of tools from the store to their collections; nothing is computed again."""

    def __init__(self, library_id: str, follower: Follower, client: ChromaClient, hnsw: Mapping[str, Any]) -> None:
        self._library_id, self._follower, self._client, self._hnsw = library_id, follower, client, hnsw

    def check_owner(self, collection: CollectionInfo) -> None:
        """Raise an error if a collection was not made for this library; it is never changed then."""
        if not collection.belongs_to(self._library_id):
            maker = "another bunko library" if LIBRARY_KEY in collection.metadata else "another program"
            raise IndexFailure(
                f"The collection {collection.name!r} in Chroma at {self._client.location} was made by {maker}",
                hint="Choose another name with chromadb.collection_name, or delete the collection.",
            )

    def update(self, name: str, tool_id: int) -> CollectionInfo:
        """Replay the changes since a collection was stamped, or fill it from scratch; return it."""
        collection = self._client.find(name)
        if collection is not None:
            self.check_owner(collection)
        replay = self._follower.plan_replay(tool_id, collection.stamp if collection else None)
        if collection is None or replay.from_scratch:
            return self._fill(name, tool_id, collection)
        if collection.hnsw.get("ef_search") != self._hnsw["ef_search"]:
            self._client.set_search_ef(collection, self._hnsw["ef_search"])
        try:
            self._client.check_files(collection)
            is_current = not replay.is_worthwhile(collection.stamp) or self._apply(collection, tool_id, replay)
        except DamagedFiles:
            is_current = False
        if not is_current:  # or the vectors have another dimension now
            return self._fill(name, tool_id, collection)
        return self._client.find(name) or collection

    def drop(self, tool_id: int, collection: CollectionInfo) -> None:
        """Delete a collection."""
        self._client.drop(collection.name)
        self._follower.forget_copy(tool_id, collection.stamp)

    def _fill(self, name: str, tool_id: int, old: CollectionInfo | None) -> CollectionInfo:
        """Make a new collection with all vectors of a tool."""
        if old is not None:
            self.drop(tool_id, old)
        replay = self._follower.plan_replay(tool_id, None)
        stamp = self._follower.announce_copy(tool_id)
        collection = self._client.create(name, self._metadata(tool_id, stamp), self._hnsw)
        reach_failpoint("index.created")
        if not self._apply(collection, tool_id, replay):
            raise IndexFailure(
                f"The tool has vectors of several dimensions, which the collection {name!r} cannot hold",
                hint="Compute them again: bunko reembed.",
            )
        return self._client.find(name) or collection

    def _apply(self, collection: CollectionInfo, tool_id: int, replay: Replay) -> bool:
        """Remove and write documents, then stamp the collection; return False if a vector does not fit into it."""
        stamp = self._follower.announce_change(tool_id, collection.stamp, replay.generation)
        with self._client.writing(collection):
            if not self._write_changes(collection, replay):
                return False
        self._client.stamp(collection, self._metadata(tool_id, stamp))
        reach_failpoint("index.stamped")
        return True

    def _write_changes(self, collection: CollectionInfo, replay: Replay) -> bool:
        for document_ids in batches(replay.removed, _ID_BATCH):
            self._client.delete_documents(collection, document_ids)
        reach_failpoint("index.removed")
        dimension = collection.dimension
        for records in self._records(replay.written):
            dimension = dimension or len(records[0].vector)
            if any(len(record.vector) != dimension for record in records):
                return False
            with timer("chromadb_write", _log, indent=1):
                self._client.upsert(collection, records)
            reach_failpoint("index.written")
        return True

    def _metadata(self, tool_id: int, stamp: Stamp) -> dict[str, Any]:
        return {
            LIBRARY_KEY: self._library_id,
            TOOL_KEY: tool_id,
            GENERATION_KEY: stamp.generation,
            COPY_KEY: stamp.copy,
            NONCE_KEY: stamp.nonce,
        }

    def _records(self, document_ids: Sequence[int]) -> Iterator[Sequence[ChunkRecord]]:
        """Yield the chunks of documents that have a vector, in batches."""
        for chunks, rows in self._follower.read_chunks(document_ids, with_vector=True):
            records = []
            for stored in chunks:
                row = rows[stored.chunk_id]
                metadata: dict[str, str | int] = {
                    "file_path": row.uri,
                    "chunk_index": row.chunk.index,
                    "heading": row.chunk.heading,
                    "title": row.title,
                    "document_id": stored.document_id,
                    "chunk_id": stored.chunk_id,
                }
                assert stored.vector is not None
                record_id = f"{row.uri}::chunk_{row.chunk.index}"
                records.append(ChunkRecord(record_id, stored.vector, metadata, row.chunk.text))
            yield from batches(records, _RECORD_BATCH)
