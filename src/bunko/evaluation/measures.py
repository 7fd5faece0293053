"""A ranking of documents and the judgements about them in, numbers from 0 to 1 out.

Gains are linear and discounted by log2(rank + 1), as trec_eval does it; tests hold every number against that program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

# The measure that regressions are judged by.
F1 = "f1"
# What must not come back and did.
NEGATIVE_RATE = "negative_rate"
LOWER_IS_BETTER = frozenset({NEGATIVE_RATE})


class PrecisionRecall(NamedTuple):
    """How much of what came back was wanted, how much of what was wanted came back, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def precision_recall(retrieved: Sequence[str], expected: Collection[str]) -> PrecisionRecall:
    """Compare what came back with what was expected, each source counted once; nothing for nothing is right."""
    found, wanted = set(retrieved), set(expected)
    if not wanted:
        return PrecisionRecall(*[float(not found)] * 3)
    both = len(found & wanted)
    precision, recall = both / len(found) if found else 0.0, both / len(wanted)
    return PrecisionRecall(precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0)


def ndcg(ranking: Sequence[str], grades: Mapping[str, float], k: int | None = None) -> float:
    """Return the discounted gain of the first k, as a share of the best possible."""
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k]
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    gain = sum(max(0.0, grades.get(one, 0.0)) / math.log2(rank + 1) for rank, one in enumerate(ranking[:k], 1))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], expected: Collection[str], k: int | None = None) -> float:
    """Return 1 divided by the rank of the first right one; 0 without any."""
    return next((1 / rank for rank, one in enumerate(ranking[:k], 1) if one in expected), 0.0)


def average_precision(ranking: Sequence[str], expected: Collection[str], k: int | None = None) -> float:
    """Return the mean of the precision at each right one; what did not come back counts 0."""
    right, total = 0, 0.0
    for rank, one in enumerate(ranking[:k], 1):
        if one in expected:
            right += 1
            total += right / rank
    return total / len(expected) if expected else 0.0


def ranking_measures(
    ranking: Sequence[str], grades: Mapping[str, float], k: int, *, expected: Collection[str] = ()
) -> dict[str, float]:
    """Return every measure of one answer to a question that has an answer; `ranked` names each document once.

    Grades make the gain. What is right or wrong is a matter of what is expected: all with a grade, if nobody says.
    """
    expected = set(expected) or {one for one, grade in grades.items() if grade > 0}
    top = ranking[:k]
    right = sum(one in expected for one in top)
    plain = precision_recall(top, expected)
    return {
        f"ndcg@{k}": ndcg(top, grades, k),
        f"recall@{k}": right / len(expected),
        f"mrr@{k}": reciprocal_rank(top, expected),
        f"map@{k}": average_precision(top, expected),
        f"precision@{k}": right / k,
        "hit@1": float(bool(top) and top[0] in expected),
        f"hit@{k}": float(right > 0),
        "precision": plain.precision,
        "recall": plain.recall,
        F1: plain.f1,
    }
