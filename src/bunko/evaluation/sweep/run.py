"""Measure every point of a grid and check the best one on held-out queries."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko import stores
from bunko.evaluation.cached_search import CachedSearch, SearchConfig, add_measure, embed_queries
from bunko.evaluation.compare import compare, confidence_intervals
from bunko.evaluation.dataset import JudgedQuery, JudgedSet, without_wordings
from bunko.evaluation.eval_library import JUDGED_TOOL, fill_tool, library_folder, open_library, with_settings
from bunko.evaluation.evaluate import usable_modes
from bunko.evaluation.run import Run, averages, run_queries
from bunko.evaluation.sweep.grid import N_RESULTS, PointValues
from bunko.evaluation.sweep.result import (
    INDEX_SECTIONS,
    PointResult,
    PointScore,
    SweepPlan,
    SweepResult,
    check_query_counts,
    point_key,
    split_queries,
    sweep_fingerprint,
)
from bunko.library.library import Library
from bunko.library.opening.paths import LibraryPaths
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.workers import WorkerPool, default_worker_count
from bunko.settings import Settings
from bunko.types.records import StoreAddress

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


# Starting workers takes about as long as this many searches.
_MIN_SEARCHES_FOR_WORKERS = 3000
_SECONDS_BETWEEN_SAVES = 2.0
_TOLERANCE = 1e-9
# Without them, a sweep is about what people type.
_WORDING_KEYS = ("search.also_weight", "search.passage_weight")


def run_sweep(
    judged_set: JudgedSet,
    settings_with: Callable[[Mapping[str, object]], Settings],
    plan: SweepPlan,
    *,
    persist_dir: Path | None = None,
    previous_scores: Mapping[str, PointScore] | None = None,
    save: Callable[[SweepResult], None] = lambda _: None,
    observer: Observer = NO_OBSERVER,
) -> SweepResult:
    """Measure every point of a grid, choose the best on one half of the queries, and check it on the other.

    `settings_with` returns the settings in force with some overrides. `previous_scores` are scores that need not be
    measured again, by `point_key`. `save` is called every few seconds with the result so far, when the sweep ends, and
    when Ctrl-C ends it.
    """
    started = time.monotonic()
    if not any(dimension.key in _WORDING_KEYS for dimension in plan.grid.dimensions):
        judged_set = replace(judged_set, queries=tuple(map(without_wordings, judged_set.queries)))
    current = settings_with({})
    result = _new_result(judged_set, current, plan, previous_scores or {})
    point_settings = _PointSettings(plan, settings_with, current)
    settings_by_point = [point_settings.for_point(values) for values in result.points]

    with library_folder(persist_dir) as folder, open_library(folder, current) as library:
        tools = _ChunkedTools(library, judged_set, observer)
        tools.ensure_tool(current)
        tool_numbers = [tools.ensure_tool(settings) for settings in settings_by_point]
        configs = [
            _search_config(with_settings(library, settings), plan, values)
            for settings, values in zip(settings_by_point, result.points, strict=True)
        ]
        current_config = _search_config(with_settings(library, current), plan, {})
        result.settings["search.mode"] = current_config.request.mode
        for mode in sorted({config.request.mode for config in (*configs, current_config)}):
            usable_modes([mode], current)
        vectors = _query_vectors(library, judged_set, (*configs, current_config))
        worker_args = (
            library.storage.address, library.paths, tools.tools, judged_set.queries, vectors,
            plan.measure, result.tuning_ids, result.held_out_ids,
        )  # fmt: skip
        pending = [index for index in range(len(result.points)) if index not in result.scores]
        batches = make_batches(pending, configs, tool_numbers)
        ranking_keys = {(tool_numbers[index], configs[index].lexical_key) for index in pending}
        workers = _worker_count(plan, len(ranking_keys) * len(judged_set.queries))
        observer.on_step("Measuring", len(result.scores), len(result.points))
        try:
            _measure_points(result, measure_batches(batches, workers, worker_args), save, observer)
            points = list(zip(settings_by_point, configs, strict=True))
            _compare_best(result, tools, points, (current, current_config))
            result.toml = _best_toml(result, with_settings(library, current))
        except KeyboardInterrupt:
            result.seconds = time.monotonic() - started
            save(result)
            raise
        finally:
            close_worker()
    result.seconds = time.monotonic() - started
    save(result)
    return result


def _new_result(
    judged_set: JudgedSet, current: Settings, plan: SweepPlan, previous_scores: Mapping[str, PointScore]
) -> SweepResult:
    """Return a result with the queries split and the previous scores filled in."""
    tuning, held_out = split_queries(judged_set.queries)
    applicable = [query.id for query in judged_set.queries if _measure_applies(query, plan.measure)]
    check_query_counts(len(tuning.intersection(applicable)), len(held_out.intersection(applicable)), plan.measure)
    points = list(plan.grid.points())
    previous = {index: previous_scores.get(point_key(values)) for index, values in enumerate(points)}
    scores = {index: score for index, score in previous.items() if score is not None}
    return SweepResult(
        judged_set,
        plan,
        sweep_fingerprint(judged_set, current, plan),
        _current_settings(current, plan),
        tuning,
        held_out,
        points,
        scores=scores,
        reused_count=len(scores),
        documents=len(judged_set.documents),
    )


def _worker_count(plan: SweepPlan, search_count: int) -> int:
    if plan.workers is None and search_count < _MIN_SEARCHES_FOR_WORKERS:
        return 1
    return plan.workers or default_worker_count()


def _measure_points(
    result: SweepResult,
    scored_batches: Iterable[tuple[PointBatch, list[PointScore]]],
    save: Callable[[SweepResult], None],
    observer: Observer,
) -> None:
    """Add the scores of each batch to the result, and save it every few seconds."""
    last_save = time.monotonic()
    for batch, scores in scored_batches:
        result.scores.update(zip((index for index, _ in batch.configs), scores, strict=True))
        observer.on_step("Measuring", len(result.scores), len(result.points))
        if time.monotonic() - last_save > _SECONDS_BETWEEN_SAVES:
            save(result)
            last_save = time.monotonic()


class _PointSettings:
    """Builds the settings of points; settings outside [search] are loaded and validated once per combination."""

    def __init__(
        self, plan: SweepPlan, settings_with: Callable[[Mapping[str, object]], Settings], current: Settings
    ) -> None:
        self._grid, self._settings_with, self._current = plan.grid, settings_with, current
        self._by_chunking: dict[str, Settings] = {}

    def for_point(self, values: PointValues) -> Settings:
        """Return the settings of a point."""
        overrides = self._grid.overrides(values)
        chunking = {key: value for key, value in overrides.items() if not key.startswith("search.")}
        search = {key.partition(".")[2]: value for key, value in overrides.items() if key.startswith("search.")}
        cache_key = repr(sorted(chunking.items()))
        if cache_key not in self._by_chunking:
            self._by_chunking[cache_key] = self._settings_with(chunking) if chunking else self._current
        settings = self._by_chunking[cache_key]
        return replace(settings, search=type(settings.search)(**(vars(settings.search) | search)))


class _ChunkedTools:
    """One tool per chunking, all in one library, so that no text is embedded twice."""

    def __init__(self, library: Library, judged_set: JudgedSet, observer: Observer) -> None:
        self._library, self._judged_set, self._observer = library, judged_set, observer
        self.tools: list[tuple[str, Settings]] = []

    def ensure_tool(self, settings: Settings) -> int:
        """Return the number of the tool with these index settings; import the documents if it is new."""
        facts = [sorted(getattr(settings, section).values().items()) for section in INDEX_SECTIONS]
        tool = f"{JUDGED_TOOL}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"
        names = [name for name, _ in self.tools]
        if tool in names:
            return names.index(tool)
        step = f"Importing ({len(names) + 1})" if names else "Importing"
        library = with_settings(self._library, settings)
        fill_tool(library, self._judged_set.documents, tool=tool, observer=self._observer.for_step(step))
        self.tools.append((tool, library.settings))
        return len(names)

    def run_tool(self, settings: Settings, queries: Sequence[JudgedQuery], config: SearchConfig, name: str) -> Run:
        """Run all queries with ordinary searches."""
        tool = self.tools[self.ensure_tool(settings)][0]
        return run_queries(
            with_settings(self._library, settings), queries, mode=config.request.mode, n_results=config.n_results,
            n_chunks=config.n_chunks, name=name, tool=tool, with_wordings=True,
        )  # fmt: skip


def _search_config(library: Library, plan: SweepPlan, values: PointValues) -> SearchConfig:
    point_mode = values.get("mode")
    mode: Any = point_mode if point_mode is not None else plan.mode
    n_results = values.get(N_RESULTS, plan.n_results)
    assert isinstance(n_results, int)
    return SearchConfig(library.build_request("", mode=mode), n_results, None if plan.judge_documents else n_results)


def _query_vectors(library: Library, judged_set: JudgedSet, configs: Sequence[SearchConfig]) -> Vectors | None:
    embedder = library.embedder()
    if embedder is None or all(config.request.mode == "bm25" for config in configs):
        return None
    return embed_queries(embedder, judged_set.queries)


def _compare_best(
    result: SweepResult,
    tools: _ChunkedTools,
    points: Sequence[tuple[Settings, SearchConfig]],
    current: tuple[Settings, SearchConfig],
) -> None:
    """Run the best point and the settings in force with ordinary searches, and compare them on the held-out half."""
    best_index = result.rank_points()[0]
    best_run, current_run = (
        _add_measure(tools.run_tool(settings, result.judged_set.queries, config, name), result.measure)
        for name, (settings, config) in (("best", points[best_index]), ("now", current))
    )
    expected = result.scores[best_index].measures
    if any(abs(best_run.measures.get(name, 0.0) - value) > _TOLERANCE for name, value in expected.items()):
        result.notices.append("The best point scored differently when it was measured again; see its measures.")
    measured_ids = frozenset(best_run.values.get(result.measure, {}))
    check_query_counts(len(measured_ids & result.tuning_ids), len(measured_ids & result.held_out_ids), result.measure)
    current_values = {dimension.name: result.settings[dimension.key] for dimension in result.plan.grid.dimensions}
    result.best = _point_result(result, best_run, result.points[best_index])
    result.current = _point_result(result, current_run, current_values)
    current_held_out, best_held_out = (
        {result.measure: _measure_values(run, result.measure, result.held_out_ids)} for run in (current_run, best_run)
    )
    result.difference = compare(current_held_out, best_held_out, names=("now", "best")).differences[0]


def _point_result(result: SweepResult, query_run: Run, values: PointValues) -> PointResult:
    measure = result.measure
    tuning, held_out = (_measure_values(query_run, measure, ids) for ids in (result.tuning_ids, result.held_out_ids))
    low, high = confidence_intervals({measure: held_out})[measure]
    return PointResult(values, query_run, _mean(tuning), _mean(held_out), low, high)


def _measure_values(query_run: Run, measure: str, ids: frozenset[str]) -> dict[str, float]:
    return {name: value for name, value in query_run.values.get(measure, {}).items() if name in ids}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values) if values else 0.0


def _add_measure(query_run: Run, measure: str) -> Run:
    results = []
    for query_result in query_run.results:
        uris = [document.uri for document in query_result.documents]
        measures = add_measure(query_result.measures, query_result.query, uris, measure)
        results.append(replace(query_result, measures=measures))
    return Run(query_run.name, query_run.mode, tuple(results))


def _current_settings(settings: Settings, plan: SweepPlan) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for section in (*INDEX_SECTIONS[:2], "search"):
        values |= {f"{section}.{name}": value for name, value in vars(getattr(settings, section)).items()}
    if plan.mode is not None:
        values["search.mode"] = plan.mode
    return values | {"search.top_k": plan.n_results}


def _measure_applies(query: JudgedQuery, measure: str) -> bool:
    """Return whether a measure applies to a query."""
    special = {"negative_rate": query.negatives, "keywords": query.keywords, "abstention": not query.is_answerable}
    return bool(special.get(measure, query.is_answerable))


def _best_toml(result: SweepResult, library: Library) -> str:
    """Return the settings of the best point as TOML; empty if they are in force already."""
    if result.best is None:
        return ""
    changes = result.changed_settings(result.best.values)
    if changes and result.best.run.mode != library.build_request("").mode:
        changes["search.mode"] = result.best.run.mode  # without it the other changes would have no effect
    sections: dict[str, list[str]] = {}
    for key, value in changes.items():
        section, _, name = key.partition(".")
        toml_value = '""' if value is None else json.dumps(value, ensure_ascii=False)
        sections.setdefault(section, []).append(f"{name} = {toml_value}")
    return "\n\n".join("\n".join([f"[{section}]", *lines]) for section, lines in sorted(sections.items()))
