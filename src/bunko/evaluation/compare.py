"""Values of the same questions under two settings in, how sure one can be of the difference out.

Questions are drawn anew, with replacement, ten thousand times; the same seed gives the same numbers every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bunko.evaluation.measures import LOWER_IS_BETTER

RESAMPLES = 10_000
SEED = 20_240_115
_MAX_CELLS = 4_000_000  # drawn at once: 32 MB
_TOLERANCE = 1e-6  # reports are written to six digits
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """How much higher (or, below 0, lower) the second is in one measure, and how sure that is."""

    measure: str
    first: float
    second: float
    difference: float
    low: float  # 95 % of the resampled differences lie from here …
    high: float  # … to here
    p: float  # how often chance alone would turn the sign, both ways counted
    wins: int  # questions that the second answers better
    losses: int
    ties: int

    @property
    def is_significant(self) -> bool:
        """Say whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` where the second certainly is, else nothing."""
        if not self.is_significant:
            return ""
        return "better" if (self.difference > 0) != (self.measure in LOWER_IS_BETTER) else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ways of asking the same questions, side by side."""

    first: str
    second: str
    differences: tuple[Difference, ...]


def compare(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]], *, names: tuple[str, str]
) -> Comparison:
    """Compare measures → question → value, over the questions both have; what both lack is left out."""
    shared = {measure: tuple(one for one in first[measure] if one in second.get(measure, {})) for measure in first}
    found = {}
    for queries, measures in _group_measures(shared).items():
        a = np.array([[first[measure][one] for measure in measures] for one in queries])
        b = np.array([[second[measure][one] for measure in measures] for one in queries])
        drawn = resample_means(b - a)
        for i, measure in enumerate(measures):
            found[measure] = _difference(measure, a[:, i], b[:, i], drawn[:, i])
    return Comparison(*names, tuple(found[measure] for measure in first if measure in found))


def _difference(measure: str, first: _Floats, second: _Floats, samples: _Floats) -> Difference:
    change = second - first
    low, high = np.percentile(samples, (2.5, 97.5))
    below, above = int((samples <= _TOLERANCE).sum()), int((samples >= -_TOLERANCE).sum())
    p = min(1.0, 2 * (1 + min(below, above)) / (1 + RESAMPLES))
    better = -change if measure in LOWER_IS_BETTER else change
    wins, losses = int((better > _TOLERANCE).sum()), int((better < -_TOLERANCE).sum())
    return Difference(
        measure, float(first.mean()), float(second.mean()), float(change.mean()), float(low), float(high), p,
        wins, losses, len(change) - wins - losses,
    )  # fmt: skip


def confidence_intervals(values: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of the mean of each measure."""
    found = {}
    for queries, names in _group_measures({name: tuple(of_query) for name, of_query in values.items()}).items():
        columns = np.array([[values[name][query] for name in names] for query in queries])
        low, high = np.percentile(resample_means(columns), (2.5, 97.5), axis=0)
        found.update({name: (float(low[i]), float(high[i])) for i, name in enumerate(names)})
    return {name: found[name] for name in values}


def _group_measures(queries: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    """Return which measures are about the same questions: these are drawn once for all of them."""
    found: dict[tuple[str, ...], list[str]] = {}
    for measure, of_measure in queries.items():
        if of_measure:
            found.setdefault(of_measure, []).append(measure)
    return found


def resample_means(columns: _Floats) -> _Floats:
    """Return the means of each column (one row a question) over questions drawn anew, one row a draw."""
    number = len(columns)
    random = np.random.default_rng(SEED)
    means = np.empty((RESAMPLES, columns.shape[1]))
    step = max(1, _MAX_CELLS // number)
    for at in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - at)
        # How often each question is drawn says as much as which ones are, and makes the sums one product.
        drawn = random.integers(0, number, (rows, number)) + np.arange(rows)[:, None] * number
        counts = np.bincount(drawn.ravel(), minlength=rows * number).reshape(rows, number)
        means[at : at + rows] = counts @ columns / number
    return means
