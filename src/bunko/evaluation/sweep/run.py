"""A judged set and a grid of settings in, the best point out, and whether questions it never saw agree."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.evaluation.cached_search import Ask, vectors_of, with_measure
from bunko.evaluation.compare import compare, intervals
from bunko.evaluation.dataset import Judged, Query
from bunko.evaluation.eval_library import TOOL, folder_for, opened, put, seen_through
from bunko.evaluation.evaluate import Watch, possible
from bunko.evaluation.run import Run, run
from bunko.evaluation.sweep.grid import N_RESULTS, Values
from bunko.evaluation.sweep.jobs import let_go, spread, units
from bunko.evaluation.sweep.result import BUILDING, Plan, Score, Side, Sweep, enough, fingerprint, halves, key_of
from bunko.ingest.pipeline import Progress
from bunko.library.library import Library
from bunko.settings import Settings
from bunko.workers import usual_number

if TYPE_CHECKING:
    from bunko.types import Vectors

# Starting workers costs about as much as asking so many questions.
_WORTH_WORKERS = 3000
_SECONDS_BETWEEN_SAVES = 2.0
_EQUAL = 1e-9


def sweep(
    judged: Judged,
    settings: Callable[[Mapping[str, object]], Settings],
    plan: Plan,
    *,
    persist_dir: Path | None = None,
    former: Mapping[str, Score] | None = None,
    save: Callable[[Sweep], None] = lambda _: None,
    watch: Watch = lambda _what, _done, _total: None,
) -> Sweep:
    """Measure every point of a grid, choose the best on one half of the questions, prove it on the other.

    `settings` gives those that hold with some flags changed. `former` are scores of points that need not be measured
    again, by `key_of`; `save` is called now and then with what is done so far, and when Ctrl-C ends the sweep.
    """
    started = time.monotonic()
    now = settings({})
    tuning, held_out = halves(judged.queries)
    counted = [query.id for query in judged.queries if _counts(query, plan.measure)]
    enough(len(tuning.intersection(counted)), len(held_out.intersection(counted)), plan.measure)
    points = list(plan.grid.points())
    made = _Points(plan, settings, now)
    asks_settings = [made.of(values) for values in points]
    done = Sweep(
        judged, plan, fingerprint(judged, now, plan), _in_force(now, plan), tuning, held_out, points,
        documents=len(judged.documents),
    )  # fmt: skip
    for at, values in enumerate(points):
        if former and (known := former.get(key_of(values))):
            done.scores[at] = known
    done.reused = len(done.scores)

    with folder_for(persist_dir) as folder, opened(folder, now) as base:
        cuts = _Cuts(base, judged, watch)
        desks = [cuts.of(one) for one in (now, *asks_settings)][1:]
        asks = [_ask(seen_through(base, own), plan, values) for own, values in zip(asks_settings, points, strict=True)]
        base_ask = _ask(seen_through(base, now), plan, {})
        done.settings["search.mode"] = base_ask.request.mode
        for mode in sorted({ask.request.mode for ask in (*asks, base_ask)}):
            possible([mode], now)
        vectors = _vectors(base, judged, (*asks, base_ask))
        given = (base.home, cuts.made, judged.queries, vectors, plan.measure, tuning, held_out)
        left = [at for at in range(len(points)) if at not in done.scores]
        work_units = units(left, asks, desks)
        workers = plan.workers or usual_number()
        if len({(desks[at], asks[at].lexical) for at in left}) * len(judged.queries) < _WORTH_WORKERS:
            workers = 1 if plan.workers is None else workers
        watch("Measuring", len(done.scores), len(points))
        saved = time.monotonic()
        try:
            for unit, scores in spread(work_units, workers, given):
                done.scores.update(zip((at for at, _ in unit.asks), scores, strict=True))
                watch("Measuring", len(done.scores), len(points))
                if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES:
                    save(done)
                    saved = time.monotonic()
            _prove(done, cuts, list(zip(asks_settings, asks, strict=True)), (now, base_ask))
            done.toml = _toml(done, seen_through(base, now))
        except KeyboardInterrupt:
            done.seconds = time.monotonic() - started
            save(done)
            raise
        finally:
            let_go()
    done.seconds = time.monotonic() - started
    save(done)
    return done


class _Points:
    """The settings of points; what documents are cut by is loaded and checked once for each way of cutting."""

    def __init__(self, plan: Plan, settings: Callable[[Mapping[str, object]], Settings], now: Settings) -> None:
        self._grid, self._settings, self._now = plan.grid, settings, now
        self._cut: dict[str, Settings] = {}

    def of(self, values: Values) -> Settings:
        """Return the settings of a point."""
        flags = self._grid.flags(values)
        cutting = {key: value for key, value in flags.items() if not key.startswith("search.")}
        name = repr(sorted(cutting.items()))
        if name not in self._cut:
            self._cut[name] = self._settings(cutting) if cutting else self._now
        own = self._cut[name]
        search = {key.partition(".")[2]: value for key, value in flags.items() if key.startswith("search.")}
        return replace(own, search=type(own.search)(**(vars(own.search) | search)))


class _Cuts:
    """The ways of cutting: each is a tool of its own in one library, so that no text is embedded twice."""

    def __init__(self, library: Library, judged: Judged, watch: Watch) -> None:
        self._library, self._judged, self._watch = library, judged, watch
        self.made: list[tuple[str, Settings]] = []

    def of(self, settings: Settings) -> int:
        """Return the number of the way that settings cut; documents are imported when it is new."""
        facts = [sorted(vars(getattr(settings, section)).items()) for section in BUILDING]
        tool = f"{TOOL}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"
        names = [name for name, _ in self.made]
        if tool in names:
            return names.index(tool)
        what = f"Importing ({len(names) + 1})" if names else "Importing"

        def importing(done: Progress) -> None:
            self._watch(what, done.files, done.total_files)

        library = seen_through(self._library, settings)
        put(library, self._judged.documents, tool=tool, progress=importing)
        self.made.append((tool, library.settings))
        return len(names)

    def asked(self, settings: Settings, queries: Sequence[Query], ask: Ask, name: str) -> Run:
        """Ask all questions in the ordinary way."""
        tool = self.made[self.of(settings)][0]
        return run(
            seen_through(self._library, settings), queries, mode=ask.request.mode, n_results=ask.n_results,
            chunks=ask.chunks, name=name, tool=tool,
        )  # fmt: skip


def _ask(library: Library, plan: Plan, values: Values) -> Ask:
    own = values.get("mode")
    mode: Any = own if own is not None else plan.mode
    n_results = values.get(N_RESULTS, plan.n_results)
    assert isinstance(n_results, int)
    return Ask(library.request("", mode=mode), n_results, None if plan.whole_documents else n_results)


def _vectors(library: Library, judged: Judged, asks: Sequence[Ask]) -> Vectors | None:
    embedder = library.embedder()
    if embedder is None or all(ask.request.mode == "bm25" for ask in asks):
        return None
    return vectors_of(embedder, judged.queries)


def _prove(done: Sweep, cuts: _Cuts, points: Sequence[tuple[Settings, Ask]], in_force: tuple[Settings, Ask]) -> None:
    """Ask with the best point and with the settings in force in the ordinary way, and compare where neither chose."""
    at = done.ranked()[0]
    best, before = (
        _with_measure(cuts.asked(settings, done.judged.queries, ask, name), done.measure)
        for name, (settings, ask) in (("best", points[at]), ("now", in_force))
    )
    known = done.scores[at].measures
    if any(abs(best.measures.get(name, 0.0) - value) > _EQUAL for name, value in known.items()):
        done.notices.append("The best point did not give the same answers when it was asked again; see its measures.")
    counted = [frozenset(best.values.get(done.measure, {})) & side for side in (done.tuning, done.held_out)]
    enough(len(counted[0]), len(counted[1]), done.measure)
    done.best = _side(done, best, done.points[at])
    done.now = _side(done, before, {one.name: done.settings[one.key] for one in done.plan.grid.dimensions})
    sides = [{done.measure: _values(one, done.measure, done.held_out)} for one in (before, best)]
    done.difference = compare(sides[0], sides[1], names=("now", "best")).differences[0]


def _side(done: Sweep, asked: Run, values: Values) -> Side:
    measure = done.measure
    tuning, held_out = (_values(asked, measure, ids) for ids in (done.tuning, done.held_out))
    low, high = intervals({measure: held_out})[measure]
    return Side(values, asked, _mean(tuning), _mean(held_out), low, high)


def _values(asked: Run, measure: str, ids: frozenset[str]) -> dict[str, float]:
    return {name: value for name, value in asked.values.get(measure, {}).items() if name in ids}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values) if values else 0.0


def _with_measure(asked: Run, measure: str) -> Run:
    return Run(
        asked.name,
        asked.mode,
        tuple(
            replace(one, measures=with_measure(one.measures, one.query, [each.document for each in one.found], measure))
            for one in asked.results
        ),
    )


def _in_force(now: Settings, plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for section in (*BUILDING[:2], "search"):
        found |= {f"{section}.{name}": value for name, value in vars(getattr(now, section)).items()}
    if plan.mode is not None:
        found["search.mode"] = plan.mode
    return found | {"search.top_k": plan.n_results}


def _counts(query: Query, measure: str) -> bool:
    """Say whether a measure makes sense for a question."""
    own = {"negative_rate": query.negatives, "keywords": query.keywords, "abstention": not query.answerable}
    return bool(own.get(measure, query.answerable))


def _toml(done: Sweep, library: Library) -> str:
    """Return the lines of a settings file that make the best point the usual one, nothing if it is so already."""
    if done.best is None:
        return ""
    wanted = done.changed(done.best.values)
    if wanted and done.best.run.mode != library.request("").mode:
        wanted["search.mode"] = done.best.run.mode  # without it the rest would not take part
    sections: dict[str, list[str]] = {}
    for key, value in wanted.items():
        section, _, name = key.partition(".")
        written = '""' if value is None else json.dumps(value, ensure_ascii=False)
        sections.setdefault(section, []).append(f"{name} = {written}")
    return "\n\n".join("\n".join([f"[{section}]", *lines]) for section, lines in sorted(sections.items()))
