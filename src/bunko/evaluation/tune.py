"""A tool in, the settings of a search that find its documents best out, and whether that can be more than luck.

Questions are made from the tool's own words. One half of them chooses among the settings, the other half, which shares
no document with the first, says whether the choice holds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.compare import Difference, compare
from bunko.evaluation.known_items import NAMES, TOPICS, KnownItem, MentionFinder, known_items, split_by_document
from bunko.evaluation.query_variants import VARIANT_KINDS
from bunko.library.library import Library
from bunko.settings.schema import SearchSection
from bunko.types import Tool

MEASURE = "ndcg@10"
# As many chunks as people look at; hybrid fuses the same 30 for these as for the five they usually ask for.
_DEPTH = 10
_SAMPLE_CHUNKS = 400  # chunks that questions are made from
_MAX_QUERIES = 450
# With fewer documents in a half, one of them decides.
_MIN_DOCUMENTS = 15
# A surer gain than that is asked for: questions made from texts are not quite what people ask, and where they found a
# smaller one, judged questions found none or a loss.
_MIN_GAIN = 0.01
_EMBED_BATCH = 100  # questions embedded at once
_TOLERANCE = 1e-9

# How much a repeated word and a long text count (k1 and b) is not tried: words that are known to stand in one document
# are found best where neither does, and judged questions were answered worse so.
_VECTOR_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_TUNED_OPTIONS = ("mode", "fusion", "vector_weight", "loanwords")
# What each way of searching depends on.
_RELEVANT_OPTIONS = {
    "bm25": ("loanwords",),
    "semantic": (),
    "cc": ("vector_weight", "loanwords"),
    "rrf": ("loanwords",),
}
_TRIAL_COUNT = 2 + 2 + 1 + len(_VECTOR_WEIGHTS) + 2

SearchOptions = dict[str, Any]
ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class KindScore:
    """How questions of one kind were answered before and after, among those that checked the choice."""

    name: str
    query_count: int
    before: float
    after: float


@dataclass(slots=True)
class Tuning:
    """What was tried on a tool and what came of it."""

    tool: Tool
    current: SearchOptions  # how it is searched now
    best: SearchOptions = field(default_factory=dict)  # what the first half chose; as now if nothing was better
    trial_count: int = 0
    queries_by_kind: dict[str, int] = field(default_factory=dict)  # questions by kind, both halves
    query_counts: tuple[int, int] = (0, 0)  # in the half that chose, in the half that checked
    document_counts: tuple[int, int] = (0, 0)
    choice_scores: tuple[float, float] = (0.0, 0.0)  # before and after, in the half that chose
    holdout_difference: Difference | None = None
    kind_scores: list[KindScore] = field(default_factory=list)
    family_scores: list[KindScore] = field(default_factory=list)  # the same questions, by what they are made from
    defaults: SearchOptions = field(default_factory=dict)  # how it would be searched without settings of its own
    reason: str = ""  # why nothing should change; empty: the tool should be searched the best way

    @property
    def is_better(self) -> bool:
        """Say whether the tool should be searched another way."""
        return not self.reason

    @property
    def tool_options(self) -> SearchOptions:
        """Return the settings that the tool should have of its own: none where the library says the same."""
        return (
            {}
            if self.defaults and relevant_options(self.best) == relevant_options(self.defaults)
            else relevant_options(self.best)
        )


def tune_tool(
    library: Library, name: str, *, report_progress: ProgressCallback = lambda _what, _done, _total: None
) -> Tuning:
    """Try settings on questions that a tool's own words make; nothing is changed here."""
    chunks = library.sample_chunks(name, _SAMPLE_CHUNKS)
    tool = library.resolve_tool(name)
    with library.store.read_transaction():
        places = MentionFinder(library.store, library.snapshot([tool.id]))
        items = known_items(chunks, places.find_mentions, limit=_MAX_QUERIES)
        first, second = split_by_document(items)
        now = _current_options(library, tool)
        done = Tuning(tool, now, best=now)
        done.query_counts = len(first), len(second)
        done.document_counts = _count_documents(first), _count_documents(second)
        made = Counter(one.query.kind for one in (*first, *second))
        done.queries_by_kind = {kind: made[kind] for kind in VARIANT_KINDS if made[kind]}
        if min(done.document_counts) < _MIN_DOCUMENTS:
            done.reason = (
                f"{tool.name} is too small for that: questions could be made about {sum(done.document_counts)} of its"
                f" documents, and fewer than {_MIN_DOCUMENTS} for each half would only show what luck can do"
            )
            return done
        usual = _default_options(library, tool)
        done.defaults = usual[0]
        _choose_options(done, usual, _QueryScorer(library, tool, first), report_progress)
        if done.best == done.current:
            done.reason = "none of the settings answers the first half of the questions better than those it has now"
            return done
        _confirm_choice(done, _QueryScorer(library, tool, second))
    return done


