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

from bunko.evaluation.cached_search import Ask, Desk, vectors_of
from bunko.evaluation.compare import Difference, compare
from bunko.evaluation.known_items import NAMES, TOPICS, Known, Places, halves, known_items
from bunko.evaluation.query_variants import KINDS
from bunko.library.library import Library
from bunko.settings.schema import Search
from bunko.types import Tool

MEASURE = "ndcg@10"
# As many chunks as people look at; hybrid fuses the same 30 for these as for the five they usually ask for.
_DEPTH = 10
_SAMPLE = 400  # chunks that questions are made from
_MOST_QUESTIONS = 450
# With fewer documents in a half, one of them decides.
_LEAST_DOCUMENTS = 15
# A surer gain than that is asked for: questions made from texts are not quite what people ask, and where they found a
# smaller one, judged questions found none or a loss.
_LEAST_GAIN = 0.01
_BATCH = 100  # questions embedded at once
_EQUAL = 1e-9

# How much a repeated word and a long text count (k1 and b) is not tried: words that are known to stand in one document
# are found best where neither does, and judged questions were answered worse so.
_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_TRIED = ("mode", "fusion", "vector_weight", "loanwords")
# What each way of searching depends on.
_MATTERS = {"bm25": ("loanwords",), "semantic": (), "cc": ("vector_weight", "loanwords"), "rrf": ("loanwords",)}
_TRIES = 2 + 2 + 1 + len(_WEIGHTS) + 2

Options = dict[str, Any]
Watch = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """How questions of one kind were answered before and after, among those that checked the choice."""

    name: str
    questions: int
    before: float
    after: float


@dataclass(slots=True)
class Tuning:
    """What was tried on a tool and what came of it."""

    tool: Tool
    now: Options  # how it is searched now
    best: Options = field(default_factory=dict)  # what the first half chose; as now if nothing was better
    tried: int = 0
    made: dict[str, int] = field(default_factory=dict)  # questions by kind, both halves
    questions: tuple[int, int] = (0, 0)  # in the half that chose, in the half that checked
    documents: tuple[int, int] = (0, 0)
    chosen: tuple[float, float] = (0.0, 0.0)  # before and after, in the half that chose
    checked: Difference | None = None
    kinds: list[Kind] = field(default_factory=list)
    families: list[Kind] = field(default_factory=list)  # the same questions, by what they are made from
    usual: Options = field(default_factory=dict)  # how it would be searched without settings of its own
    why_not: str = ""  # why nothing should change; empty: the tool should be searched the best way

    @property
    def better(self) -> bool:
        """Say whether the tool should be searched another way."""
        return not self.why_not

    @property
    def own(self) -> Options:
        """Return the settings that the tool should have of its own: none where the library says the same."""
        return {} if self.usual and settled(self.best) == settled(self.usual) else settled(self.best)


def tune(library: Library, name: str, *, watch: Watch = lambda _what, _done, _total: None) -> Tuning:
    """Try settings on questions that a tool's own words make; nothing is changed here."""
    chunks = library.sample(name, _SAMPLE)
    tool = library.only(name)
    with library.store.reading():
        places = Places(library.store, library.snapshot([tool.id]))
        items = known_items(chunks, places.of, most=_MOST_QUESTIONS)
        first, second = halves(items)
        now = _now(library, tool)
        done = Tuning(tool, now, best=now)
        done.questions = len(first), len(second)
        done.documents = _documents(first), _documents(second)
        made = Counter(one.query.kind for one in (*first, *second))
        done.made = {kind: made[kind] for kind in KINDS if made[kind]}
        if min(done.documents) < _LEAST_DOCUMENTS:
            done.why_not = (
                f"{tool.name} is too small for that: questions could be made about {sum(done.documents)} of its"
                f" documents, and fewer than {_LEAST_DOCUMENTS} for each half would only show what luck can do"
            )
            return done
        usual = _usual(library, tool)
        done.usual = usual[0]
        _choose(done, usual, _Asking(library, tool, first), watch)
        if done.best == done.now:
            done.why_not = "none of the settings answers the first half of the questions better than those it has now"
            return done
        _check(done, _Asking(library, tool, second))
    return done


def _choose(done: Tuning, usual: Sequence[Options], asking: _Asking, watch: Watch) -> None:
    scores: dict[str, tuple[float, Options]] = {}

    def tried(options: Options) -> float:
        own = settled(options)
        if repr(own) not in scores:
            scores[repr(own)] = _mean(_by_document(asking.items, asking.values(own))), own
            done.tried = len(scores)
            watch("Trying settings", min(done.tried, _TRIES), _TRIES)
        return scores[repr(own)][0]

    before = tried(done.now)
    others = itertools.chain(usual, _candidates(done.now, asking.has_vectors, tried))
    highest = tried(_best([done.now], tried, others))
    if highest > before + _EQUAL:
        # Of what does nearly as well, what everybody has, else what changes least: the rest would come for nothing.
        near = [own for score, own in scores.values() if score > max(before, highest - _LEAST_GAIN) + _EQUAL]
        known = [own for own in map(settled, usual) if own in near]
        least = min(near, key=lambda own: sum(done.now[name] != value for name, value in own.items()))
        done.best = known[0] if known else least
    done.chosen = before, tried(done.best)


