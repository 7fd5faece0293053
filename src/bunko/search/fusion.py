"""Fuse lexical and vector rankings: by convex combination of normalised scores, or by reciprocal ranks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


def normalise_scores(scores: Mapping[K, float]) -> dict[K, float]:
    """Scale scores to 0…1; equal scores all become 1."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}


def convex_combination(vector: Mapping[K, float], lexical: Mapping[K, float], weight: float) -> dict[K, float]:
    """Return weight · vector + (1 − weight) · lexical over normalised scores; a missing score counts as 0."""
    vector_scores, lexical_scores = normalise_scores(vector), normalise_scores(lexical)
    return {
        key: weight * vector_scores.get(key, 0.0) + (1 - weight) * lexical_scores.get(key, 0.0)
        for key in dict.fromkeys((*lexical_scores, *vector_scores))
    }


# The vector weight if a text contains all words of the query, and what is added to it if none contains any. A cosine
# this many spreads above the mean gets the full vector score. Chosen on judged sets, see docs/quality.md.
_BASE_VECTOR_WEIGHT, _EXTRA_VECTOR_WEIGHT, _FULL_SCORE_SPREADS = 0.25, 0.6, 8.0


class AdaptiveWeights(NamedTuple):
    """The weight of vectors for a query, and what a BM25 score and a cosine above the mean count per unit."""

    vector: float
    per_lexical_score: float
    per_cosine: float

    def vector_points(self, cosine: float, mean: float) -> float:
        """Return the points of a cosine in the score of a row."""
        points = self.per_cosine * (cosine - mean)
        return 0.0 if points < 0 else self.vector if points > self.vector else points


def adaptive_weights(
    best_lexical_score: float, *, spread: float, max_possible_score: float, factor: float
) -> AdaptiveWeights:
    """Return the weights for a query, by how far its best score by words stays below the highest possible one.

    Vectors count `factor` times the weight that follows from it.
    """
    weight = _BASE_VECTOR_WEIGHT + _EXTRA_VECTOR_WEIGHT * max(
        0.0, 1 - best_lexical_score / max_possible_score if max_possible_score else 1.0
    )
    weight = min(factor * weight, 1.0)
    per_lexical_score = (1 - weight) / best_lexical_score if best_lexical_score else 0.0
    return AdaptiveWeights(weight, per_lexical_score, weight / (_FULL_SCORE_SPREADS * spread if spread else 1.0))


def adaptive_combination(
    vector: Mapping[K, float],
    lexical: Mapping[K, float],
    weights: AdaptiveWeights,
    *,
    mean: float,
    lost: Mapping[K, float],
) -> dict[K, float]:
    """Return the convex combination with weights that adapt to the query.

    Lexical scores count relative to the best one, cosines by their distance from their mean; `lost` cosines are taken
    away in the end.
    """
    weight, lexical_factor, vector_factor = weights
    scores = {key: lexical_factor * score for key, score in lexical.items()}
    for key, cosine in vector.items():  # as `vector_points` and `take_away`, without calls for each row
        points = vector_factor * (cosine - mean)
        score = scores.get(key, 0.0) + (0.0 if points < 0 else weight if points > weight else points)
        if lost:
            points, most = vector_factor * lost.get(key, 0.0), -score / 2
            score += points if points > most else most
        scores[key] = score
    return scores


def take_away(score: float, lost: float) -> float:
    """Return a score with the negative points that it has lost, but never more than half of it."""
    return score + max(lost, -abs(score) / 2)


def reciprocal_rank_fusion(rankings: Sequence[Sequence[K]], k: float = 60) -> dict[K, float]:
    """Return the sum of 1 / (k + rank) over the rankings that contain a key, with ranks from 1."""
    scores: dict[K, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return scores
