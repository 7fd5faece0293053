"""Write the terms of a query as sparse vectors, whose products with those of chunks bound the scores of chunks.

A chunk counts only the best word of each group, such as a word and its translations, and a product counts them all. A
chunk with many words of a group would crowd out better ones, so each word of a group gets a vector of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bunko.indexes.milvus.statistics import dimension_of
from bunko.types.records import QueryTerm

# A word has at most a handful of translations and synonyms that count.
_MAX_VECTORS = 8


class Queries(NamedTuple):
    """The vectors to search for: no score is higher than the highest product with a bounding vector."""

    bounding: Sequence[Any]
    hints: Sequence[Any] = ()  # whose best rows are likely to be among the best
    plain: Any = None  # without n-grams, in case that rows with nothing else crowd out the others


def query_vector(terms: Sequence[QueryTerm], idfs: Sequence[float]) -> dict[int, float]:
    """Return the weights of terms by dimension."""
    vector: dict[int, float] = {}
    for term, idf in zip(terms, idfs, strict=True):
        dimension = dimension_of(term.key, "gram" if term.is_gram else "word")
        vector[dimension] = vector.get(dimension, 0.0) + term.weight * idf
    return vector


def word_queries(
    words: Sequence[QueryTerm], idfs: Sequence[float], grams: Sequence[QueryTerm], gram_idfs: Sequence[float]
) -> Queries:
    """Return the vectors that find the chunks with the best words of each group, and n-grams."""
    groups: dict[int, list[int]] = {}
    for position, word in enumerate(words):
        groups.setdefault(word.group if word.group >= 0 else ~position, []).append(position)
    for positions in groups.values():
        positions.sort(key=lambda position: words[position].weight * idfs[position], reverse=True)
    gram_vector = query_vector(grams, gram_idfs)

    def vector_of(positions: Sequence[int]) -> dict[int, float]:
        return query_vector([words[position] for position in positions], [idfs[position] for position in positions]) | (
            gram_vector
        )

    everything = vector_of(range(len(words)))
    plain = query_vector(words, idfs) if grams else None
    ranks = min(max(map(len, groups.values())), _MAX_VECTORS)
    if ranks == 1:
        return Queries([everything], plain=plain)
    by_rank = []
    for rank in range(ranks):
        # The last vector has all that are left, so that no product is lower than a score.
        end = None if rank == _MAX_VECTORS - 1 else rank + 1
        by_rank.append(vector_of([position for group in groups.values() for position in group[rank:end] or group[-1:]]))
    if sum(len(group) > 1 for group in groups.values()) == 1:
        return Queries(by_rank, plain=plain)
    return Queries([everything], by_rank, plain)
