"""Rank straight from the rows of a store: the plain reference that other indexes are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

from bunko.indexes.term_weights import countable_terms, idf, term_idfs
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.text import ngrams
from bunko.text.line_joins import join_lines
from bunko.types.records import GRAM_WEIGHT, IndexState, NearestRows, QueryTerm, Ranking, StoredChunk

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bunko.types import SentenceSubwords


class ReferenceView:
    """The chunks of some tools at one generation; a row is a chunk id."""

    notices: Sequence[str] = ()

    def __init__(self, chunks_by_tool: Sequence[Sequence[StoredChunk]], generation: int) -> None:
        self._chunks = {chunk.chunk_id: chunk for chunks in chunks_by_tool for chunk in chunks}
        self._rows_with_vectors = [
            chunk.chunk_id
            for chunks in chunks_by_tool
            if any(chunk.vector is not None for chunk in chunks)
            for chunk in chunks
        ]
        self.generation, self.size = generation, len(self._chunks)
        self._words = {
            row: dict(zip(chunk.term_keys.tolist(), chunk.term_counts.tolist(), strict=True))
            for row, chunk in self._chunks.items()
        }
        self._grams: dict[int, set[int]] = {
            row: set(ngrams.gram_keys(join_lines(chunk.text)).tolist()) for row, chunk in self._chunks.items()
        }
        self._lengths = {row: sum(counts.values()) for row, counts in self._words.items()}
        self._average_length = max(1.0, sum(self._lengths.values()) / max(1, self.size))
        self._word_frequency = Counter(key for counts in self._words.values() for key in counts)
        self._gram_frequency = Counter(key for keys in self._grams.values() for key in keys)

    def rows(self) -> list[int]:
        """Return all rows, in the order they were written."""
        return list(self._chunks)

    def chunk_ids(self, rows: Sequence[int]) -> list[int]:
        """Return the chunk ids of rows."""
        return list(rows)

    def tie_order(self, rows: Sequence[int]) -> list[int]:
        """Return the sort keys of rows among equal scores."""
        return [self._chunks[row].tiebreak_order for row in rows]

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25; n-grams, by presence, only add to the scores of rows that words found."""
        scores = {}
        for row in self._rows_of(where):
            if score := self._word_score(row, terms, k1, b):
                grams = (term for term in terms if term.is_gram and term.key in self._grams[row])
                scores[row] = score + sum(term.weight * self._idf(term) for term in grams)
        return self._best(scores, k)

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""
        words = [term for term in terms if not term.is_gram]
        is_countable = countable_terms(words, self._frequencies(words))
        scores = [
            (k1 + 1) * word.weight * word_idf if counts else 0.0
            for word, word_idf, counts in zip(words, self._idfs(words), is_countable, strict=True)
        ]
        return _sum_of_groups(words, scores)

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        min_weight = min_share * sum(gram.weight for gram in grams)
        scores = {}
        for row in self._rows_of(where):
            matching = [gram for gram in grams if gram.key in self._grams[row]]
            if sum(gram.weight for gram in matching) >= min_weight:
                scores[row] = GRAM_WEIGHT * sum(gram.weight * self._idf(gram) for gram in matching)
        return self._best(scores, k)

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges (start, end); ranges rarer in `where` count more."""
        scores: dict[int, float] = {}
        for start, end in ranges:
            matching = [row for row in self._rows_of(where) if any(start <= key < end for key in self._grams[row])]
            for row in matching:
                scores[row] = scores.get(row, 0.0) + GRAM_WEIGHT * idf(self.size, len(matching))
        return self._best(scores, k)

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""
        return [[term.key in (self._grams if term.is_gram else self._words)[row] for term in terms] for row in rows]

    def term_scores(self, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float) -> list[list[float]]:
        """Return for each row what each of the terms alone adds to its score, without regard to groups."""
        return [
            [
                term.weight * self._idf(term) if term.is_gram and term.key in self._grams[row] else score
                for term, score in zip(terms, self._scores_of_words(row, terms, k1, b), strict=True)
            ]
            for row in rows
        ]

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine, without the rows of tools that have no vectors."""
        rows = self._rows_with_vectors
        scores = dict(zip(rows, self.cosines(vector, rows), strict=True))
        mean = sum(scores.values()) / max(len(scores), 1)
        spread = sqrt(max(sum(score * score for score in scores.values()) / max(len(scores), 1) - mean * mean, 0.0))
        best = self._best({row: scores[row] for row in self._rows_of(where) if row in scores}, k)
        return NearestRows(best, vector, round(mean, 4), round(spread, 4))

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows; 0 without a vector."""
        vectors = (self._chunks[row].vector for row in rows)
        return [0.0 if row_vector is None else float(row_vector @ vector) for row_vector in vectors]

    def sentences(self, rows: Sequence[int]) -> list[SentenceSubwords | str | None]:
        """Return the subwords of each row's sentences, or its text if it was imported before they were kept."""
        chunks = [self._chunks[row] for row in rows]
        return [
            chunk.sentences if chunk.sentences is not None or chunk.vector is None else chunk.text.replace("\n\n", "\n")
            for chunk in chunks
        ]

    def _rows_of(self, where: tuple[int, ...] | None) -> list[int]:
        """Return the rows of some documents, or all."""
        if where is None:
            return self.rows()
        document_ids = set(where)
        return [row for row, chunk in self._chunks.items() if chunk.document_id in document_ids]

    def _word_score(self, row: int, terms: Sequence[QueryTerm], k1: float, b: float) -> float:
        """Return a row's BM25 score by words."""
        return _sum_of_groups(terms, self._scores_of_words(row, terms, k1, b))

    def _scores_of_words(self, row: int, terms: Sequence[QueryTerm], k1: float, b: float) -> list[float]:
        """Return the BM25 score of each word in a row, 0 for n-grams."""
        norm = k1 * (1 - b + b * self._lengths[row] / self._average_length)
        counts = [0 if term.is_gram else self._words[row].get(term.key, 0) for term in terms]
        return [
            term.weight * term_idf * (k1 + 1) * count / (count + norm) if count else 0.0
            for term, term_idf, count in zip(terms, self._idfs(terms), counts, strict=True)
        ]

    def _idf(self, gram: QueryTerm) -> float:
        return self._idfs([gram])[0]

    def _idfs(self, terms: Sequence[QueryTerm]) -> list[float]:
        return term_idfs(terms, self._frequencies(terms), self.size)

    def _frequencies(self, terms: Sequence[QueryTerm]) -> list[int]:
        return [(self._gram_frequency if term.is_gram else self._word_frequency)[term.key] for term in terms]

    def _best(self, scores: Mapping[int, float], k: int) -> Ranking:
        rows = sorted(scores, key=lambda row: (-scores[row], self._chunks[row].tiebreak_order))[:k]
        return Ranking(rows, [scores[row] for row in rows])


