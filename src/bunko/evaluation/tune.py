"""Tune the search settings of a tool on queries generated from its own text.

One half of the queries chooses among the settings. The other half, which shares no document with the first, checks
whether the choice generalises.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.compare import Difference, compare
from bunko.evaluation.known_items import NAMES, TOPICS, KnownItem, MentionFinder, known_items, split_by_document
from bunko.evaluation.query_variants import VARIANT_KINDS
from bunko.evaluation.wording_weights import WEIGHT_NAMES, Weights, WordingTuning, tune_wordings
from bunko.library.library import Library
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import RankRequest, tool_search_settings
from bunko.settings.schema import SearchSection
from bunko.types import Tool
from bunko.types.ranking import OPTIONS
from bunko.types.records import ChunkRow

MEASURE = "ndcg@10"
# As many chunks as people look at; hybrid fuses the same 30 candidates for 10 results as for the usual five.
_DEPTH = 10
_SAMPLE_CHUNKS = 400  # chunks that queries are generated from
_MAX_QUERIES = 450
# With fewer documents in a half, a single document decides.
_MIN_DOCUMENTS = 15
# The lower end of the interval must exceed this gain: generated queries are not quite what people type, and where they
# showed a smaller gain, judged queries showed none or a loss.
_MIN_GAIN = 0.01
_EMBED_BATCH = 100  # queries embedded at once
_TOLERANCE = 1e-9

# k1 and b (term repetition and text length) are not tuned: generated queries, whose words occur in one document, score
# best with neither, and judged queries were answered worse that way.
_VECTOR_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_TUNED_OPTIONS = ("fusion", "vector_weight", "loanwords")
_TRIAL_COUNT = 2 + 2 + 1 + len(_VECTOR_WEIGHTS) + 2

SearchOptions = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KindScore:
    """The scores of one kind of query before and after, in the half that checks the choice."""

    name: str
    query_count: int
    before: float
    after: float


@dataclass(slots=True)
class Tuning:
    """The result of tuning a tool."""

    tool: Tool
    current: SearchOptions  # the options in force
    best: SearchOptions = field(default_factory=dict)  # chosen by the first half; the current ones if none was better
    trial_count: int = 0
    queries_by_kind: dict[str, int] = field(default_factory=dict)  # number of queries by kind, both halves
    query_counts: tuple[int, int] = (0, 0)  # in the half that chooses, in the half that checks
    document_counts: tuple[int, int] = (0, 0)
    choice_scores: tuple[float, float] = (0.0, 0.0)  # before and after, in the half that chooses
    holdout_difference: Difference | None = None
    kind_scores: list[KindScore] = field(default_factory=list)
    family_scores: list[KindScore] = field(default_factory=list)  # the same queries, by what they are generated from
    defaults: SearchOptions = field(default_factory=dict)  # the options of a tool without its own search settings
    reason: str = ""  # why these options should not change; empty: the tool should use the best ones
    wordings: WordingTuning | None = None  # None: no judged question of the tool has other wordings
    default_weights: Weights = field(default_factory=dict)  # of wordings, in the settings

    @property
    def has_better_weights(self) -> bool:
        """Return whether the best weights of wordings should be adopted."""
        return self.wordings is not None and not self.wordings.reason

    @property
    def is_better(self) -> bool:
        """Return whether the best options, or the best weights of wordings, should be adopted."""
        return not self.reason or self.has_better_weights

    @property
    def tool_options(self) -> SearchOptions:
        """Return the options to store on the tool, without those that equal the library's settings."""
        own = tool_search_settings(self.tool.options.search)
        weights = {name: own.pop(name) for name in WEIGHT_NAMES if name in own}
        if self.wordings is not None and self.has_better_weights:
            weights = {name: value for name, value in self.wordings.best.items() if value != self.default_weights[name]}
        if not self.reason:
            own = relevant_options(self.best)
            if self.defaults and own == relevant_options(self.defaults):
                own = {}
        return own | weights


def tune_tool(library: Library, name: str, *, observer: Observer = NO_OBSERVER) -> Tuning:
    """Try search settings on queries generated from a tool's text, and the weights of wordings on judged questions.

    The tool itself is not changed.
    """
    chunks = library.maintenance.sample_chunks(name, _SAMPLE_CHUNKS)
    tool = library.resolve_tool(name)
    with library.storage.read_transaction():
        tuning = _tune_options(library, tool, chunks, observer)
        ranking = library.build_request("").options
        tuning.default_weights = {name: getattr(ranking, name) for name in WEIGHT_NAMES}
        request = _with_options(_base_request(library, tool), tuning.current if tuning.reason else tuning.best)
        tuning.wordings = tune_wordings(library, tool, request, observer=observer)
    return tuning


