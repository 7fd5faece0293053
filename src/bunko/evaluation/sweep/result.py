"""What is swept and the scores of its points in, which is best and what the questions held back say of it out."""

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

# The settings that an index is made with.
INDEX_SECTIONS = ("chunker", "chunking", "embedding")
_PLAIN_MEASURES = ("precision", "recall", "f1", "negative_rate", "keywords", "abstention")
_MEASURE_AT_DEPTH = re.compile(r"(?:ndcg|recall|mrr|map|precision|hit)@([1-9][0-9]{0,2}|1000)")
# With fewer questions in a half, one of them decides.
_MIN_QUERIES = 2


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What is swept, and how a point is judged."""

    grid: Grid
    measure: str
    mode: Mode | None  # not given: as the settings say
    n_results: int
    judge_documents: bool  # public sets judge documents; in the first form as many chunks come back as are judged
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class PointScore:
    """How good one point is."""

    tuning: float
    held_out: float
    measures: Mapping[str, float]  # over all questions, as `evaluate` gives them


@dataclass(frozen=True, slots=True)
class PointResult:
    """A point that was asked in the ordinary way, on the questions held back."""

    values: PointValues
    run: Run
    tuning: float
    held_out: float
    low: float
    high: float


@dataclass
class SweepResult:
    """What a sweep has found so far."""

    judged_set: JudgedSet
    plan: SweepPlan
    fingerprint: str
    settings: dict[str, Any]  # those in force
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
        """Return the measure that was optimised."""
        return self.plan.measure

    @property
    def lower_is_better(self) -> bool:
        """Say whether the measure counts what should not happen."""
        return self.measure in LOWER_IS_BETTER

    @property
    def is_complete(self) -> bool:
        """Say whether every point was measured and the best one proved or not."""
        return self.difference is not None

    def rank_points(self) -> list[int]:
        """Return the points that were measured, the best on the tuning half first; of equal ones, those nearest to
        the settings in force.
        """
        sign = 1 if self.lower_is_better else -1
        return sorted(
            self.scores, key=lambda at: (sign * round(self.scores[at].tuning, 9), self._distance_from_current(at), at)
        )

    def changed_settings(self, values: PointValues) -> dict[str, Any]:
        """Return the settings of a point that are not those in force."""
        flags = self.plan.grid.overrides(values)
        optional = {one.key for one in self.plan.grid.dimensions}
        return {
            key: value
            for key, value in flags.items()
            if value != self.settings[key] and (value is not None or key in optional)
        }

    def _distance_from_current(self, at: int) -> tuple[int, float]:
        """Return how many settings a point changes, and how much."""
        changed = self.changed_settings(self.points[at])
        steps = 0.0
        for one in self.plan.grid.dimensions:
            value, now = changed.get(one.key), self.settings[one.key]
            if one.is_ordered and isinstance(value, int | float) and isinstance(now, int | float):
                steps += abs(value - now) / max(abs(float(each or 0) - now) for each in one.values)
        return len(changed), steps

    @property
    def verdict(self) -> str:
        """Return `better`, `worse`, `not proven`, or `same` where the settings in force won."""
        if self.difference is None or self.best is None or self.current is None:
            return ""
        if not self.changed_settings(self.best.values):
            return "same"
        return self.difference.verdict or "not proven"

    def influence(self, dimension: Dimension) -> float:
        """Return how much the mean over all points changes from one value of a dimension to another."""
        means = [sum(of) / len(of) for of in self._scores_by_value(dimension).values()]
        return max(means) - min(means) if means else 0.0

    def _scores_by_value(self, dimension: Dimension) -> dict[SettingValue, list[float]]:
        found: dict[SettingValue, list[float]] = {}
        for at, score in self.scores.items():
            found.setdefault(self.points[at][dimension.name], []).append(score.tuning)
        return found


def check_measure(name: str) -> int | None:
    """Return the depth a measure has, None where it has none, or refuse a name that is no measure."""
    deep = _MEASURE_AT_DEPTH.fullmatch(name)
    if deep is None and name not in _PLAIN_MEASURES:
        raise SettingsError(
            f"There is no measure {name!r}",
            hint=f"Use ndcg@k, recall@k, mrr@k, map@k, precision@k or hit@k (k: a number), or {', '.join(_PLAIN_MEASURES)}.",  # noqa: E501
        )
    return int(deep[1]) if deep else None


def point_key(values: PointValues) -> str:
    """Return a name for a point, whatever the order of its dimensions."""
    return json.dumps(dict(values), sort_keys=True)


def sweep_fingerprint(judged_set: JudgedSet, settings: Settings, plan: SweepPlan) -> str:
    """Return a name for all that scores depend on beside a point's own values."""
    made = hashlib.sha256(judged_set.digest.encode())
    for document in judged_set.documents:
        made.update(repr((document.id, document.title, document.text)).encode("utf-8", "surrogatepass"))
    facts = [sorted(vars(getattr(settings, section)).items()) for section in (*INDEX_SECTIONS, "search")]
    made.update(repr((facts, plan.measure, plan.mode, plan.n_results, plan.judge_documents)).encode())
    return made.hexdigest()[:16]


def split_queries(queries: Iterable[JudgedQuery]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ids of two halves of the questions: one to choose a point with, one that has never seen it.

    Languages and kinds are spread evenly, and the order of a file means nothing.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for query in queries:
        groups.setdefault((query.language, query.kind), []).append(query.id)
    sides: tuple[list[str], list[str]] = ([], [])
    for name in sorted(groups):
        for one in sorted(groups[name], key=_shuffle_key):
            # The smaller side is next, so that groups of odd size do not all favour the first.
            sides[len(sides[0]) > len(sides[1])].append(one)
    return frozenset(sides[0]), frozenset(sides[1])


def check_query_counts(tuning_count: int, held_out_count: int, measure: str) -> None:
    """Refuse to choose by too few questions."""
    if min(tuning_count, held_out_count) < _MIN_QUERIES:
        raise SourceError(
            f"There are too few questions with {measure} to hold half of them back",
            hint="Add questions, or choose another --measure.",
        )


def _shuffle_key(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
