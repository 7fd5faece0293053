"""Compose the embedded index, which answers words, with Chroma, which finds the nearest vectors."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bunko.errors import IndexFailure, SettingsError
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
from bunko.indexes.chroma.local import ChromaFiles, DamagedFiles
from bunko.indexes.chroma.view import ChromaView, LocalMoments
from bunko.indexes.embedded.index import EmbeddedIndex
from bunko.indexes.moments import Moments
from bunko.indexes.options import ChromaOptions, EngineOptions
from bunko.indexes.replica import COPY_STEP, EnginePause, Follower, Replay, Stamp, batches
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import timer
from bunko.types.records import IndexState

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_log = logging.getLogger("bunko.search")

# The tool whose collection has the plain name, as other programs expect it.
_PLAIN_TOOL = "documents"
# The settings that a collection is made with and keeps, by their names in Chroma.
_FIXED_SETTINGS = {"space": "hnsw_space", "ef_construction": "hnsw_construction_ef", "max_neighbors": "hnsw_M"}


class _Checked(NamedTuple):
    """A collection that was up to date when the store had a generation."""

    generation: int
    collection: CollectionInfo


class ChromaIndex:
    """An index whose vectors are searched by Chroma; the embedded index has them too, and answers if Chroma cannot."""

    kind = "chroma"

    def __init__(self, store: Store, folder: Path | None, client: ChromaClient, options: ChromaOptions) -> None:
        self._store, self._client, self._options = store, client, options
        self._segments = EmbeddedIndex(store, folder)
        self._moments = LocalMoments(store, folder)
        self._hnsw = {
            "space": options.space,
            "ef_construction": options.construction_ef,
            "ef_search": options.search_ef,
            "max_neighbors": options.links,
        }
        self._follower = Follower(store, "chroma")
        self._writer = CollectionWriter(store, self._follower, client, self._hnsw)
        self._checked: dict[int, _Checked] = {}
        self._pause = EnginePause()
        self.location = client.location

    def view(self, tool_ids: Sequence[int], *, without_vectors: Sequence[int] = ()) -> ChromaView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`."""
        segments = self._segments.view(tool_ids, without_vectors=without_vectors)
        vector_ids = [tool_id for tool_id in tool_ids if tool_id not in without_vectors]
        by_tool = {tool_id: self._segments.view([tool_id]) for tool_id in vector_ids}

        notices: list[str] = []

        def find_nearest(vector: npt.NDArray[np.float32], k: int, document_ids: Sequence[int] | None) -> list[int]:
            chunk_ids = []
            for tool_id, segment_view in by_tool.items():
                if any(view.segment.vectors.shape[1] == len(vector) for view in segment_view.views):
                    chunk_ids += self._find_nearest(tool_id, vector, k, document_ids)
                    notices.extend(self._difference_notices(tool_id))
            return chunk_ids

        def moments() -> Moments | None:
            return self._moments.sum_of(by_tool)

        return ChromaView(segments, find_nearest, moments, notices)

    def sync(self, tool_id: int, observer: Observer = NO_OBSERVER) -> ChromaView:
        """Bring the segments and the collection of a tool up to date; a failure of Chroma is a notice of the view."""
        self._segments.sync(tool_id)
        with self._store.read_transaction():
            self._moments.save(tool_id, self._segments.view([tool_id]))
        notices = []
        try:
            with self._pause.syncing(tool_id):
                self._update(tool_id, observer)
                notices += self._difference_notices(tool_id)
        except IndexFailure as failure:
            notices.append(f"The vectors were not copied to Chroma: {failure.message}. {failure.hint}".rstrip())
        with self._store.read_transaction():
            view = self.view([tool_id])
        view.notices = notices
        return view

    def unsaved_tools(self) -> list[int]:
        """Return none: the next import saves what this process has built, because it asks the server anyway."""
        return []

    def state(self, tool_id: int) -> IndexState:
        """Return how far the collection of a tool has followed the store."""
        try:
            with self._pause.asking():
                collection = self._client.find(self._name(tool_id))
                if collection is None:
                    return IndexState(0, self._follower.plan_replay(tool_id, None).pending, 0)
                self._writer.check_owner(collection)
                rows = self._client.count(collection)
        except IndexFailure as failure:
            return IndexState(0, problem=failure.message, hint=failure.hint)
        replay = self._follower.plan_replay(tool_id, collection.stamp)
        if replay.from_scratch:
            problem = "The collection belongs to another state of the library, such as before a restored backup"
            return IndexState(0, replay.pending, rows, problem, "Fill it anew: bunko index sync.")
        hint = self._difference(tool_id, collection)
        return IndexState(collection.stamp.generation, replay.pending, rows, "", hint)

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return the size of the files of the segments; Chroma's files hold all tools together."""
        return self._segments.storage_bytes(tool_id)

    def check(self, tool_id: int) -> str:
        """Return the problem of the segments or of the collection of a tool, or an empty string."""
        if problem := self._segments.check(tool_id):
            return problem
        with self._pause.asking():
            collection = self._client.find(self._name(tool_id))
            if collection is None:
                return ""
            self._writer.check_owner(collection)
            with self._store.read_transaction():
                replay = self._follower.plan_replay(tool_id, collection.stamp)
                chunks = self._store.changes.chunks_since(tool_id, 0)
                expected = {(chunk.document_id, chunk.chunk_id) for chunk in chunks if chunk.vector is not None}
            try:
                self._client.check_files(collection)
            except DamagedFiles as damage:
                return damage.message
            is_behind = replay.from_scratch or bool(replay.pending)
            if not is_behind and self._client.pairs(collection, at_most=len(expected)) != expected:
                return f"The collection {collection.name!r} in Chroma has other chunks than the library"
            return ""

    def repair(self, tool_id: int) -> bool:
        """Rebuild the segments or the collection of a tool if they are wrong; return whether they were."""
        if self._segments.repair(tool_id):
            return True
        if not self.check(tool_id):
            return False
        collection = self._client.find(self._name(tool_id))
        if collection is not None:
            self._writer.drop(tool_id, collection)
        self._update(tool_id)
        return True

    def drop(self, tool_id: int, *, copy_only: bool = False) -> None:
        """Delete the files and the collection of a tool, or only the collection."""
        self._checked.pop(tool_id, None)
        if not copy_only:
            self._segments.drop(tool_id)
            self._moments.drop(tool_id)
        # The tool may be deleted already, and with it the name that its collection got.
        for name in {self._name(tool_id), self._options.collection_name}:
            collection = self._client.find(name)
            if collection is not None and collection.belongs_to(self._store.id, tool_id):
                self._writer.drop(tool_id, collection)

    def close(self) -> None:
        """Close connections and files."""
        self._client.close()

    def _update(self, tool_id: int, observer: Observer = NO_OBSERVER) -> None:
        collection = self._writer.update(self._name(tool_id), tool_id, observer)
        self._checked[tool_id] = _Checked(collection.stamp.generation, collection)

    def _find_nearest(
        self, tool_id: int, vector: npt.NDArray[np.float32], k: int, document_ids: Sequence[int] | None
    ) -> list[int]:
        with self._pause.asking():
            try:
                collection = self._current_collection(tool_id)
                with timer("chromadb_query", _log):
                    return self._client.nearest(collection, vector, k, document_ids)
            except IndexFailure:
                self._checked.pop(tool_id, None)
                raise

    def _current_collection(self, tool_id: int) -> CollectionInfo:
        """Return the collection of a tool if it is up to date; it is looked up once for each state of the store."""
        checked = self._checked.get(tool_id)
        generation = self._store.generation()
        if checked is not None and checked.generation == generation:
            return checked.collection
        collection = self._client.find(self._name(tool_id))
        if collection is None:
            raise IndexFailure("Chroma does not have the vectors of this tool yet", hint="Copy them: bunko index sync.")
        self._writer.check_owner(collection)
        replay = self._follower.plan_replay(tool_id, collection.stamp)
        if replay.from_scratch:
            raise IndexFailure("Chroma has another state than the library", hint="Copy it anew: bunko index sync.")
        if replay.pending:
            documents = f"{replay.pending} document{'' if replay.pending == 1 else 's'}"
            raise IndexFailure(f"Chroma is {documents} behind the library", hint="Copy them: bunko index sync.")
        self._checked[tool_id] = _Checked(generation, collection)
        return collection

    def _difference_notices(self, tool_id: int) -> list[str]:
        """Return a notice if the collection of a tool, which was just used, was made with other settings."""
        checked = self._checked.get(tool_id)
        notice = self._difference(tool_id, checked.collection) if checked is not None else ""
        return [notice] if notice else []

    def _difference(self, tool_id: int, collection: CollectionInfo) -> str:
        """Return the other settings of a collection, and the command that applies the current ones."""
        keys = [
            f"chromadb.{key}"
            for name, key in _FIXED_SETTINGS.items()
            if collection.hnsw.get(name, self._hnsw[name]) != self._hnsw[name]
        ]
        if not keys:
            return ""
        tool = next((tool.name for tool in self._store.tools.all() if tool.id == tool_id), "")
        return (
            f"{tool} was built with a different {' and '.join(keys)} and keeps it. To use the current settings:"
            f" bunko index rebuild -n {shlex.quote(tool)}{self._options.library_flags}"
        )

    def _name(self, tool_id: int) -> str:
        """Return the name of the collection of a tool; a server may be shared by several libraries."""
        base = self._options.collection_name
        if self._options.url:
            return f"{base}-{self._store.id[:8]}-{tool_id}"
        tools = {tool.id: tool.name for tool in self._store.tools.all()}
        return base if tools.get(tool_id) == _PLAIN_TOOL else f"{base}-{tool_id}"


