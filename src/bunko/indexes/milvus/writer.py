"""Bring the copy of a tool in Milvus, and the statistics over it in the library, up to date.

Documents are written in parts: the rows first, then in one transaction of the library the statistics over them and the
note how far the copy has come. A crash between the two leaves rows that were never counted: of documents after the
noted one, which are written again or deleted. The frequencies of removed documents are read from their rows in Milvus,
because the library no longer has them, and subtracted; then the rows are deleted, and the stamp comes last.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.indexes.milvus.cards import Card, cards_of, stack_vectors, unpack_cards
from bunko.indexes.milvus.copies import ToolCopies, ToolCopy
from bunko.indexes.milvus.filters import date_number
from bunko.indexes.milvus.server import MAX_PATH_BYTES, MAX_RESULTS, MAX_TAG_BYTES, MAX_TAGS, MilvusServer, split_card
from bunko.indexes.milvus.statistics import pack_moments, unpack_moments, vector_size
from bunko.indexes.moments import Moments
from bunko.indexes.replica import COPY_STEP, Follower, batches
from bunko.protocols import Store
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import timer
from bunko.types.records import ToolStatistics

if TYPE_CHECKING:
    import numpy.typing as npt


_log = logging.getLogger("bunko.index")

# Rows in a request (about 15 kB each), ids in an expression, and documents whose cards are read at once.
_ROW_BATCH, _ID_BATCH, _CARD_BATCH = 200, 200, 20
_MAX_REMOVALS = 10_000  # recorded in the store before they are forgotten
_SAMPLED_DOCUMENTS = 100  # to learn how long chunks are


class CopyWriter:
    """Writes the chunks of tools from the store to Milvus; nothing is embedded again."""

    def __init__(self, store: Store, follower: Follower, server: MilvusServer, copies: ToolCopies) -> None:
        self._store, self._follower, self._server, self._copies = store, follower, server, copies

    def update(self, tool_id: int, observer: Observer = NO_OBSERVER) -> None:
        """Replay the changes since the copy of a tool was stamped, or all into a new one."""
        dimension = self._store.stats.dimension(tool_id)
        copy = self._copies.find(tool_id)
        if copy is None or copy.dimension != dimension or not self._replay(tool_id, copy, observer):
            self.delete(tool_id, copy)
            stamp = self._follower.announce_copy(tool_id)
            empty = ToolStatistics(self._store.generation(), 0, 0)
            self._store.index_statistics.replace(tool_id, stamp.copy, empty, ())
            copy = self._copies.create(tool_id, dimension, stamp, self._average_length(tool_id))
            reach_failpoint("index.created")
            if not self._replay(tool_id, copy, observer):
                raise self._follower.other_process()

    def delete(self, tool_id: int, copy: ToolCopy | None) -> None:
        """Delete the copy of a tool and its statistics."""
        self._copies.delete(tool_id)
        reach_failpoint("index.deleted")
        if copy is not None:
            self._store.index_statistics.clear(tool_id, copy.stamp.copy)
            self._follower.forget_copy(tool_id, copy.stamp)

    def _replay(self, tool_id: int, copy: ToolCopy, observer: Observer) -> bool:
        """Apply changes to the copy and the statistics; return False if the copy must be filled from scratch."""
        with self._store.read_transaction():
            replay = self._follower.plan_replay(tool_id, copy.stamp)
            statistics = self._store.index_statistics.get(tool_id, copy.stamp.copy)
            # The statistics may be ahead of the copy: a crash came between the two.
            counted_until = statistics.generation if statistics else 0
            uncounted = self._store.changes.removed_since(tool_id, counted_until)
            total = self._store.stats.totals(tool_id).chunks
        if (
            replay.from_scratch
            or replay.has_same_ids()
            or statistics is None
            or uncounted is None
            or (statistics.chunks and vector_size(statistics.vectors) != copy.dimension)
        ):
            return False
        if not replay.is_worthwhile(copy.stamp):
            return True
        accumulator = StatisticsAccumulator(statistics)
        copy = copy._replace(stamp=self._follower.announce_change(tool_id, copy.stamp))
        self._copies.write_stamp(tool_id, copy)  # before any row: a library that was restored from before knows it not
        # Never counted, but a crash may have come after their rows.
        self._delete_documents(tool_id, copy, [number for number in replay.removed if number > replay.document])
        for document_ids in replay.parts():
            self._write_documents(tool_id, copy, document_ids, replay.generation, accumulator)
            self._store_statistics(tool_id, copy, accumulator, counted_until, document_ids[-1])
            observer.on_step(COPY_STEP, min(accumulator.chunks, total), total)
        # Of the generation that searches know.
        self._write_documents(tool_id, copy, replay.redated, copy.stamp.generation, None)
        if not self._subtract(tool_id, copy, uncounted, accumulator):
            return False
        last_id = [replay.document, *replay.written][-1]
        self._store_statistics(tool_id, copy, accumulator, replay.generation, last_id)
        # A library that was restored from before has other statistics, and must not know the finished copy.
        copy = copy._replace(stamp=self._follower.announce_change(tool_id, copy.stamp))
        self._copies.write_stamp(tool_id, copy)
        self._delete_documents(tool_id, copy, replay.removed)
        reach_failpoint("index.removed")
        self._copies.write_stamp(tool_id, copy._replace(stamp=copy.stamp._replace(generation=replay.generation)))
        reach_failpoint("index.stamped")
        if len(self._store.changes.removed_since(tool_id, 0) or ()) > _MAX_REMOVALS:
            self._store.changes.prune_removals(tool_id, replay.generation)
        return True

    def _average_length(self, tool_id: int) -> float:
        """Return the average length of the chunks of some documents."""
        with self._store.read_transaction():
            ids = self._store.changes.documents_since(tool_id, 0)
            some = ids[:: max(1, len(ids) // _SAMPLED_DOCUMENTS)]
            lengths = [int(chunk.term_counts.sum()) for chunk in self._store.changes.chunks_of(some)]
        return sum(lengths) / max(len(lengths), 1)

    def _store_statistics(
        self, tool_id: int, copy: ToolCopy, accumulator: StatisticsAccumulator, generation: int, document_id: int
    ) -> None:
        """Store the statistics, with what has changed in them, and note up to which document the copy has all."""
        note = self._follower.progress(tool_id, copy.stamp, document_id)
        statistics, changes = accumulator.statistics(generation), accumulator.changes()
        if not self._store.index_statistics.update(tool_id, copy.stamp.copy, statistics, changes, note):
            raise self._follower.other_process()
        reach_failpoint("index.counted")

    def _delete_documents(self, tool_id: int, copy: ToolCopy, document_ids: Sequence[int]) -> None:
        for batch in batches(document_ids, _ID_BATCH):
            self._server.delete(copy.collection, _documents_expression(tool_id, batch))

    def _subtract(
        self, tool_id: int, copy: ToolCopy, document_ids: Sequence[int], accumulator: StatisticsAccumulator
    ) -> bool:
        """Subtract the rows of removed documents from the statistics; return False if there are too many to read."""
        for batch in batches(document_ids, _CARD_BATCH):
            texts = self._server.cards_where(copy.collection, _documents_expression(tool_id, batch))
            if len(texts) >= MAX_RESULTS:
                return False
            accumulator.add([card for _, card in unpack_cards(texts)], copy.dimension, sign=-1)
        return True

    def _write_documents(
        self,
        tool_id: int,
        copy: ToolCopy,
        document_ids: Sequence[int],
        generation: int,
        accumulator: StatisticsAccumulator | None,  # None if they were counted before
    ) -> None:
        """Write the rows of documents, and count them."""
        dimension = copy.dimension
        for chunks, rows in self._follower.read_chunks(document_ids):
            cards = cards_of(chunks, tool_id, generation)
            vectors = stack_vectors(cards, dimension)
            records: list[dict[str, Any]] = []
            for position, card in enumerate(cards):
                row = rows[card.chunk_id]
                record: dict[str, Any] = {
                    "id": card.chunk_id,
                    "tool": tool_id,
                    "document_id": card.document_id,
                    "path": _cut(row.uri, MAX_PATH_BYTES),
                    "date": date_number(row.date),
                    "tags": [_cut(tag, MAX_TAG_BYTES) for tag in row.tags[:MAX_TAGS]],
                    "sparse": card.sparse_vector(copy.average_length),
                }
                records.append(
                    record | split_card(card.pack()) | ({"dense": vectors[position].tolist()} if dimension else {})
                )
            for batch in batches(records, _ROW_BATCH):
                with timer("milvus_write", _log, indent=1):
                    self._server.upsert(copy.collection, batch)
                reach_failpoint("index.written")
            if accumulator is not None:
                accumulator.add(cards, dimension)


def _documents_expression(tool_id: int, document_ids: Sequence[int]) -> str:
    return f"tool == {tool_id} and document_id in [{', '.join(map(str, document_ids))}]"


def _cut(text: str, max_bytes: int) -> str:
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


# Counts that are collected before they are added up: 64 MB.
_MAX_COLLECTED = 4_000_000


class StatisticsAccumulator:
    """Counts in how many chunks each dimension occurs, and adds up lengths and vectors."""

    def __init__(self, start: ToolStatistics | None = None) -> None:
        self.chunks, self._terms = (start.chunks, start.terms) if start else (0, 0)
        self._moments = unpack_moments(start.vectors) if start else None
        self._keys: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._counts: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._collected: list[tuple[npt.NDArray[np.uint64], int]] = []
        self._collected_size = 0

    def add(self, cards: Sequence[Card], dimension: int, *, sign: int = 1) -> None:
        """Add chunks, or subtract them with a sign of -1; `dimension` is that of the vectors that count, or 0."""
        for card in cards:
            distinct = np.unique(card.dimensions()).astype(np.uint64)
            self._collected.append((distinct, sign))
            self._collected_size += len(distinct)
            self.chunks += sign
            self._terms += sign * card.length
        if dimension and cards:
            moments = Moments.of(stack_vectors(cards, dimension))
            current = self._moments or Moments.of(np.empty((0, dimension), np.float32))
            self._moments = current + moments if sign > 0 else current - moments
        if self._collected_size > _MAX_COLLECTED:
            self._add_up()

    def statistics(self, generation: int) -> ToolStatistics:
        """Return the statistics of all chunks so far."""
        return ToolStatistics(generation, self.chunks, self._terms, pack_moments(self._moments))

    def changes(self) -> Iterator[tuple[int, int]]:
        """Yield each dimension and by how much its number of chunks has changed since the last call."""
        self._add_up()
        changed = self._counts != 0
        keys, counts = self._keys[changed].tolist(), self._counts[changed].tolist()
        self._keys, self._counts = self._keys[:0], self._counts[:0]
        return zip(keys, counts, strict=True)

    def _add_up(self) -> None:
        keys = np.concatenate([self._keys, *(chunk_keys for chunk_keys, _ in self._collected)])
        signs = [np.full(len(chunk_keys), sign, np.int64) for chunk_keys, sign in self._collected]
        counts = np.concatenate([self._counts, *signs])
        self._keys, positions = np.unique(keys, return_inverse=True)
        self._counts = np.zeros(len(self._keys), np.int64)
        np.add.at(self._counts, positions, counts)
        self._collected, self._collected_size = [], 0
