"""Answer searches from Milvus; what it finds is scored with the terms, vectors and statistics of the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bunko.errors import IndexFailure
from bunko.indexes.embedded.index import EmbeddedIndex
from bunko.indexes.embedded.view import EmbeddedView
from bunko.indexes.milvus.cards import CardReader, cards_of
from bunko.indexes.milvus.copies import ToolCopies, ToolCopy
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.milvus.statistics import CopyStatistics, SearchStatistics, unpack_moments
from bunko.indexes.milvus.view import MilvusView, PendingChunks, SearchedCopy
from bunko.indexes.milvus.writer import CopyWriter
from bunko.indexes.options import EngineOptions, MilvusOptions
from bunko.indexes.replica import EnginePause, Follower, Replay, Stamp
from bunko.protocols import IndexView, Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.types.records import IndexState

# Documents that a search adds itself if they are not copied yet; more would make it slow.
_MAX_PENDING = 500


class _ToolState(NamedTuple):
    """What a search needs to know about the copy of a tool, when the store had a generation."""

    generation: int
    stamp: Stamp | None  # of the copy
    copy: SearchedCopy | None
    statistics: CopyStatistics | None
    pending: PendingChunks
    is_current: bool  # copy and statistics are those of the generation
    missing: int  # documents that are neither copied nor pending


class MilvusIndex:
    """An index in Milvus; while it is away, segments that an embedded index left in the library answer."""

    kind = "milvus"

    def __init__(self, store: Store, folder: Path | None, server: MilvusServer, options: MilvusOptions) -> None:
        self._store, self._folder, self._server, self._options = store, folder, server, options
        self._copies = ToolCopies(server, store, options.collection_name)
        self._follower = Follower(store, "milvus", with_dates=True)
        self._writer = CopyWriter(store, self._follower, server, self._copies)
        self._reader = CardReader(self._cards)
        self._segments = EmbeddedIndex(store, folder)
        self._states: dict[int, _ToolState] = {}
        self._copy_ids: dict[int, str] = {}  # of each tool, the copy that cards were read from
        self._last_search = threading.local()  # `failed`: whether that of this thread did, so that it searches again
        self._pause = EnginePause()
        self.location = server.location

    def view(self, tool_ids: Sequence[int], *, without_vectors: Sequence[int] = ()) -> IndexView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`."""
        is_second_try = getattr(self._last_search, "failed", False)
        self._last_search.failed = False
        try:
            with self._pause.asking():
                states = {tool_id: self._state(tool_id) for tool_id in tool_ids}
        except IndexFailure as failure:
            return self._local_view(tool_ids, without_vectors, failure)
        generation = self._store.generation()
        copies = [
            state.copy._replace(moments=None) if tool_id in without_vectors else state.copy
            for tool_id, state in states.items()
            if state.copy is not None
        ]
        pending = [
            state.pending._replace(has_vectors=False) if tool_id in without_vectors else state.pending
            for tool_id, state in states.items()
        ]
        view = MilvusView(
            self._search,
            self._reader,
            self._store,
            tool_ids,
            without_vectors,
            copies,
            pending,
            self._search_statistics(states),
            self._fail if all(state.is_current for state in states.values()) and not is_second_try else lambda: None,
            generation=generation,
            candidates=self._options.candidates,
        )
        if missing := sum(state.missing for state in states.values()):
            view.notices = [f"Milvus is {missing} documents behind the library. Copy them: bunko index sync."]
        return view

    def sync(self, tool_id: int, observer: Observer = NO_OBSERVER) -> IndexView:
        """Bring the copy of a tool and its statistics up to date; if Milvus fails, return what is left as `view`."""
        self._states.pop(tool_id, None)
        try:
            with self._pause.syncing(tool_id):
                self._writer.update(tool_id, observer)
        except IndexFailure as failure:
            with self._store.read_transaction():
                view = self._local_view([tool_id], (), failure)
            view.notices = [f"The index was not updated: {failure.message}. {failure.hint}".rstrip()]
            return view
        with self._store.read_transaction():
            return self.view([tool_id])

    def unsaved_tools(self) -> list[int]:
        """Return none: the next import saves what this process has built, because it asks the server anyway."""
        return []

    def state(self, tool_id: int) -> IndexState:
        """Return how far the copy of a tool has followed the store."""
        try:
            with self._pause.asking():
                copy = self._copies.find(tool_id)
                rows = 0 if copy is None else self._server.count(copy.collection, f"tool == {tool_id}")
        except IndexFailure as failure:
            return IndexState(0, problem=failure.message, hint=failure.hint)
        replay = self._plan_replay(tool_id, copy)
        if copy is not None and replay.from_scratch:
            problem = "The copy belongs to another state of the library, such as before a restored backup"
            return IndexState(0, replay.pending, rows, problem, "Make it anew: bunko index sync.")
        return IndexState(copy.stamp.generation if copy else 0, replay.pending, rows)

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return the size of the segments that an embedded index left in the library."""
        return self._segments.storage_bytes(tool_id)

    def check(self, tool_id: int) -> str:
        """Return what is wrong with the copy of a tool, or an empty string."""
        with self._pause.asking():
            copy = self._copies.find(tool_id)
            replay = self._plan_replay(tool_id, copy)
            if copy is None or replay.from_scratch or replay.pending:
                return ""  # the next sync mends it
            expected = len(self._store.changes.chunk_ids(tool_id))
            statistics = self._store.index_statistics.get(tool_id, copy.stamp.copy)
            rows = self._server.count(copy.collection, f"tool == {tool_id}")
            if rows != expected or statistics is None or statistics.chunks != expected:
                counted = statistics.chunks if statistics else 0
                return f"The copy in Milvus has {rows} chunks, {counted} of them counted, and the library {expected}"
            return ""

    def repair(self, tool_id: int) -> bool:
        """Replace the copy of a tool if it is wrong; return whether it was."""
        if not self.check(tool_id):
            return False
        self._writer.delete(tool_id, self._copies.find(tool_id))
        self._writer.update(tool_id)
        self._states.pop(tool_id, None)
        return True

    def drop(self, tool_id: int, *, copy_only: bool = False) -> None:
        """Delete the copy of a tool with its statistics, and segments that an embedded index left, or only the copy."""
        self._states.pop(tool_id, None)
        if copy_only:
            self._writer.delete(tool_id, self._copies.find(tool_id))
            return
        if tool_id not in {tool.id for tool in self._store.tools.all()}:
            self._segments.drop(tool_id)
        self._writer.delete(tool_id, self._copies.find(tool_id))
        self._segments.drop(tool_id)  # not before: they answer if Milvus cannot

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def _search(
        self, collection: str, field: str, vectors: Sequence[object], limit: int, where: str
    ) -> list[list[tuple[int, float]]]:
        """Search for candidates."""
        with self._asking():
            return self._server.search(collection, field, vectors, limit, where)

    def _cards(self, collection: str, ids: Sequence[int]) -> dict[int, str]:
        """Read cards of candidates."""
        with self._asking():
            return self._server.cards(collection, ids)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Ask the server inside the block; a failure makes the next view a local one."""
        try:
            with self._pause.asking():
                yield
        except IndexFailure:
            self._states.clear()
            self._last_search.failed = True
            raise

    def _fail(self) -> None:
        """Raise, so that the library searches again, with the current rows.

        An import may have replaced documents since the search began: the new rows are not in the state of the store
        that it sees, and the old ones may be deleted.
        """
        self._states.clear()
        self._last_search.failed = True
        raise IndexFailure("The index has changed during the search", hint="Search again.")

    def _state(self, tool_id: int) -> _ToolState:
        """Return the state of a tool for a search; it is read once for each state of the store."""
        cached, generation = self._states.get(tool_id), self._store.generation()
        if (
            cached is not None
            and cached.generation == generation
            and cached.is_current
            # Another process may have made the copy anew, which changes nothing else in the store.
            and (cached.stamp is None or self._follower.knows(tool_id, cached.stamp))
        ):
            return cached
        tool_copy, copy = self._copies.find(tool_id), None
        replay = self._plan_replay(tool_id, tool_copy)
        read = tool_copy and self._store.index_statistics.get(tool_id, tool_copy.stamp.copy)
        statistics = None
        if replay.from_scratch or tool_copy is None or read is None or not tool_copy.stamp.generation:
            replay = self._plan_replay(tool_id, None)
        else:
            statistics = CopyStatistics(tool_id, tool_copy.stamp.copy, read, {})
            if self._copy_ids.setdefault(tool_id, tool_copy.stamp.copy) != tool_copy.stamp.copy:
                self._copy_ids[tool_id] = tool_copy.stamp.copy
                self._reader = CardReader(self._cards)  # rows of a copy never get other cards, but the next copy may
            copy = SearchedCopy(
                tool_id,
                tool_copy.collection,
                tool_copy.dimension,
                tool_copy.average_length,
                unpack_moments(read.vectors),
                has_old_dates=bool(replay.redated),
            )
        if copy is None and len(replay.written) > _MAX_PENDING:
            raise IndexFailure("Milvus does not have this tool yet", hint="Copy it: bunko index sync.")
        pending = self._pending_chunks(tool_id, replay, statistics)
        missing = max(0, len(replay.written) - _MAX_PENDING)
        stamp = tool_copy.stamp if tool_copy is not None and copy is not None else None
        state = _ToolState(generation, stamp, copy, statistics, pending, not replay.pending, missing)
        self._states[tool_id] = state
        return state

    def _pending_chunks(self, tool_id: int, replay: Replay, statistics: CopyStatistics | None) -> PendingChunks:
        written = replay.written[:_MAX_PENDING]
        cards = cards_of(list(self._store.changes.chunks_of(written)), tool_id, replay.generation)
        has_vectors = bool(statistics and statistics.statistics.vectors) or any(card.vector for card in cards)
        return PendingChunks(cards, has_vectors, frozenset({*replay.removed, *written}))

    def _search_statistics(self, states: dict[int, _ToolState]) -> SearchStatistics:
        copies = [state.statistics for state in states.values() if state.statistics is not None]
        pending = [card for state in states.values() for card in state.pending.cards]
        if all(state.is_current for state in states.values()):
            size = sum(copy.statistics.chunks for copy in copies)
        else:
            size = sum(self._store.stats.totals(tool_id).chunks for tool_id in states)
        return SearchStatistics(self._store, copies, pending, size)

    def _plan_replay(self, tool_id: int, copy: ToolCopy | None) -> Replay:
        return self._follower.plan_replay(tool_id, copy.stamp if copy else None)

    def _local_view(
        self, tool_ids: Sequence[int], without_vectors: Sequence[int], failure: IndexFailure
    ) -> EmbeddedView:
        """Return a view of the segments that an embedded index left, if every tool has some; raise the failure else."""
        if not all(self._segments.storage_bytes(tool_id) for tool_id in tool_ids):
            raise failure
        view = self._segments.view(tool_ids, without_vectors=without_vectors)
        local = EmbeddedView(view.views, view.generation, self._store)
        local.notices = [f"{failure.message}, so the local index was searched. {failure.hint}".rstrip()]
        return local


def build(store: Store, folder: Path | None, options: EngineOptions) -> MilvusIndex:
    """Return the index of a store that searches Milvus."""
    return MilvusIndex(store, folder, MilvusServer(options.milvus), options.milvus)
