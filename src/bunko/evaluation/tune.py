"""A tool in, the settings of a search that find its documents best out, and whether that can be more than luck.

Questions are made from the tool's own words. One half of them chooses among the settings, the other half, which shares
no document with the first, says whether the choice holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from bunko.embedders import checked
from bunko.evaluation.compare import Difference, compare
from bunko.evaluation.known import MENTIONED, NAMED, NAMES, TOPICS, Known, halves, known_items
from bunko.evaluation.measures import ndcg
from bunko.evaluation.variants import KINDS
from bunko.index import bm25
from bunko.index.bm25 import Wanted
from bunko.index.snapshot import Ranking
from bunko.library import Library
from bunko.protocols import Embedder, Found
from bunko.search import Request, fetched, ranked, semantic
from bunko.text import grams, words
from bunko.text.normalise import normalise
from bunko.types import Tool

if TYPE_CHECKING:
    from bunko.types import Vectors

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
# Chunks that are looked at for where a text stands; words of more stand nearly everywhere.
_LOOKED = 60
_ALL = 0.999
_BATCH = 100
_EQUAL = 1e-9

# Words that are known to stand in one document are found best where repetition hardly counts. What people ask is not:
# on judged questions a lower k1 that such questions chose was clearly worse, so that it is not offered.
_K1 = (1.2, 1.6, 2.0)
_B = (0.3, 0.5, 0.75, 0.9)
_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_TRIES = len(_K1) * len(_B) + 1 + len(_WEIGHTS) + 2
_LEXICAL = ("k1", "b", "loanwords")
# What each way of searching depends on.
_MATTERS = {"bm25": _LEXICAL, "semantic": (), "cc": (*_LEXICAL, "vector_weight"), "rrf": (*_LEXICAL, "rrf_k")}

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
    why_not: str = ""  # why nothing should change; empty: the tool should be searched the best way

    @property
    def better(self) -> bool:
        """Say whether the tool should be searched another way."""
        return not self.why_not


def tune(library: Library, name: str, *, watch: Watch = lambda _what, _done, _total: None) -> Tuning:
    """Try settings on questions that a tool's own words make; nothing is changed here."""
    chunks = library.sample(name, _SAMPLE)
    tool = next(one for one in library.tools() if one.name == name)
    with library.store.reading():
        asking = _Asking(library, tool)
        items = known_items(chunks, asking.standing, most=_MOST_QUESTIONS) if asking.size else []
        first, second = halves(items)
        done = Tuning(tool, asking.now, best=asking.now)
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
        asking.prepare([one.query.text for one in (*first, *second)])
        _choose(done, asking, first, watch)
        if done.best == done.now:
            done.why_not = "none of the settings answers the first half of the questions better than those it has now"
            return done
        _check(done, asking, second)
    return done


def _choose(done: Tuning, asking: _Asking, items: Sequence[Known], watch: Watch) -> None:
    scores: dict[str, tuple[float, Options]] = {}

    def tried(options: Options) -> float:
        own = settled(options)
        if repr(own) not in scores:
            scores[repr(own)] = _mean(_by_document(items, asking.values(items, own))), own
            done.tried = len(scores)
            watch("Trying settings", min(done.tried, _TRIES), _TRIES)
        return scores[repr(own)][0]

    before = tried(done.now)
    highest = tried(_best([done.now], tried, _candidates(done.now, asking.has_vectors, tried)))
    if highest > before + _EQUAL:
        # Of what does nearly as well, what changes least: the rest would come along for nothing.
        near = [own for score, own in scores.values() if score > max(before, highest - _LEAST_GAIN) + _EQUAL]
        done.best = min(near, key=lambda own: sum(done.now[name] != value for name, value in own.items()))
    done.chosen = before, tried(done.best)


def _candidates(now: Options, has_vectors: bool, tried: Callable[[Options], float]) -> Iterator[Options]:
    """Yield settings to try: words by themselves first, then what vectors add to the best of those."""
    by_words = [now | {"mode": "bm25", "k1": k1, "b": b} for k1, b in product(_K1, _B)]
    yield from by_words
    best = _best([now | {"mode": "bm25"}], tried, by_words)
    yield best | {"loanwords": not best["loanwords"]}
    best = _best([best], tried, [best | {"loanwords": not best["loanwords"]}])
    if has_vectors:
        for weight in _WEIGHTS:
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
    return found | {name: options[name] for name in names}


