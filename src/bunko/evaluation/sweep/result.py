"""The plan and the result of a sweep: scores, the best point, and the check on held-out queries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bunko.errors import SettingsError, SourceError
from bunko.evaluation.compare import Difference
from bunko.evaluation.dataset import JudgedQuery, JudgedSet
from bunko.evaluation.measures import LOWER_IS_BETTER
from bunko.evaluation.run import Run
from bunko.evaluation.sweep.grid import Dimension, Grid, PointValues, SettingValue
from bunko.settings import Settings
from bunko.types import Mode

# The settings that an index depends on.
INDEX_SECTIONS = ("chunker", "chunking", "embedding")
_PLAIN_MEASURES = ("precision", "recall", "f1", "negative_rate", "keywords", "abstention")
_MEASURE_AT_DEPTH = re.compile(r"(?:ndcg|recall|mrr|map|precision|hit)@([1-9][0-9]{0,2}|1000)")
# With fewer queries in a half, a single one decides.
_MIN_QUERIES = 2


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The grid to sweep, and how its points are measured."""

    grid: Grid
    measure: str
    mode: Mode | None  # None: the mode of the settings
    n_results: int
    judge_documents: bool  # True (public sets): judge n_results documents; False: the documents of n_results chunks
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class PointScore:
    """The score of a point on each half of the queries, and its measures."""

    tuning: float
    held_out: float
    measures: Mapping[str, float]  # over all queries, as `evaluate` reports them


@dataclass(frozen=True, slots=True)
class PointResult:
    """A point measured by an ordinary run, with the 95 % interval of its held-out score."""

    values: PointValues
    run: Run
    tuning: float
    held_out: float
    low: float
    high: float


@dataclass
class SweepResult:
    """The scores of a sweep so far, and its conclusion once it is complete."""

    judged_set: JudgedSet
    plan: SweepPlan
    fingerprint: str
    settings: dict[str, Any]  # the settings in force
    tuning_ids: frozenset[str]
    held_out_ids: frozenset[str]
    points: list[dict[str, SettingValue]]
    scores: dict[int, PointScore] = field(default_factory=dict)
    reused_count: int = 0
    seconds: float = 0.0
    documents: int = 0
    best: PointResult | None = None
    current: PointResult | None = None
    difference: Difference | None = None
    toml: str = ""
    notices: list[str] = field(default_factory=list)

    @property
    def measure(self) -> str:
        """Return the measure to optimise."""
        return self.plan.measure

    @property
    def lower_is_better(self) -> bool:
        """Return whether a lower value of the measure is better."""
        return self.measure in LOWER_IS_BETTER

    @property
    def is_complete(self) -> bool:
        """Return whether every point was measured and the best one was checked on the held-out half."""
        return self.difference is not None

    def rank_points(self) -> list[int]:
        """Return the measured points, best on the tuning half first; ties go to the smallest change of settings."""
        sign = 1 if self.lower_is_better else -1
        return sorted(
            self.scores,
            key=lambda index: (sign * round(self.scores[index].tuning, 9), self._distance_from_current(index), index),
        )

    def changed_settings(self, values: PointValues) -> dict[str, Any]:
        """Return the settings of a point that differ from those in force."""
        overrides = self.plan.grid.overrides(values)
        optional = {dimension.key for dimension in self.plan.grid.dimensions}
        return {
            key: value
            for key, value in overrides.items()
            if value != self.settings[key] and (value is not None or key in optional)
        }

    def _distance_from_current(self, index: int) -> tuple[int, float]:
        """Return how many settings a point changes, and how much."""
        changed = self.changed_settings(self.points[index])
        steps = 0.0
        for dimension in self.plan.grid.dimensions:
            value, current = changed.get(dimension.key), self.settings[dimension.key]
            if dimension.is_ordered and isinstance(value, int | float) and isinstance(current, int | float):
                steps += abs(value - current) / max(abs(float(other or 0) - current) for other in dimension.values)
        return len(changed), steps

    @property
    def verdict(self) -> str:
        """Return `better`, `worse`, `not proven`, or `same` if the settings in force are the best."""
        if self.difference is None or self.best is None or self.current is None:
            return ""
        if not self.changed_settings(self.best.values):
            return "same"
        return self.difference.verdict or "not proven"

    def influence(self, dimension: Dimension) -> float:
        """Return how much the mean score over all points varies between the values of a dimension."""
        means = [sum(scores) / len(scores) for scores in self._scores_by_value(dimension).values()]
        return max(means) - min(means) if means else 0.0

    def _scores_by_value(self, dimension: Dimension) -> dict[SettingValue, list[float]]:
        scores_by_value: dict[SettingValue, list[float]] = {}
        for index, score in self.scores.items():
            scores_by_value.setdefault(self.points[index][dimension.name], []).append(score.tuning)
        return scores_by_value


def check_measure(name: str) -> int | None:
    """Return the depth of a measure, None if it has none; raise an error if there is no such measure."""
    match = _MEASURE_AT_DEPTH.fullmatch(name)
    if match is None and name not in _PLAIN_MEASURES:
        raise SettingsError(
            f"There is no measure {name!r}",
            hint="Use ndcg@k, recall@k, mrr@k, map@k, precision@k or hit@k (k: a number),"
            f" or {', '.join(_PLAIN_MEASURES)}.",
        )
    return int(match[1]) if match else None


def point_key(values: PointValues) -> str:
    """Return a key for a point that does not depend on the order of its dimensions."""
    return json.dumps(dict(values), sort_keys=True)


def sweep_fingerprint(judged_set: JudgedSet, settings: Settings, plan: SweepPlan) -> str:
    """Return a hash of everything that scores depend on besides the values of a point."""
    digest = hashlib.sha256(judged_set.digest.encode())
    for document in judged_set.documents:
        digest.update(repr((document.id, document.title, document.text)).encode("utf-8", "surrogatepass"))
    facts = [sorted(getattr(settings, section).values().items()) for section in (*INDEX_SECTIONS, "search")]
    digest.update(repr((facts, plan.measure, plan.mode, plan.n_results, plan.judge_documents)).encode())
    return digest.hexdigest()[:16]


def split_queries(queries: Iterable[JudgedQuery]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of two halves of the queries: one to choose the best point, one to check it.

    Languages and kinds are spread evenly, and the order of the file has no effect.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        groups.setdefault((query.language, query.kind), []).append(query.id)
    halves: tuple[list[str], list[str]] = ([], [])
    for name in sorted(groups):
        for query_id in sorted(groups[name], key=_shuffle_key):
            # The smaller half is next, so that groups of odd size do not all favour the first.
            halves[len(halves[0]) > len(halves[1])].append(query_id)
    return frozenset(halves[0]), frozenset(halves[1])


def check_query_counts(tuning_count: int, held_out_count: int, measure: str) -> None:
    """Raise an error if a half has too few queries with the measure."""
    if min(tuning_count, held_out_count) < _MIN_QUERIES:
        raise SourceError(
            f"There are too few questions with {measure} to hold out half of them",
            hint="Add questions, or choose another --measure.",
        )


def _shuffle_key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
