"""Points of a grid in, their scores out: in units that one process measures, with the library open to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko.evaluation.cached_search import CachedSearch, SearchConfig
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.run import averages
from bunko.evaluation.sweep.result import PointScore
from bunko.library.library import Library
from bunko.library.paths import LibraryPaths
from bunko.settings import Settings
from bunko.stores import sqlite
from bunko.workers import WorkerPool

if TYPE_CHECKING:
    from bunko.types import Vectors

_MAX_BATCH_POINTS = 64


@dataclass(frozen=True, slots=True)
class PointBatch:
    """Points that one process measures together: they share a way of cutting and a ranking by words."""

    tool_number: int
    configs: tuple[tuple[int, SearchConfig], ...]


def make_batches(
    pending: Sequence[int], configs: Sequence[SearchConfig], tool_numbers: Sequence[int]
) -> list[PointBatch]:
    """Return the points that are left in units; `asks` and `cuts` say how each is asked and cut."""
    together: dict[tuple[object, ...], list[int]] = {}
    for at in pending:
        together.setdefault((tool_numbers[at], configs[at].lexical_key), []).append(at)
    return [
        PointBatch(tool_numbers[some[0]], tuple((at, configs[at]) for at in some[first : first + _MAX_BATCH_POINTS]))
        for some in together.values()
        for first in range(0, len(some), _MAX_BATCH_POINTS)
    ]


def measure_batches(
    batches: Sequence[PointBatch], workers: int, worker_args: tuple[Any, ...]
) -> Iterator[tuple[PointBatch, list[PointScore]]]:
    """Yield each unit with its scores as it is done: by so many processes, or by this one where there is little to do.

    Every process is prepared with what is `given`, and `let_go` ends that for this one.
    """
    done: set[int] = set()
    if workers > 1 and len(batches) > 1:
        try:
            with WorkerPool(min(workers, len(batches)), _start_worker, worker_args) as pool:
                waiting = {pool.submit(_measure_batch, unit): at for at, unit in enumerate(batches)}
                for future in as_completed(waiting):
                    at = waiting[future]
                    yield batches[at], future.result()
                    done.add(at)
        except BrokenProcessPool:
            # Where memory runs out the system kills a worker; one process needs less of it than several.
            pass
    left = [unit for at, unit in enumerate(batches) if at not in done]
    if left:
        _start_worker(*worker_args)
    for unit in left:
        yield unit, _measure_batch(unit)


class _WorkerState:
    """What a process needs to measure units: the library open to read, and a desk for each way of cutting."""

    def __init__(
        self, paths: LibraryPaths, tools: Sequence[tuple[str, Settings]], queries: Sequence[JudgedQuery], vectors: Vectors | None,  # noqa: E501
        measure: str, tuning: frozenset[str], held_out: frozenset[str],
    ) -> None:  # fmt: skip
        self._paths, self._tools, self._queries, self._vectors = paths, tools, queries, vectors
        self._measure, self._tuning, self._held_out = measure, tuning, held_out
        self._store = sqlite.build(paths.database, read_only=True)
        self._searches: dict[int, CachedSearch] = {}

    def score_batch(self, batch: PointBatch) -> list[PointScore]:
        """Measure the points of a unit."""
        if batch.tool_number not in self._searches:
            tool, settings = self._tools[batch.tool_number]
            library = Library(self._paths, settings, self._store, read_only=True)
            self._searches = {
                batch.tool_number: CachedSearch(library, tool, self._queries, self._vectors, self._measure)
            }
        found = self._searches[batch.tool_number].measure_queries([ask for _, ask in batch.configs])
        return [self._score_point(values) for values in found]

    def _score_point(self, values: Sequence[Mapping[str, float]]) -> PointScore:
        named = list(zip(self._queries, values, strict=True))
        tuning, held_out = (
            averages(of for query, of in named if query.id in side).get(self._measure, 0.0)
            for side in (self._tuning, self._held_out)
        )
        return PointScore(tuning, held_out, averages(values))

    def close(self) -> None:
        self._store.close()


_worker_state: list[_WorkerState] = []  # one at most: what this process was prepared with


def _start_worker(*given: Any) -> None:
    _worker_state[:] = [_WorkerState(*given)]


def _measure_batch(batch: PointBatch) -> list[PointScore]:
    return _worker_state[0].score_batch(batch)


def close_worker() -> None:
    """Close what this process was prepared with."""
    while _worker_state:
        _worker_state.pop().close()
