"""Choose the weights of other wordings of a question, by the judged questions of a tool that have some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.compare import Difference, compare
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.settings_change import DEPTH, MEASURE, judged_queries
from bunko.library.library import Library
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import RankRequest
from bunko.types import Tool

# The smallest and the largest that helped on judged sets, and what lies between.
_TRIED_WEIGHTS = {"also_weight": (0.0, 0.1, 0.25, 0.5), "passage_weight": (0.0, 0.25, 0.5, 1.0)}
WEIGHT_NAMES = tuple(_TRIED_WEIGHTS)
# With fewer in a half, a single question decides.
_MIN_QUERIES = 15
_TOLERANCE = 1e-9

Weights = dict[str, float]


@dataclass(slots=True)
class WordingTuning:
    """The weights that a half of the judged questions chooses, and what they gain in the other half."""

    current: Weights
    best: Weights = field(default_factory=dict)
    query_counts: tuple[int, int] = (0, 0)  # in the half that chooses, in the half that checks
    choice_scores: tuple[float, float] = (0.0, 0.0)  # before and after, in the half that chooses
    holdout_difference: Difference | None = None
    reason: str = ""  # why nothing should change; empty: the tool should use the best weights


def tune_wordings(
    library: Library, tool: Tool, request: RankRequest, *, observer: Observer = NO_OBSERVER
) -> WordingTuning | None:
    """Try weights on the judged questions of a tool that have wordings; None if there are none."""
    queries = [query for query in judged_queries(library, tool) if query.also or query.passage]
    if not queries:
        return None
    queries.sort(key=lambda query: sha256(query.text.encode("utf-8", "surrogatepass")).digest())
    first, second = queries[::2], queries[1::2]
    current: Weights = {name: getattr(request.options, name) for name in WEIGHT_NAMES}
    tuning = WordingTuning(current, current, (len(first), len(second)))
    if len(second) < _MIN_QUERIES:
        tuning.reason = (
            f"{2 * _MIN_QUERIES} judged questions with other wordings are needed, and there are {len(queries)}"
        )
        return tuning
    search = _cached_search(library, tool, request, first)
    # A weight is tried where some question has what it is the weight of.
    used = {"also_weight": any(query.also for query in first), "passage_weight": any(query.passage for query in first)}
    before = highest = _mean(_score(search, request, [current])[0])
    names = [name for name in WEIGHT_NAMES if used[name]]
    for step, name in enumerate(names):
        observer.on_step("Trying weights of wordings", step, len(names))
        trials = [tuning.best | {name: value} for value in _TRIED_WEIGHTS[name] if value != tuning.best[name]]
        for weights, scores in zip(trials, _score(search, request, trials), strict=True):
            if _mean(scores) > highest + _TOLERANCE:
                tuning.best, highest = weights, _mean(scores)
    tuning.choice_scores = before, highest
    if tuning.best == current:
        tuning.reason = "no other weights answer the first half of the judged questions better than the current ones"
        return tuning
    old, new = _score(_cached_search(library, tool, request, second), request, [current, tuning.best])
    by_id = [{query.id: score for query, score in zip(second, scores, strict=True)} for scores in (old, new)]
    comparison = compare({MEASURE: by_id[0]}, {MEASURE: by_id[1]}, names=("now", "best"))
    tuning.holdout_difference = comparison.differences[0]
    if tuning.holdout_difference.low <= 0:
        low, high = tuning.holdout_difference.low, tuning.holdout_difference.high
        tuning.reason = (
            "the other half of the judged questions does not confirm the weights of wordings: the 95 % interval of the"
            f" gain there, {low:+.4f} to {high:+.4f}, does not lie above 0"
        )
    return tuning


def _cached_search(library: Library, tool: Tool, request: RankRequest, queries: Sequence[JudgedQuery]) -> CachedSearch:
    embedder = library.embedder_of(tool) if request.mode != "bm25" else None
    vectors = embed_queries(embedder, queries) if embedder is not None else None
    return CachedSearch(library, tool.name, queries, vectors, MEASURE)


def _score(search: CachedSearch, request: RankRequest, trials: Sequence[Weights]) -> list[list[float]]:
    """Return the score of each question under each trial."""
    trial_options = [
        replace(request.options, also_weight=weights["also_weight"], passage_weight=weights["passage_weight"])
        for weights in trials
    ]
    configs = [SearchConfig(replace(request, options=options), DEPTH, DEPTH) for options in trial_options]
    return [[values[MEASURE] for values in measured] for measured in search.measure_queries(configs)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
