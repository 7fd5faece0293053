"""A judged set and a grid of settings in, the best point out, and whether questions it never saw agree."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.evaluation.cached_search import SearchConfig, add_measure, embed_queries
from bunko.evaluation.compare import compare, confidence_intervals
from bunko.evaluation.dataset import JudgedQuery, JudgedSet
from bunko.evaluation.eval_library import JUDGED_TOOL, fill_tool, library_folder, open_library, with_settings
from bunko.evaluation.evaluate import ProgressCallback, usable_modes
from bunko.evaluation.run import Run, run_queries
from bunko.evaluation.sweep.grid import N_RESULTS, PointValues
from bunko.evaluation.sweep.jobs import close_worker, make_batches, measure_batches
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
from bunko.ingest.pipeline import ImportProgress
from bunko.library.library import Library
from bunko.settings import Settings
from bunko.workers import default_worker_count

if TYPE_CHECKING:
    from bunko.types import Vectors

# Starting workers costs about as much as asking so many questions.
_MIN_SEARCHES_FOR_WORKERS = 3000
_SECONDS_BETWEEN_SAVES = 2.0
_TOLERANCE = 1e-9


def run_sweep(
    judged_set: JudgedSet,
    settings_with: Callable[[Mapping[str, object]], Settings],
    plan: SweepPlan,
    *,
    persist_dir: Path | None = None,
    previous_scores: Mapping[str, PointScore] | None = None,
    save: Callable[[SweepResult], None] = lambda _: None,
    report_progress: ProgressCallback = lambda _what, _done, _total: None,
) -> SweepResult:
    """Measure every point of a grid, choose the best on one half of the questions, prove it on the other.

    `settings` gives those that hold with some flags changed. `former` are scores of points that need not be measured
    again, by `key_of`; `save` is called now and then with what is done so far, and when Ctrl-C ends the sweep.
    """
    started = time.monotonic()
    now = settings_with({})
    tuning, held_out = split_queries(judged_set.queries)
    counted = [query.id for query in judged_set.queries if _measure_applies(query, plan.measure)]
    check_query_counts(len(tuning.intersection(counted)), len(held_out.intersection(counted)), plan.measure)
    points = list(plan.grid.points())
    made = _PointSettings(plan, settings_with, now)
    asks_settings = [made.for_point(values) for values in points]
    done = SweepResult(
        judged_set, plan, sweep_fingerprint(judged_set, now, plan), _current_settings(now, plan), tuning, held_out, points,  # noqa: E501
        documents=len(judged_set.documents),
    )  # fmt: skip
    for at, values in enumerate(points):
        if previous_scores and (known := previous_scores.get(point_key(values))):
            done.scores[at] = known
    done.reused_count = len(done.scores)

    with library_folder(persist_dir) as folder, open_library(folder, now) as base:
        cuts = _ChunkedTools(base, judged_set, report_progress)
        desks = [cuts.ensure_tool(one) for one in (now, *asks_settings)][1:]
        asks = [
            _search_config(with_settings(base, own), plan, values)
            for own, values in zip(asks_settings, points, strict=True)
        ]
        base_ask = _search_config(with_settings(base, now), plan, {})
        done.settings["search.mode"] = base_ask.request.mode
        for mode in sorted({ask.request.mode for ask in (*asks, base_ask)}):
            usable_modes([mode], now)
        vectors = _query_vectors(base, judged_set, (*asks, base_ask))
        given = (base.paths, cuts.tools, judged_set.queries, vectors, plan.measure, tuning, held_out)
        left = [at for at in range(len(points)) if at not in done.scores]
        work_units = make_batches(left, asks, desks)
        workers = plan.workers or default_worker_count()
        if (
            len({(desks[at], asks[at].lexical_key) for at in left}) * len(judged_set.queries)
            < _MIN_SEARCHES_FOR_WORKERS
        ):
            workers = 1 if plan.workers is None else workers
        report_progress("Measuring", len(done.scores), len(points))
        saved = time.monotonic()
        try:
            for unit, scores in measure_batches(work_units, workers, given):
                done.scores.update(zip((at for at, _ in unit.configs), scores, strict=True))
                report_progress("Measuring", len(done.scores), len(points))
                if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
                    save(done)
                    saved = time.monotonic()
            _compare_best(done, cuts, list(zip(asks_settings, asks, strict=True)), (now, base_ask))
            done.toml = _best_toml(done, with_settings(base, now))
        except KeyboardInterrupt:
            done.seconds = time.monotonic() - started
            save(done)
            raise
        finally:
            close_worker()
    done.seconds = time.monotonic() - started
    save(done)
    return done


class _PointSettings:
    """The settings of points; what documents are cut by is loaded and checked once for each way of cutting."""

    def __init__(
        self, plan: SweepPlan, settings_with: Callable[[Mapping[str, object]], Settings], current: Settings
    ) -> None:
        self._grid, self._settings_with, self._current = plan.grid, settings_with, current
        self._by_chunking: dict[str, Settings] = {}

    def for_point(self, values: PointValues) -> Settings:
        """Return the settings of a point."""
        flags = self._grid.overrides(values)
        cutting = {key: value for key, value in flags.items() if not key.startswith("search.")}
        name = repr(sorted(cutting.items()))
        if name not in self._by_chunking:
            self._by_chunking[name] = self._settings_with(cutting) if cutting else self._current
        own = self._by_chunking[name]
        search = {key.partition(".")[2]: value for key, value in flags.items() if key.startswith("search.")}
        return replace(own, search=type(own.search)(**(vars(own.search) | search)))


class _ChunkedTools:
    """The ways of cutting: each is a tool of its own in one library, so that no text is embedded twice."""

    def __init__(self, library: Library, judged_set: JudgedSet, report_progress: ProgressCallback) -> None:
        self._library, self._judged_set, self._report_progress = library, judged_set, report_progress
        self.tools: list[tuple[str, Settings]] = []

    def ensure_tool(self, settings: Settings) -> int:
        """Return the number of the way that settings cut; documents are imported when it is new."""
        facts = [sorted(vars(getattr(settings, section)).items()) for section in INDEX_SECTIONS]
        tool = f"{JUDGED_TOOL}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"
        names = [name for name, _ in self.tools]
        if tool in names:
            return names.index(tool)
        what = f"Importing ({len(names) + 1})" if names else "Importing"

        def importing(done: ImportProgress) -> None:
            self._report_progress(what, done.files, done.total_files)

        library = with_settings(self._library, settings)
        fill_tool(library, self._judged_set.documents, tool=tool, progress=importing)
        self.tools.append((tool, library.settings))
        return len(names)

    def run_tool(self, settings: Settings, queries: Sequence[JudgedQuery], config: SearchConfig, name: str) -> Run:
        """Ask all questions in the ordinary way."""
        tool = self.tools[self.ensure_tool(settings)][0]
        return run_queries(
            with_settings(self._library, settings), queries, mode=config.request.mode, n_results=config.n_results,
            n_chunks=config.n_chunks, name=name, tool=tool,
        )  # fmt: skip


def _search_config(library: Library, plan: SweepPlan, values: PointValues) -> SearchConfig:
    own = values.get("mode")
    mode: Any = own if own is not None else plan.mode
    n_results = values.get(N_RESULTS, plan.n_results)
    assert isinstance(n_results, int)
    return SearchConfig(library.build_request("", mode=mode), n_results, None if plan.judge_documents else n_results)


def _query_vectors(library: Library, judged_set: JudgedSet, configs: Sequence[SearchConfig]) -> Vectors | None:
    embedder = library.embedder()
    if embedder is None or all(ask.request.mode == "bm25" for ask in configs):
        return None
    return embed_queries(embedder, judged_set.queries)


def _compare_best(
    result: SweepResult,
    tools: _ChunkedTools,
    points: Sequence[tuple[Settings, SearchConfig]],
    current: tuple[Settings, SearchConfig],
) -> None:
    """Ask with the best point and with the settings in force in the ordinary way, and compare where neither chose."""
    at = result.rank_points()[0]
    best, before = (
        _add_measure(tools.run_tool(settings, result.judged_set.queries, ask, name), result.measure)
        for name, (settings, ask) in (("best", points[at]), ("now", current))
    )
    known = result.scores[at].measures
    if any(abs(best.measures.get(name, 0.0) - value) > _TOLERANCE for name, value in known.items()):
        result.notices.append("The best point did not give the same answers when it was asked again; see its measures.")
    counted = [
        frozenset(best.values.get(result.measure, {})) & side for side in (result.tuning_ids, result.held_out_ids)
    ]
    check_query_counts(len(counted[0]), len(counted[1]), result.measure)
    result.best = _point_result(result, best, result.points[at])
    result.current = _point_result(
        result, before, {one.name: result.settings[one.key] for one in result.plan.grid.dimensions}
    )
    sides = [{result.measure: _measure_values(one, result.measure, result.held_out_ids)} for one in (before, best)]
    result.difference = compare(sides[0], sides[1], names=("now", "best")).differences[0]


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
    return Run(
        query_run.name,
        query_run.mode,
        tuple(
            replace(one, measures=add_measure(one.measures, one.query, [each.uri for each in one.documents], measure))
            for one in query_run.results
        ),
    )


def _current_settings(settings: Settings, plan: SweepPlan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for section in (*INDEX_SECTIONS[:2], "search"):
        found |= {f"{section}.{name}": value for name, value in vars(getattr(settings, section)).items()}
    if plan.mode is not None:
        found["search.mode"] = plan.mode
    return found | {"search.top_k": plan.n_results}


def _measure_applies(query: JudgedQuery, measure: str) -> bool:
    """Say whether a measure makes sense for a question."""
    own = {"negative_rate": query.negatives, "keywords": query.keywords, "abstention": not query.is_answerable}
    return bool(own.get(measure, query.is_answerable))


def _best_toml(result: SweepResult, library: Library) -> str:
    """Return the lines of a settings file that make the best point the usual one, nothing if it is so already."""
    if result.best is None:
        return ""
    wanted = result.changed_settings(result.best.values)
    if wanted and result.best.run.mode != library.build_request("").mode:
        wanted["search.mode"] = result.best.run.mode  # without it the rest would not take part
    sections: dict[str, list[str]] = {}
    for key, value in wanted.items():
        section, _, name = key.partition(".")
        written = '""' if value is None else json.dumps(value, ensure_ascii=False)
        sections.setdefault(section, []).append(f"{name} = {written}")
    return "\n\n".join("\n".join([f"[{section}]", *lines]) for section, lines in sorted(sections.items()))
