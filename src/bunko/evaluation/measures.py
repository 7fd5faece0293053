"""Compute ranking measures between 0 and 1 from a ranking and its judgements.

Gains are linear and discounted by log2(rank + 1), as in trec_eval; tests compare every number with that program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

# The measure that decides whether an evaluation regressed.
F1 = "f1"
# The share of queries that returned a document they must not return.
NEGATIVE_RATE = "negative_rate"
LOWER_IS_BETTER = frozenset({NEGATIVE_RATE})


class PrecisionRecall(NamedTuple):
    """Precision, recall, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def precision_recall(retrieved: Sequence[str], expected: Collection[str]) -> PrecisionRecall:
    """Compare retrieved with expected sources, each counted once; retrieving nothing when nothing is expected is 1."""
    retrieved_set, expected_set = set(retrieved), set(expected)
    if not expected_set:
        return PrecisionRecall(*[float(not retrieved_set)] * 3)
    overlap = len(retrieved_set & expected_set)
    precision, recall = overlap / len(retrieved_set) if retrieved_set else 0.0, overlap / len(expected_set)
    return PrecisionRecall(precision, recall, 2 * precision * recall / (precision + recall) if overlap else 0.0)


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], k: int | None = None) -> float:
    """Return the discounted cumulative gain of the first k as a share of the ideal one."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    gain = sum(max(0.0, grades.get(uri, 0.0)) / math.log2(rank + 1) for rank, uri in enumerate(ranking[:k], 1))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], expected: Collection[str], k: int | None = None) -> float:
    """Return 1 divided by the rank of the first relevant document; 0 if there is none."""
    return next((1 / rank for rank, uri in enumerate(ranking[:k], 1) if uri in expected), 0.0)


def average_precision(ranking: Sequence[str], expected: Collection[str], k: int | None = None) -> float:
    """Return the mean precision at the rank of each relevant document; one that is not retrieved counts 0."""
    relevant_count, total = 0, 0.0
    for rank, uri in enumerate(ranking[:k], 1):
        if uri in expected:
            relevant_count += 1
            total += relevant_count / rank
    return total / len(expected) if expected else 0.0


def ranking_measures(
    ranking: Sequence[str], grades: Mapping[str, float], k: int, *, expected: Collection[str] = ()
) -> dict[str, float]:
    """Return every measure of a ranking for an answerable query; the ranking must name each document once.

    nDCG uses the grades; the other measures use `expected`, by default every document with a grade above 0.
    """
    expected = set(expected) or {uri for uri, grade in grades.items() if grade > 0}
    top = ranking[:k]
    relevant_count = sum(uri in expected for uri in top)
    scores = precision_recall(top, expected)
    return {
        f"ndcg@{k}": ndcg(top, grades, k),
        f"recall@{k}": relevant_count / len(expected),
        f"mrr@{k}": reciprocal_rank(top, expected),
        f"map@{k}": average_precision(top, expected),
        f"precision@{k}": relevant_count / k,
        "hit@1": float(bool(top) and top[0] in expected),
        f"hit@{k}": float(relevant_count > 0),
        "precision": scores.precision,
        "recall": scores.recall,
        F1: scores.f1,
    }