def _choose_options(
    tuning: Tuning, defaults: Sequence[SearchOptions], scorer: _QueryScorer, report_progress: ProgressCallback
) -> None:
    scores: dict[str, tuple[float, SearchOptions]] = {}

    def tried(options: SearchOptions) -> float:
        own = relevant_options(options)
        if repr(own) not in scores:
            scores[repr(own)] = _mean(_means_by_document(scorer.items, scorer.score_queries(own))), own
            tuning.trial_count = len(scores)
            report_progress("Trying settings", min(tuning.trial_count, _TRIAL_COUNT), _TRIAL_COUNT)
        return scores[repr(own)][0]

    before = tried(tuning.current)
    others = itertools.chain(defaults, _candidate_options(tuning.current, scorer.has_vectors, tried))
    highest = tried(_best_options([tuning.current], tried, others))
    if highest > before + _TOLERANCE:
        # Of what does nearly as well, what everybody has, else what changes least: the rest would come for nothing.
        near = [own for score, own in scores.values() if score > max(before, highest - _MIN_GAIN) + _TOLERANCE]
        known = [own for own in map(relevant_options, defaults) if own in near]
        least = min(near, key=lambda own: sum(tuning.current[name] != value for name, value in own.items()))
        tuning.best = known[0] if known else least
    tuning.choice_scores = before, tried(tuning.best)


def _candidate_options(
    current: SearchOptions, has_vectors: bool, score_options: Callable[[SearchOptions], float]
) -> Iterator[SearchOptions]:
    """Yield settings to try: words by themselves first, then what vectors add to the better of those."""
    by_words = current | {"mode": "bm25"}
    other = by_words | {"loanwords": not current["loanwords"]}
    yield by_words
    yield other
    if has_vectors:
        best = _best_options([by_words], score_options, [other])
        for weight in dict.fromkeys((current["vector_weight"], *_VECTOR_WEIGHTS)):
            yield best | {"mode": "hybrid", "fusion": "cc", "vector_weight": weight}
        yield best | {"mode": "hybrid", "fusion": "rrf"}
        yield best | {"mode": "semantic"}


def _best_options(
    initial: Sequence[SearchOptions],
    score_options: Callable[[SearchOptions], float],
    candidates: Sequence[SearchOptions] | Iterator[SearchOptions],
) -> SearchOptions:
    """Return what scores highest; of equals what came first, so that nothing changes without a reason."""
    best = initial[0]
    for one in candidates:
        if score_options(one) > score_options(best) + _TOLERANCE:
            best = one
    return best


def relevant_options(options: Mapping[str, Any]) -> SearchOptions:
    """Return the settings that matter for the way of searching that they name."""
    mode = options["mode"]
    names = _RELEVANT_OPTIONS[mode if mode != "hybrid" else options["fusion"]]
    found = {"mode": mode} | ({"fusion": options["fusion"]} if mode == "hybrid" else {})
    # A weight that is not set is found anew for each query, as the settings say.
    return found | {name: options[name] for name in names if options.get(name) is not None}