def build(store: Store, folder: Path | None, options: EngineOptions) -> ChromaIndex:
    """Return the index of a store that searches vectors with Chroma."""
    chroma = options.chroma
    if chroma.url:
        from bunko.indexes.chroma.server import ChromaServer

        return ChromaIndex(store, folder, ChromaServer(chroma), chroma)
    if chroma.folder is None:
        raise SettingsError(
            "The index chroma needs a library in files, or a server",
            hint="Set storage.kind to sqlite, or chromadb.url to the URL of a Chroma server.",
        )
    return ChromaIndex(store, folder, ChromaFiles(chroma.folder), chroma)


_index_log = logging.getLogger("bunko.index")

# Records in a request, and document ids in a filter: a few megabytes, and below the limits of Chroma (5,461 records)
# and of SQLite (32,766 parameters).
_RECORD_BATCH, _ID_BATCH = 250, 500


class CollectionWriter:
    """Writes the vectors of tools from the store to their collections; nothing is computed again."""

    def __init__(self, store: Store, follower: Follower, client: ChromaClient, hnsw: Mapping[str, Any]) -> None:
        self._store, self._follower, self._client, self._hnsw = store, follower, client, hnsw

    def check_owner(self, collection: CollectionInfo) -> None:
        """Raise an error if a collection was not made for this library; it is never changed then."""
        if not collection.belongs_to(self._store.id):
            maker = "another bunko library" if LIBRARY_KEY in collection.metadata else "another program"
            raise IndexFailure(
                f"The collection {collection.name!r} in Chroma at {self._client.location} was made by {maker}",
                hint="Choose another name with chromadb.collection_name, or delete the collection.",
            )

    def update(self, name: str, tool_id: int, observer: Observer) -> CollectionInfo:
        """Replay the changes since a collection was stamped, or all into a new one; return it."""
        collection = self._client.find(name)
        if collection is not None:
            self.check_owner(collection)
        if collection is None or not self._replay(collection, tool_id, observer):
            if collection is not None:
                self.drop(tool_id, collection)
            stamp = self._follower.announce_copy(tool_id)
            collection = self._client.create(name, self._metadata(tool_id, stamp), self._hnsw)
            reach_failpoint("index.created")
            if not self._replay(collection, tool_id, observer):
                raise IndexFailure(
                    f"The tool has vectors of several dimensions, which the collection {name!r} cannot hold",
                    hint="Compute them again: bunko reembed.",
                )
        return self._client.find(name) or collection

    def drop(self, tool_id: int, collection: CollectionInfo) -> None:
        """Delete a collection."""
        self._client.drop(collection.name)
        self._follower.forget_copy(tool_id, collection.stamp)

    def _replay(self, collection: CollectionInfo, tool_id: int, observer: Observer) -> bool:
        """Apply changes to a collection; return False if it must be filled from scratch."""
        replay = self._follower.plan_replay(tool_id, collection.stamp)
        if replay.from_scratch or replay.has_same_ids():
            return False
        if collection.hnsw.get("ef_search") != self._hnsw["ef_search"]:
            self._client.set_search_ef(collection, self._hnsw["ef_search"])
        try:
            self._client.check_files(collection)
            if not replay.is_worthwhile(collection.stamp):
                return True
            stamp = self._follower.announce_change(tool_id, collection.stamp)
            # Before any record: a library that was restored from before does not know it.
            self._client.stamp(collection, self._metadata(tool_id, stamp))
            with self._client.writing(collection):
                if not self._write_changes(collection, tool_id, stamp, replay, observer):
                    return False
        except DamagedFiles:
            return False
        self._client.stamp(collection, self._metadata(tool_id, stamp._replace(generation=replay.generation)))
        reach_failpoint("index.stamped")
        return True

    def _write_changes(
        self, collection: CollectionInfo, tool_id: int, stamp: Stamp, replay: Replay, observer: Observer
    ) -> bool:
        """Remove and write documents; return False if a vector does not fit into the collection."""
        for document_ids in batches(replay.removed, _ID_BATCH):
            self._client.delete_documents(collection, document_ids)
        reach_failpoint("index.removed")
        dimension, total = collection.dimension, self._store.stats.totals(tool_id).vectors
        for document_ids in replay.parts():
            for records in self._records(document_ids):
                dimension = dimension or len(records[0].vector)
                if any(len(record.vector) != dimension for record in records):
                    return False
                with timer("chromadb_write", _index_log, indent=1):
                    self._client.upsert(collection, records)
                reach_failpoint("index.written")
            self._follower.note_progress(tool_id, stamp, document_ids[-1])
            observer.on_step(COPY_STEP, min(self._client.count(collection), total), total)
        return True

    def _metadata(self, tool_id: int, stamp: Stamp) -> dict[str, Any]:
        return {
            LIBRARY_KEY: self._store.id,
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