def _tune_options(library: Library, tool: Tool, chunks: Sequence[ChunkRow], observer: Observer) -> Tuning:
    mention_finder = MentionFinder(library.documents.stored, library.index_view([tool.id]))
    items = known_items(chunks, mention_finder.find_mentions, limit=_MAX_QUERIES)
    first, second = split_by_document(items)
    current = _current_options(library, tool)
    tuning = Tuning(tool, current, best=current)
    tuning.query_counts = len(first), len(second)
    tuning.document_counts = _count_documents(first), _count_documents(second)
    kind_counts = Counter(item.query.kind for item in (*first, *second))
    tuning.queries_by_kind = {kind: kind_counts[kind] for kind in VARIANT_KINDS if kind_counts[kind]}
    if min(tuning.document_counts) < _MIN_DOCUMENTS:
        tuning.reason = (
            f"{tool.name} is too small to tune: questions could be generated about {sum(tuning.document_counts)}"
            f" of its documents, and each half needs at least {_MIN_DOCUMENTS}"
        )
        return tuning
    defaults = _default_options(library, tool)
    tuning.defaults = defaults[0]
    _choose_options(tuning, defaults, _QueryScorer(library, tool, first), observer)
    if tuning.best == tuning.current:
        tuning.reason = "no other settings answer the first half of the questions better than the current ones"
        return tuning
    _confirm_choice(tuning, _QueryScorer(library, tool, second))
    return tuning


def _choose_options(
    tuning: Tuning, defaults: Sequence[SearchOptions], scorer: _QueryScorer, observer: Observer
) -> None:
    scores: dict[str, tuple[float, SearchOptions]] = {}

    def score_options(options: SearchOptions) -> float:
        relevant = relevant_options(options)
        if repr(relevant) not in scores:
            scores[repr(relevant)] = _mean(_means_by_document(scorer.items, scorer.score_queries(relevant))), relevant
            tuning.trial_count = len(scores)
            observer.on_step("Trying settings", min(tuning.trial_count, _TRIAL_COUNT), _TRIAL_COUNT)
        return scores[repr(relevant)][0]

    def count_changes(options: SearchOptions) -> int:
        return sum(tuning.current[name] != value for name, value in options.items())

    before = score_options(tuning.current)
    candidates = itertools.chain(defaults, _candidate_options(tuning.current, scorer.has_vectors, score_options))
    highest = score_options(_best_options(tuning.current, score_options, candidates))
    if highest > before + _TOLERANCE:
        # Among options that score nearly as well, prefer the defaults, else the smallest change: any further change
        # would bring nothing.
        threshold = max(before, highest - _MIN_GAIN) + _TOLERANCE
        good_options = [options for score, options in scores.values() if score > threshold]
        good_defaults = [options for options in map(relevant_options, defaults) if options in good_options]
        tuning.best = good_defaults[0] if good_defaults else min(good_options, key=count_changes)
    tuning.choice_scores = before, score_options(tuning.best)


def _candidate_options(
    current: SearchOptions, has_vectors: bool, score_options: Callable[[SearchOptions], float]
) -> Iterator[SearchOptions]:
    """Yield options to try: BM25 alone first, then hybrid and semantic search on top of the better BM25 options."""
    lexical = current | {"mode": "bm25"}
    lexical_toggled = lexical | {"loanwords": not current["loanwords"]}
    yield lexical
    yield lexical_toggled
    if has_vectors:
        best = _best_options(lexical, score_options, [lexical_toggled])
        for weight in dict.fromkeys((current["vector_weight"], *_VECTOR_WEIGHTS)):
            yield best | {"mode": "hybrid", "fusion": "cc", "vector_weight": weight}
        yield best | {"mode": "hybrid", "fusion": "rrf"}
        yield best | {"mode": "semantic"}


def _best_options(
    initial: SearchOptions,
    score_options: Callable[[SearchOptions], float],
    candidates: Iterable[SearchOptions],
) -> SearchOptions:
    """Return the options that score highest; ties go to the first, so that nothing changes without a reason."""
    best = initial
    for options in candidates:
        if score_options(options) > score_options(best) + _TOLERANCE:
            best = options
    return best


def relevant_options(options: Mapping[str, Any]) -> SearchOptions:
    """Return the options that have an effect in the mode that they name."""
    mode = options["mode"]
    search = mode if mode != "hybrid" else options["fusion"]
    # A weight that is not set is computed for each query.
    relevant = {
        name: options[name]
        for name in _TUNED_OPTIONS
        if search in OPTIONS[name].searches and options.get(name) is not None
    }
    return {"mode": mode} | relevant