def _current_options(library: Library, tool: Tool) -> SearchOptions:
    """Return how a tool is searched now."""
    request = library.build_request("", tools=[tool])
    found = {name: getattr(request, name) for name in _TUNED_OPTIONS}
    return found if library.embedder_of(tool) is not None else found | {"mode": "bm25"}


def _default_options(library: Library, tool: Tool) -> list[SearchOptions]:
    """Return how a tool without settings of its own is searched: as the library's settings say, and as ours do."""
    request = library.build_request("")
    said = {name: getattr(request, name) for name in _TUNED_OPTIONS}
    if library.embedder_of(tool) is None:
        return [said | {"mode": "bm25"}]
    # A tool cannot undo a weight that the settings name: without one of its own it has theirs.
    ours = {name: getattr(SearchSection(), name) for name in _TUNED_OPTIONS} | {"vector_weight": said["vector_weight"]}
    return [said, ours]


def _confirm_choice(tuning: Tuning, scorer: _QueryScorer) -> None:
    items, before, after = scorer.items, scorer.score_queries(tuning.current), scorer.score_queries(tuning.best)
    # Questions about one document share their luck: it is documents that are drawn anew.
    first, second = _means_by_document(items, before), _means_by_document(items, after)
    compared = compare({MEASURE: first}, {MEASURE: second}, names=("now", "best"))
    tuning.holdout_difference = compared.differences[0]
    tuning.kind_scores = [
        _kind_score(kind, [one for one in items if one.query.kind == kind], before, after) for kind in VARIANT_KINDS
    ]
    tuning.kind_scores = [one for one in tuning.kind_scores if one.query_count]
    for family in (NAMES, TOPICS):
        if own := [one for one in items if one.family == family]:
            tuning.family_scores.append(_kind_score(family, own, before, after))
    worse = [one.name for one in tuning.family_scores if one.after < one.before - _TOLERANCE]
    if worse:
        tuning.reason = f"questions made from {' and '.join(worse)} are answered worse in the other half"
    if tuning.holdout_difference.low <= _MIN_GAIN:
        tuning.reason = (
            "the other half of the questions does not confirm it: the 95 % interval of the gain there,"
            f" {tuning.holdout_difference.low:+.4f} to {tuning.holdout_difference.high:+.4f}, does not lie above {_MIN_GAIN}"  # noqa: E501
        )


def _kind_score(
    name: str, items: Sequence[KnownItem], before: Mapping[str, float], after: Mapping[str, float]
) -> KindScore:
    ids = [one.query.id for one in items]
    return KindScore(name, len(ids), *(sum(values[one] for one in ids) / (len(ids) or 1) for values in (before, after)))


def _means_by_document(items: Sequence[KnownItem], values: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for one in items:
        found.setdefault(one.origin_uri, []).append(values[one.query.id])
    return {uri: sum(of) / len(of) for uri, of in found.items()}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _count_documents(items: Sequence[KnownItem]) -> int:
    return len({one.origin_uri for one in items})


class _QueryScorer:
    """Some questions, asked over and over: each is embedded once, and found by each arm once."""

    def __init__(self, library: Library, tool: Tool, items: Sequence[KnownItem]) -> None:
        self.items, queries = items, [one.query for one in items]
        # What is tried replaces all the tool says of itself about it; a weight left open is the one of the settings.
        usual = library.build_request("")
        own = {name: getattr(usual, name) for name in _TUNED_OPTIONS}
        self._request = replace(library.build_request("", tools=[tool]), **own)
        embedder = library.embedder_of(tool)
        self.has_vectors = embedder is not None
        vectors = embed_queries(embedder, queries, batch_size=_EMBED_BATCH) if embedder is not None else None
        self._search = CachedSearch(library, tool.name, queries, vectors, MEASURE)

    def score_queries(self, options: SearchOptions) -> dict[str, float]:
        """Return how well each question is answered, by its id."""
        ask = SearchConfig(replace(self._request, **options), _DEPTH, _DEPTH)
        (found,) = self._search.measure_queries([ask])
        return {one.query.id: values[MEASURE] for one, values in zip(self.items, found, strict=True)}
