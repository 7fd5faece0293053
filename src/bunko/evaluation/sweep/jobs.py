"""Measure the points of a grid in batches, in worker processes or in this one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko import stores
from bunko.evaluation.cached_search import CachedSearch, SearchConfig
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.run import averages
from bunko.evaluation.sweep.result import PointScore
from bunko.library.library import Library
from bunko.library.paths import LibraryPaths
from bunko.records import StoreAddress
from bunko.settings import Settings
from bunko.workers import WorkerPool

if TYPE_CHECKING:
    from bunko.types import Vectors

_MAX_BATCH_POINTS = 64


@dataclass(frozen=True, slots=True)
class PointBatch:
    """Points that one process measures together, because they share the chunking and the lexical ranking."""

    tool_number: int
    configs: tuple[tuple[int, SearchConfig], ...]


def make_batches(
    pending: Sequence[int], configs: Sequence[SearchConfig], tool_numbers: Sequence[int]
) -> list[PointBatch]:
    """Return the pending points in batches; configs and tool numbers are indexed by point."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in pending:
        groups.setdefault((tool_numbers[index], configs[index].lexical_key), []).append(index)
    batches = []
    for group in groups.values():
        for start in range(0, len(group), _MAX_BATCH_POINTS):
            points = tuple((index, configs[index]) for index in group[start : start + _MAX_BATCH_POINTS])
            batches.append(PointBatch(tool_numbers[group[0]], points))
    return batches


def measure_batches(
    batches: Sequence[PointBatch], workers: int, worker_args: tuple[Any, ...]
) -> Iterator[tuple[PointBatch, list[PointScore]]]:
    """Yield each batch with its scores when it is done, measured by worker processes or, with one worker, by this one.

    Every process opens the library with `worker_args`; call `close_worker` to close it in this one.
    """
    measured: set[int] = set()
    if workers > 1 and len(batches) > 1:
        try:
            with WorkerPool(min(workers, len(batches)), _start_worker, worker_args) as pool:
                index_by_future = {pool.submit(_measure_batch, batch): index for index, batch in enumerate(batches)}
                for future in as_completed(index_by_future):
                    index = index_by_future[future]
                    yield batches[index], future.result()
                    measured.add(index)
        except BrokenProcessPool:
            # The system kills a worker when memory runs out; this process alone needs less than several.
            pass
    remaining = [batch for index, batch in enumerate(batches) if index not in measured]
    if remaining:
        _start_worker(*worker_args)
    for batch in remaining:
        yield batch, _measure_batch(batch)


class _WorkerState:
    """The read-only library of a process, and the cached search of the tool it measures."""

    def __init__(
        self,
        address: StoreAddress,
        paths: LibraryPaths,
        tools: Sequence[tuple[str, Settings]],
        queries: Sequence[JudgedQuery],
        vectors: Vectors | None,
        measure: str,
        tuning: frozenset[str],
        held_out: frozenset[str],
    ) -> None:
        self._paths, self._tools, self._queries, self._vectors = paths, tools, queries, vectors
        self._measure, self._tuning, self._held_out = measure, tuning, held_out
        self._store = stores.build(*address, read_only=True)
        self._searches: dict[int, CachedSearch] = {}

    def score_batch(self, batch: PointBatch) -> list[PointScore]:
        """Return the score of each point of a batch."""
        if batch.tool_number not in self._searches:
            tool, settings = self._tools[batch.tool_number]
            library = Library(self._paths, settings, self._store, read_only=True)
            self._searches = {
                batch.tool_number: CachedSearch(library, tool, self._queries, self._vectors, self._measure)
            }
        measured = self._searches[batch.tool_number].measure_queries([config for _, config in batch.configs])
        return [self._score_point(query_values) for query_values in measured]

    def _score_point(self, query_values: Sequence[Mapping[str, float]]) -> PointScore:
        pairs = list(zip(self._queries, query_values, strict=True))
        tuning, held_out = (
            averages(values for query, values in pairs if query.id in half).get(self._measure, 0.0)
            for half in (self._tuning, self._held_out)
        )
        return PointScore(tuning, held_out, averages(query_values))

    def close(self) -> None:
        self._store.close()


_worker_state: list[_WorkerState] = []  # at most one: the state of this process


def _start_worker(*worker_args: Any) -> None:
    _worker_state[:] = [_WorkerState(*worker_args)]


def _measure_batch(batch: PointBatch) -> list[PointScore]:
    return _worker_state[0].score_batch(batch)


def close_worker() -> None:
    """Close the library of this process, if it measured batches itself."""
    while _worker_state:
        _worker_state.pop().close()
