"""Compare two runs over the same queries by paired bootstrap.

Queries are resampled with replacement ten thousand times; the fixed seed gives the same numbers every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bunko.evaluation.measures import LOWER_IS_BETTER

RESAMPLES = 10_000
SEED = 20_240_115
_MAX_CELLS = 4_000_000  # resampled at once: 32 MB
_TOLERANCE = 1e-6  # reports are rounded to six digits: a smaller change is none
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one measure between two runs (second minus first), with its confidence interval."""

    measure: str
    first: float
    second: float
    difference: float
    low: float  # 95 % of the resampled differences lie from here …
    high: float  # … to here
    p: float  # two-sided: how often resampling turns the sign
    wins: int  # queries that the second run answers better
    losses: int
    ties: int

    @property
    def is_significant(self) -> bool:
        """Return whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def verdict(self) -> str:
        """Return `better` or `worse` if the difference is significant, else an empty text."""
        if not self.is_significant:
            return ""
        return "better" if (self.difference > 0) != (self.measure in LOWER_IS_BETTER) else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two runs over the same queries."""

    first: str
    second: str
    differences: tuple[Difference, ...]


def compare(
    first: Mapping[str, Mapping[str, float]], second: Mapping[str, Mapping[str, float]], *, names: tuple[str, str]
) -> Comparison:
    """Compare values by measure and query id, over the queries that both runs have."""
    shared = {measure: tuple(key for key in first[measure] if key in second.get(measure, {})) for measure in first}
    differences = {}
    for query_ids, measures in _group_measures(shared).items():
        a = np.array([[first[measure][query_id] for measure in measures] for query_id in query_ids])
        b = np.array([[second[measure][query_id] for measure in measures] for query_id in query_ids])
        changes = np.where(np.abs(b - a) > _TOLERANCE, b - a, 0.0)
        samples = resample_means(changes)
        for i, measure in enumerate(measures):
            differences[measure] = _difference(measure, a[:, i], b[:, i], changes[:, i], samples[:, i])
    return Comparison(*names, tuple(differences[measure] for measure in first if measure in differences))


def _difference(measure: str, first: _Floats, second: _Floats, change: _Floats, samples: _Floats) -> Difference:
    low, high = np.percentile(samples, (2.5, 97.5))
    below, above = int((samples <= _TOLERANCE).sum()), int((samples >= -_TOLERANCE).sum())
    p = min(1.0, 2 * (1 + min(below, above)) / (1 + RESAMPLES))
    better = -change if measure in LOWER_IS_BETTER else change
    wins, losses = int((better > 0).sum()), int((better < 0).sum())
    return Difference(
        measure, float(first.mean()), float(second.mean()), float(change.mean()), float(low), float(high), p,
        wins, losses, len(change) - wins - losses,
    )  # fmt: skip


def confidence_intervals(values: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of the mean of each measure."""
    intervals = {}
    for query_ids, names in _group_measures({name: tuple(by_query) for name, by_query in values.items()}).items():
        columns = np.array([[values[name][query_id] for name in names] for query_id in query_ids])
        low, high = np.percentile(resample_means(columns), (2.5, 97.5), axis=0)
        intervals.update({name: (float(low[i]), float(high[i])) for i, name in enumerate(names)})
    return {name: intervals[name] for name in values}


def _group_measures(query_ids: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, ...], list[str]]:
    """Group the measures that have the same queries, so that those are resampled once."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for measure, ids in query_ids.items():
        if ids:
            groups.setdefault(ids, []).append(measure)
    return groups


def resample_means(columns: _Floats) -> _Floats:
    """Return the mean of each column (one row per query) over resampled queries, one row per resample."""
    query_count = len(columns)
    random = np.random.default_rng(SEED)
    means = np.empty((RESAMPLES, columns.shape[1]))
    step = max(1, _MAX_CELLS // query_count)
    for start in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - start)
        # Counting how often each query was picked turns the sums into one matrix product.
        picks = random.integers(0, query_count, (rows, query_count)) + np.arange(rows)[:, None] * query_count
        counts = np.bincount(picks.ravel(), minlength=rows * query_count).reshape(rows, query_count)
        means[start : start + rows] = counts @ columns / query_count
    return means
