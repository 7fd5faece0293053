"""Questions over one library in, the measures of each under many settings out, with every search done once.

What words find depends on k1 and b, what vectors find on neither, and the weight between them on both: so each arm is
asked once, and many weights are fused at a time. The numbers are those of a plain run; tests compare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bunko.embedders import checked
from bunko.evaluation import measures
from bunko.evaluation.dataset import Query
from bunko.evaluation.run import may_abstain, measured, widths
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.snapshot import NOTHING, Ranking
from bunko.indexes.embedded.vectors import Near, nearest
from bunko.library import catalog
from bunko.library.library import Library
from bunko.protocols import Embedder
from bunko.search import fusion
from bunko.search.rank import ACROSS, LONGEST_QUERY, Analysis, Request, analyse, fetched, lexical, weighed
from bunko.text.normalise import printable

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

    Floats = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.int64]

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Ask:
    """One way of asking all questions."""

    request: Request  # its query and number of results mean nothing
    n_results: int
    chunks: int | None

    @property
    def lexical(self) -> tuple[object, ...]:
        """Return what the ranking by words depends on: asks that share it are cheap together."""
        if self.request.mode == "semantic":
            return ()
        return self.request.k1, self.request.b, self.request.loanwords, self.request.bridge


def vectors_of(embedder: Embedder, queries: Sequence[Query], *, together: int = 1) -> Vectors:
    """Return the vector of each question; embedded one by one as searches do it, unless more may go together."""
    texts = [_text(query) for query in queries]
    some = (texts[at : at + together] for at in range(0, len(texts), together))
    return np.concatenate([checked(embedder, one, query=True) for one in some])


class Desk:
    """The questions laid out over one library."""

    def __init__(
        self, library: Library, tool: str, queries: Sequence[Query], vectors: Vectors | None, measure: str
    ) -> None:
        self._store, self._queries, self._vectors, self._measure = library.store, queries, vectors, measure
        with self._store.reading():
            named = catalog.named(self._store, tool)
            self._snapshot = library.snapshot([named.id])
        embedder = library.embedder_of(named) if vectors is not None else None
        self._floor = embedder.floor if embedder else -1.0
        parts = [part.segment.order for part in self._snapshot.parts]
        self._order = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        self._masks = self._snapshot.masks(None)
        self._analyses: dict[tuple[int, bool, bool], Analysis] = {}
        self._near: dict[tuple[int, int], Near | None] = {}
        self._like: dict[tuple[object, ...], Ranking] = {}
        self._whole: dict[tuple[int, bool, bool, int], bool] = {}
        self._chunks: dict[int, tuple[str, str]] = {}
        self._known: dict[tuple[object, ...], dict[str, float]] = {}

    def measured(self, asks: Sequence[Ask]) -> list[list[dict[str, float]]]:
        """Return for each way of asking the measures of each question."""
        together: dict[Ask, list[int]] = {}
        for at, ask in enumerate(asks):
            weight = None if ask.request.vector_weight is None else 0.0
            together.setdefault(replace(ask, request=replace(ask.request, vector_weight=weight)), []).append(at)
        found: list[list[dict[str, float]]] = [[{} for _ in self._queries] for _ in asks]
        for number in range(len(self._queries)):
            self._like.clear()
            for shape, members in together.items():
                weights = np.array([asks[at].request.vector_weight or 0.0 for at in members])
                for at, values in zip(members, self._of_question(number, shape, weights), strict=True):
                    found[at][number] = values
        return found

    def _of_question(self, number: int, shape: Ask, weights: Floats) -> list[dict[str, float]]:
        """Return the measures of one question for each weight; more chunks are looked at for those that need them."""
        query, abstaining = self._queries[number], may_abstain(shape.request)
        found: list[dict[str, float] | None] = [None] * len(weights)
        open_ones = list(range(len(weights)))
        all_widths = list(widths(shape.n_results, shape.chunks))
        for width in all_widths:
            left = []
            rankings = self._rankings(number, shape.request, weights[open_ones], width)
            for at, rows in zip(open_ones, rankings, strict=True):
                key = (number, shape.n_results, width, abstaining, rows.tobytes())
                values = self._known.get(key)
                if values is None:
                    names = self._documents(rows, shape.n_results)
                    if len(names) < shape.n_results and len(rows) == width != all_widths[-1]:
                        left.append(at)
                        continue
                    texts = [self._chunk(int(row))[1] for row in rows[: shape.n_results]] if query.keywords else []
                    values = measured(query, names, texts, shape.n_results, abstaining=abstaining)
                    values = with_measure(values, query, names, self._measure)
                    self._known[key] = values
                found[at] = values
            open_ones = left
            if not open_ones:
                break
        return [one or {} for one in found]

    def _rankings(self, number: int, request: Request, weights: Floats, width: int) -> list[Rows]:
        """Return for each weight the best rows, as a search for so many results ranks them."""
        hybrid = request.mode == "hybrid"
        fetch = fetched(replace(request, top_k=width))
        like, close = NOTHING, None
        if request.mode != "semantic":
            like = self._by_words(number, request, fetch)
        if request.mode != "bm25":
            close = self._by_vector(number, fetch, request.similarity_threshold)
        if close and hybrid and request.fusion == "cc" and request.vector_weight is None:
            close = close._replace(ranking=self._above_floor(close.ranking, like))
        near = close.ranking if close else NOTHING
        rows = np.array(list(dict.fromkeys((*like.rows, *near.rows))), np.int64)
        # Equal scores are told apart by this order, and a stable sort keeps it.
        rows = rows[np.argsort(self._order[rows], kind="stable")]
        scores = self._scores(number, request, rows, like, close, weights)
        ranked = np.argsort(-scores, axis=1, kind="stable")
        least = request.min_combined_score if hybrid and request.fusion == "cc" else None
        if least is None:
            best = list(rows[ranked[:, :width]])
        else:
            kept = (scores >= least) | self._with_every_word(number, request, rows)
            best = [rows[order[keep[order]]][:width] for order, keep in zip(ranked, kept, strict=True)]
        # Without weights to tell them apart there is one ranking for all.
        return best * len(weights) if len(scores) < len(weights) else best

    def _by_words(self, number: int, request: Request, k: int) -> Ranking:
        key = (k, request.k1, request.b, request.loanwords, request.bridge)
        if key not in self._like:
            analysis = self._analysis(number, request)
            self._like[key] = lexical(self._snapshot, analysis, k, k1=request.k1, b=request.b, masks=self._masks)
        return self._like[key]

    def _by_vector(self, number: int, k: int, threshold: float | None) -> Near | None:
        if (number, k) not in self._near:
            text = _text(self._queries[number])
            found = None
            if self._vectors is not None and self._snapshot.size and text.strip():
                found = nearest(self._snapshot, self._vectors[number], k, masks=self._masks)
            self._near[number, k] = found
        found = self._near[number, k]
        if threshold is None or found is None:
            return found
        rows, scores = found.ranking
        kept = sum(1 - score <= threshold for score in scores)
        return found._replace(ranking=Ranking(rows[:kept], scores[:kept]))

    def _above_floor(self, near: Ranking, like: Ranking) -> Ranking:
        """Return what is near enough to mean something or holds words too, as a search that weighs each query does."""
        by_words = set(like.rows)
        pairs = zip(*near, strict=True)
        kept = [(row, score) for row, score in pairs if row in by_words or score >= self._floor]
        return Ranking([row for row, _ in kept], [score for _, score in kept])

    def _scores(
        self, number: int, request: Request, rows: Rows, like: Ranking, close: Near | None, weights: Floats
    ) -> Floats:
        """Return the scores of rows, one line for each weight; a single line where weights mean nothing."""
        by_words = dict(zip(*like, strict=True))
        if request.mode == "bm25" or close is None:
            return np.array([_values(by_words, rows)])
        by_vector = dict(zip(*close.ranking, strict=True))
        if request.mode == "semantic":
            return np.array([_values(by_vector, rows)])
        if request.fusion == "rrf":
            return np.array([_values(fusion.reciprocal([like.rows, close.ranking.rows], request.rrf_k), rows)])
        if request.vector_weight is None:
            analysis = self._analysis(number, request)
            found = weighed(self._snapshot, analysis, by_words, by_vector, close, request.k1)
            return np.array([_values(found, rows)])
        words, vector = (np.array(_values(fusion.normalised(one), rows)) for one in (by_words, by_vector))
        columns = weights[:, None]
        combined: Floats = columns * vector + (1 - columns) * words
        return combined

    def _with_every_word(self, number: int, request: Request, rows: Rows) -> npt.NDArray[np.bool_]:
        """Say which rows hold all words asked for: these are not held back."""
        analysis = self._analysis(number, request)
        needed = [at for at, role in enumerate(analysis.roles) if role == ""]
        key = number, request.loanwords, request.bridge
        own = [int(row) for row in rows]
        new = [row for row in own if (*key, row) not in self._whole]
        for row, held in zip(new, bm25.matches(self._snapshot, analysis.wanted, new), strict=True):
            self._whole[*key, row] = bool(needed) and all(held[at] for at in needed)
        return np.array([self._whole[*key, row] for row in own], bool)

    def _analysis(self, number: int, request: Request) -> Analysis:
        key = number, request.loanwords, request.bridge
        if key not in self._analyses:
            across = ACROSS if request.bridge else 0.0
            self._analyses[key] = analyse(_text(self._queries[number]), loanwords=request.loanwords, across=across)
        return self._analyses[key]

    def _documents(self, rows: Iterable[np.int64], most: int) -> list[str]:
        """Return the documents of rows, each once, the best first."""
        own = [int(row) for row in rows]
        self._learn(own)
        return list(dict.fromkeys(self._chunks[row][0] for row in own))[:most]

    def _chunk(self, row: int) -> tuple[str, str]:
        self._learn([row])
        return self._chunks[row]

    def _learn(self, rows: Sequence[int]) -> None:
        new = [row for row in rows if row not in self._chunks]
        for at in range(0, len(new), _AT_ONCE):
            ids = {self._snapshot.chunk_id(row): row for row in new[at : at + _AT_ONCE]}
            for chunk_id, stored in self._store.chunks(list(ids)).items():
                self._chunks[ids[chunk_id]] = (stored.uri, stored.chunk.text)


def with_measure(values: dict[str, float], query: Query, names: Sequence[str], measure: str) -> dict[str, float]:
    """Return values with the measure that is wanted, where its depth is not the number of results.

    Of questions without an answer, one that no threshold holds back counts too: settings with one and without compare.
    """
    if measure == "abstention" and not query.answerable:
        return values | {measure: float(not names)}
    kind, at, depth = measure.partition("@")
    if measure in values or not at or not query.answerable:
        return values
    deep = measures.of_ranking(names, query.grades, int(depth), expected=query.expected)
    return values | {measure: deep[f"{kind}@{depth}"]}


def _values(scores: Mapping[int, float], rows: Rows) -> list[float]:
    return [scores.get(int(row), 0.0) for row in rows]


def _text(query: Query) -> str:
    return printable(query.text)[:LONGEST_QUERY]
