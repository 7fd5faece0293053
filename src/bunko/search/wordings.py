"""Add what other wordings of a question find to what it finds itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# A row gains nothing by a wording that has it below this rank.
DEPTH = 50
# A wording counts by how well the question itself ranks the best of its first rows. Chosen on six judged sets, with the
# wordings of each question and with those of another one, see docs/quality.md.
_FIRST_ROWS = 5
_NO_AGREEMENT, _FULL_AGREEMENT = 0.1, 0.6
# Without any agreement, its rows only follow those of the question.
_MIN_SHARE = 0.01
# A row that only wordings find needs this share of the best score: less is the noise of a wrong one.
_MIN_SCORE_SHARE = 0.05
# A row with every word of the question falls at most to this multiple of the rank that it has without wordings.
_MAX_FALL = 2
PROTECTED_ROWS = 10


class CombinedScores(NamedTuple):
    """The scores of rows by a question and its wordings."""

    final: dict[int, float]
    weights: list[float]  # of the question and of each wording; they add up to 1
    gains: list[dict[int, float]]  # what each wording adds to the score of a row; the rest is the question's


def combine(own: Mapping[int, float], wordings: Sequence[tuple[float, Mapping[int, float]]]) -> CombinedScores:
    """Add the scores of wordings, each with its weight, to those of the question, which has the weight 1.

    All are between 0 and 1 and in descending order. What exceeds the score of the fiftieth row counts; so the sum does
    not depend on how many more rows a text has. A question that finds nothing has no weight: it would only keep the
    scores of what its wordings find low.
    """
    own_floor = _floor(own)
    weights = [1.0 if own else 0.0, *(weight * _agreement(own, own_floor, scores) for weight, scores in wordings)]
    total = sum(weights)
    weights = [weight / total for weight in weights]
    final = {row: weights[0] * score for row, score in own.items()}
    lowest, gains = weights[0] * own_floor, []
    for weight, (_, scores) in zip(weights[1:], wordings, strict=True):
        floor = _floor(scores)
        gains.append({row: weight * (score - floor) for row, score in scores.items() if score > floor})
        for row in list(scores)[:DEPTH]:
            final[row] = max(final.get(row, lowest), lowest) + gains[-1].get(row, 0.0)
    least = _MIN_SCORE_SHARE * max(final.values(), default=0.0)
    final = {row: score for row, score in final.items() if row in own or score >= least}
    return CombinedScores(final, weights, gains)


def _floor(scores: Mapping[int, float]) -> float:
    return list(scores.values())[DEPTH - 1] if len(scores) >= DEPTH else 0.0


def _agreement(own: Mapping[int, float], own_floor: float, wording: Mapping[int, float]) -> float:
    """Return the share of its weight that a wording has: a wrong one finds nothing of what the question finds."""
    if not own:
        return 1.0
    best = max(own.values()) - own_floor
    shared = max((own.get(row, own_floor) - own_floor for row in list(wording)[:_FIRST_ROWS]), default=0.0)
    share = shared / best if best > 0 else 0.0
    return min(max((share - _NO_AGREEMENT) / (_FULL_AGREEMENT - _NO_AGREEMENT), _MIN_SHARE), 1.0)


def keep_full_matches(rows: Sequence[int], own_rows: Sequence[int], full_matches: Sequence[bool]) -> list[int]:
    """Return rows in an order in which those with every word of the question, told for its first rows, stay near."""
    latest = {
        row: _MAX_FALL * rank for rank, (row, full) in enumerate(zip(own_rows, full_matches, strict=False), 1) if full
    }
    ordered: list[int] = []
    waiting = dict.fromkeys(rows)
    for position in range(1, min(_MAX_FALL * PROTECTED_ROWS, len(rows)) + 1):
        due = (row for row, rank in latest.items() if rank <= position and row in waiting)
        row = next(due, -1)
        row = next(iter(waiting)) if row < 0 else row
        del waiting[row]
        ordered.append(row)
    return [*ordered, *waiting]