def _sum_of_groups(terms: Sequence[QueryTerm], scores: Sequence[float]) -> float:
    """Return the sum of the scores of terms; of the terms of a group, only the highest counts."""
    highest: dict[int, float] = {}
    for term, score in zip(terms, scores, strict=True):
        if term.group >= 0:
            highest[term.group] = max(score, highest.get(term.group, 0.0))
    return sum(highest.values()) + sum(score for term, score in zip(terms, scores, strict=True) if term.group < 0)


class ReferenceIndex:
    """An index that keeps nothing: each view reads all chunks of its tools from the store."""

    kind, location = "reference", ""

    def __init__(self, store: Store) -> None:
        self._store = store

    def view(self, tool_ids: Sequence[int], *, without_vectors: Sequence[int] = ()) -> ReferenceView:
        """Return the state of some tools that matches the store; call it inside the store's `read_transaction`."""
        chunks_by_tool = []
        for tool_id in tool_ids:
            chunks = list(self._store.changes.chunks_since(tool_id, 0))
            if tool_id in without_vectors:
                chunks = [replace(chunk, vector=None, sentences=None) for chunk in chunks]
            chunks_by_tool.append(chunks)
        return ReferenceView(chunks_by_tool, self._store.generation())

    def sync(self, tool_id: int, observer: Observer = NO_OBSERVER) -> ReferenceView:
        """Return the state of a tool; there is nothing to save."""
        with self._store.read_transaction():
            return self.view([tool_id])

    def unsaved_tools(self) -> list[int]:
        """Return none, because nothing is kept outside the store."""
        return []

    def state(self, tool_id: int) -> IndexState:
        """Return the state of the store, which each view reads."""
        return IndexState(self._store.generation())

    def storage_bytes(self, tool_id: int | None = None) -> int:
        """Return 0, because nothing is kept outside the store."""
        return 0

    def check(self, tool_id: int) -> str:
        """Return an empty string, because nothing can be damaged."""
        return ""

    def repair(self, tool_id: int) -> bool:
        """Return False, because nothing can be damaged."""
        return False

    def drop(self, tool_id: int, *, copy_only: bool = False) -> None:
        """Do nothing: the index keeps nothing of a tool."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