def _check(done: Tuning, asking: _Asking, items: Sequence[Known]) -> None:
    before, after = asking.values(items, done.now), asking.values(items, done.best)
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
    """One state of a tool, asked over and over: texts are not fetched, and each question is embedded once."""

    def __init__(self, library: Library, tool: Tool) -> None:
        self._library, self._tool = library, tool
        self._snapshot = library.snapshot([tool.id])
        self._masks = self._snapshot.masks(None)
        self._uris: dict[int, str] = {}
        self._near: dict[tuple[str, int], Ranking] = {}  # the same under all settings that are tried
        embedder = library.embedder_of(tool)
        self._embedder = _Remembering(embedder) if embedder is not None else None
        self.size, self.has_vectors = self._snapshot.size, embedder is not None
        request = self._request({})
        mode = request.mode if self.has_vectors else "bm25"
        names = ("fusion", "vector_weight", "rrf_k", *_LEXICAL)
        self.now: Options = {"mode": mode} | {name: getattr(request, name) for name in names}

    def _request(self, options: Options) -> Request:
        return self._library.request("", tools=[self._tool], top_k=_DEPTH, **options)

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed questions, many at once."""
        if self._embedder is not None:
            self._embedder.learn(texts)

    def values(self, items: Sequence[Known], options: Options) -> dict[str, float]:
        """Return how well each question is answered, by its id."""
        request = self._request(options)
        found = {}
        for one in items:
            near = None if request.mode == "bm25" else self._nearest(one.query.text, request)
            rows = ranked(self._snapshot, one.query.text, None, request, self._masks, known=near)
            documents = self._documents(self._ids([row.row for row in rows]))
            found[one.query.id] = ndcg(documents, one.query.grades, _DEPTH)
        return found

    def _nearest(self, text: str, request: Request) -> Ranking:
        key = text, fetched(request)
        if key not in self._near:
            threshold = request.similarity_threshold
            self._near[key] = semantic(self._snapshot, text, self._embedder, key[1], threshold, self._masks)
        return self._near[key]

    def _documents(self, ids: Sequence[int]) -> list[str]:
        new = [one for one in ids if one not in self._uris]
        if new:
            self._uris |= {chunk_id: stored.uri for chunk_id, stored in self._library.store.chunks(new).items()}
        return list(dict.fromkeys(self._uris[one] for one in ids))

    def standing(self, text: str) -> dict[str, float] | None:
        """Return the documents that a text stands in, as a name or in passing; None where there are too many.

        A chunk with all its words says as much as one with the text itself: who is to say which of them was meant?
        """
        pairs = [Wanted(gram.key, 1.0, gram=True) for gram in grams.of_query(text)]
        if not pairs:
            return {}
        rows = bm25.overlap(self._snapshot, pairs, _LOOKED, least=_ALL, masks=self._masks).rows
        spread = self._with_every_word(text)
        if _LOOKED in (len(rows), len(spread)):
            return None
        found: dict[str, float] = dict.fromkeys(self._documents(self._ids(spread)), MENTIONED)
        sought = _folded(text)
        for one in self._library.store.chunks(self._ids(rows)).values():
            if grade := _grade(sought, one):
                found[one.uri] = max(grade, found.get(one.uri, 0.0))
        return found

    def _with_every_word(self, text: str) -> list[int]:
        wanted = [Wanted(key, 1.0) for key in dict.fromkeys(words.keys(text))]
        # Where a long text does not count less, what holds every word is among the first.
        rows = bm25.rank(self._snapshot, wanted, _LOOKED, k1=0.0, b=0.0, masks=self._masks).rows
        held = bm25.matches(self._snapshot, wanted, rows)
        return [row for row, has in zip(rows, held, strict=True) if has and all(has)]

    def _ids(self, rows: Sequence[int]) -> list[int]:
        return [self._snapshot.chunk_id(row) for row in rows]


def _grade(sought: str, one: Found) -> float:
    if any(sought in _folded(name) for name in (one.title, *one.chunk.heading_path)):
        return NAMED
    return MENTIONED if sought in _folded(one.chunk.text) else 0.0


def _folded(text: str) -> str:
    return " ".join(normalise(text).casefold().split())


class _Remembering:
    """An embedder that makes the vector of each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self.name, self.size = embedder, embedder.name, embedder.size
        self._known: dict[str, Vectors] = {}

    def learn(self, texts: Sequence[str]) -> None:
        """Embed texts that will be asked for."""
        for at in range(0, len(texts), _BATCH):
            some = texts[at : at + _BATCH]
            self._known.update(zip(some, checked(self._embedder, some, query=True), strict=True))

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row for each text."""
        import numpy as np

        if missing := [text for text in texts if text not in self._known]:
            self.learn(missing)
        return np.stack([self._known[text] for text in texts])