def _candidates(now: Options, has_vectors: bool, tried: Callable[[Options], float]) -> Iterator[Options]:
    """Yield settings to try: words by themselves first, then what vectors add to the better of those."""
    by_words = now | {"mode": "bm25"}
    other = by_words | {"loanwords": not now["loanwords"]}
    yield by_words
    yield other
    if has_vectors:
        best = _best([by_words], tried, [other])
        for weight in dict.fromkeys((now["vector_weight"], *_WEIGHTS)):
            yield best | {"mode": "hybrid", "fusion": "cc", "vector_weight": weight}
        yield best | {"mode": "hybrid", "fusion": "rrf"}
        yield best | {"mode": "semantic"}


def _best(
    first: Sequence[Options], tried: Callable[[Options], float], others: Sequence[Options] | Iterator[Options]
) -> Options:
    """Return what scores highest; of equals what came first, so that nothing changes without a reason."""
    best = first[0]
    for one in others:
        if tried(one) > tried(best) + _EQUAL:
            best = one
    return best


def settled(options: Mapping[str, Any]) -> Options:
    """Return the settings that matter for the way of searching that they name."""
    mode = options["mode"]
    names = _MATTERS[mode if mode != "hybrid" else options["fusion"]]
    found = {"mode": mode} | ({"fusion": options["fusion"]} if mode == "hybrid" else {})
    # A weight that is not set is found anew for each query, as the settings say.
    return found | {name: options[name] for name in names if options.get(name) is not None}


def _now(library: Library, tool: Tool) -> Options:
    """Return how a tool is searched now."""
    request = library.request("", tools=[tool])
    found = {name: getattr(request, name) for name in _TRIED}
    return found if library.embedder_of(tool) is not None else found | {"mode": "bm25"}


def _usual(library: Library, tool: Tool) -> list[Options]:
    """Return how a tool without settings of its own is searched: as the library's settings say, and as ours do."""
    request = library.request("")
    said = {name: getattr(request, name) for name in _TRIED}
    if library.embedder_of(tool) is None:
        return [said | {"mode": "bm25"}]
    # A tool cannot undo a weight that the settings name: without one of its own it has theirs.
    ours = {name: getattr(Search(), name) for name in _TRIED} | {"vector_weight": said["vector_weight"]}
    return [said, ours]


def _check(done: Tuning, asking: _Asking) -> None:
    items, before, after = asking.items, asking.values(done.now), asking.values(done.best)
    # Questions about one document share their luck: it is documents that are drawn anew.
    first, second = _by_document(items, before), _by_document(items, after)
    compared = compare({MEASURE: first}, {MEASURE: second}, names=("now", "best"))
    done.checked = compared.differences[0]
    done.kinds = [_kind(kind, [one for one in items if one.query.kind == kind], before, after) for kind in KINDS]
    done.kinds = [one for one in done.kinds if one.questions]
    for family in (NAMES, TOPICS):
        if own := [one for one in items if one.family == family]:
            done.families.append(_kind(family, own, before, after))
    worse = [one.name for one in done.families if one.after < one.before - _EQUAL]
    if worse:
        done.why_not = f"questions made from {' and '.join(worse)} are answered worse in the other half"
    if done.checked.low <= _LEAST_GAIN:
        done.why_not = (
            "the other half of the questions does not confirm it: the 95 % interval of the gain there,"
            f" {done.checked.low:+.4f} to {done.checked.high:+.4f}, does not lie above {_LEAST_GAIN}"
        )


def _kind(name: str, items: Sequence[Known], before: Mapping[str, float], after: Mapping[str, float]) -> Kind:
    ids = [one.query.id for one in items]
    return Kind(name, len(ids), *(sum(values[one] for one in ids) / (len(ids) or 1) for values in (before, after)))


def _by_document(items: Sequence[Known], values: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for one in items:
        found.setdefault(one.origin, []).append(values[one.query.id])
    return {uri: sum(of) / len(of) for uri, of in found.items()}


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _documents(items: Sequence[Known]) -> int:
    return len({one.origin for one in items})


class _Asking:
    """Some questions, asked over and over: each is embedded once, and found by each arm once."""

    def __init__(self, library: Library, tool: Tool, items: Sequence[Known]) -> None:
        self.items, queries = items, [one.query for one in items]
        # What is tried replaces all the tool says of itself about it; a weight left open is the one of the settings.
        usual = library.request("")
        own = {name: getattr(usual, name) for name in _TRIED}
        self._request = replace(library.request("", tools=[tool]), **own)
        embedder = library.embedder_of(tool)
        self.has_vectors = embedder is not None
        vectors = vectors_of(embedder, queries, together=_BATCH) if embedder is not None else None
        self._desk = Desk(library, tool.name, queries, vectors, MEASURE)

    def values(self, options: Options) -> dict[str, float]:
        """Return how well each question is answered, by its id."""
        ask = Ask(replace(self._request, **options), _DEPTH, _DEPTH)
        (found,) = self._desk.measured([ask])
        return {one.query.id: values[MEASURE] for one, values in zip(self.items, found, strict=True)}
