"""Two ranked lists in, one out: convex combination of normalised scores, or reciprocal ranks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def normalise_scores(scores: Mapping[K, float]) -> dict[K, float]:
    """Stretch scores to 0…1; equal scores all become 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}


def convex_combination(vector: Mapping[K, float], lexical: Mapping[K, float], weight: float) -> dict[K, float]:
    """Return weight · vector + (1 − weight) · lexical over normalised scores; what one side lacks counts 0."""
    near, like = normalise_scores(vector), normalise_scores(lexical)
    return {
        key: weight * near.get(key, 0.0) + (1 - weight) * like.get(key, 0.0) for key in dict.fromkeys((*like, *near))
    }


# How much vectors count where a text holds all that was asked for, and how much more where none holds any of it. A
# vector that stands this many spreads above the mean is as near as it gets. Chosen on judged sets, see docs/quality.md.
_BASE_VECTOR_WEIGHT, _EXTRA_VECTOR_WEIGHT, _FULL_SCORE_SPREADS = 0.1, 0.4, 6.0


def adaptive_combination(
    vector: Mapping[K, float], lexical: Mapping[K, float], *, mean: float, spread: float, max_possible_score: float
) -> dict[K, float]:
    """Return the convex combination with a weight of its own for this query.

    Words count by their share of the best, vectors by how far they stand out among all: `mean` and `spread` are those
    of all cosines. The less the best text holds of what it could by words, `possible`, the more the vectors count.
    """
    best = max(lexical.values(), default=0.0)
    weight = _BASE_VECTOR_WEIGHT + _EXTRA_VECTOR_WEIGHT * max(
        0.0, 1 - best / max_possible_score if max_possible_score else 1.0
    )
    like = (1 - weight) / best if best else 0.0
    near = weight / (_FULL_SCORE_SPREADS * spread if spread else 1.0)
    scores = {key: like * score for key, score in lexical.items()}
    for key, cosine in vector.items():
        above = near * (cosine - mean)
        scores[key] = scores.get(key, 0.0) + (0.0 if above < 0 else weight if above > weight else above)
    return scores


def reciprocal_rank_fusion(rankings: Sequence[Sequence[K]], k: float = 60) -> dict[K, float]:
    """Return the sum of 1 / (k + rank) over the lists that hold a key, ranks counted from 1."""
    scores: dict[K, float] = {}
    for ranked in rankings:
        for rank, key in enumerate(ranked, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return scores