def _tuned_options(request: RankRequest) -> SearchOptions:
    return {"mode": request.mode} | {name: getattr(request.options, name) for name in _TUNED_OPTIONS}


def _with_options(request: RankRequest, options: SearchOptions) -> RankRequest:
    ranking = replace(request.options, **{name: value for name, value in options.items() if name != "mode"})
    return replace(request, mode=options["mode"], options=ranking)


def _base_request(library: Library, tool: Tool) -> RankRequest:
    """Return what tried options are added to: they replace the tool's own; what they lack is that of the settings."""
    return _with_options(library.build_request("", tools=[tool]), _tuned_options(library.build_request("")))


def _current_options(library: Library, tool: Tool) -> SearchOptions:
    """Return the options that searches of a tool use now."""
    options = _tuned_options(library.build_request("", tools=[tool]))
    return options if library.embedder_of(tool) is not None else options | {"mode": "bm25"}


def _default_options(library: Library, tool: Tool) -> list[SearchOptions]:
    """Return the options of a tool without its own search settings: the library's settings, then bunko's defaults."""
    from_settings = _tuned_options(library.build_request(""))
    if library.embedder_of(tool) is None:
        return [from_settings | {"mode": "bm25"}]
    # A tool cannot unset a weight of the settings: without its own weight it uses theirs.
    built_in = _tuned_options(RankRequest("", SearchSection().mode)) | {"vector_weight": from_settings["vector_weight"]}
    return [from_settings, built_in]


def _confirm_choice(tuning: Tuning, scorer: _QueryScorer) -> None:
    items, before, after = scorer.items, scorer.score_queries(tuning.current), scorer.score_queries(tuning.best)
    # Queries about one document are not independent, so documents are resampled instead of queries.
    first, second = _means_by_document(items, before), _means_by_document(items, after)
    comparison = compare({MEASURE: first}, {MEASURE: second}, names=("now", "best"))
    tuning.holdout_difference = comparison.differences[0]
    tuning.kind_scores = [
        _kind_score(kind, [item for item in items if item.query.kind == kind], before, after) for kind in VARIANT_KINDS
    ]
    tuning.kind_scores = [score for score in tuning.kind_scores if score.query_count]
    for family in (NAMES, TOPICS):
        if family_items := [item for item in items if item.family == family]:
            tuning.family_scores.append(_kind_score(family, family_items, before, after))
    worse = [score.name for score in tuning.family_scores if score.after < score.before - _TOLERANCE]
    if worse:
        tuning.reason = f"questions generated from {' and '.join(worse)} are answered worse in the other half"
    if tuning.holdout_difference.low <= _MIN_GAIN:
        low, high = tuning.holdout_difference.low, tuning.holdout_difference.high
        tuning.reason = (
            "the other half of the questions does not confirm it: the 95 % interval of the gain there,"
            f" {low:+.4f} to {high:+.4f}, does not lie above {_MIN_GAIN}"
        )


def _kind_score(
    name: str, items: Sequence[KnownItem], before: Mapping[str, float], after: Mapping[str, float]
) -> KindScore:
    ids = [item.query.id for item in items]
    return KindScore(
        name, len(ids), *(sum(values[query_id] for query_id in ids) / (len(ids) or 1) for values in (before, after))
    )


def _means_by_document(items: Sequence[KnownItem], values: Mapping[str, float]) -> dict[str, float]:
    values_by_uri: dict[str, list[float]] = {}
    for item in items:
        values_by_uri.setdefault(item.origin_uri, []).append(values[item.query.id])
    return {uri: sum(scores) / len(scores) for uri, scores in values_by_uri.items()}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _count_documents(items: Sequence[KnownItem]) -> int:
    return len({item.origin_uri for item in items})


class _QueryScorer:
    """Scores the same queries under many options; each query is embedded and ranked once."""

    def __init__(self, library: Library, tool: Tool, items: Sequence[KnownItem]) -> None:
        self.items, queries = items, [item.query for item in items]
        self._request = _base_request(library, tool)
        embedder = library.embedder_of(tool)
        self.has_vectors = embedder is not None
        vectors = embed_queries(embedder, queries, batch_size=_EMBED_BATCH) if embedder is not None else None
        self._search = CachedSearch(library, tool.name, queries, vectors, MEASURE)

    def score_queries(self, options: SearchOptions) -> dict[str, float]:
        """Return the score of each query under these options, by query id."""
        config = SearchConfig(_with_options(self._request, options), _DEPTH, _DEPTH)
        (measures_by_query,) = self._search.measure_queries([config])
        return {item.query.id: measures[MEASURE] for item, measures in zip(self.items, measures_by_query, strict=True)}
