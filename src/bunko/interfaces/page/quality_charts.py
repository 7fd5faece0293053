"""Turn the reports of evaluations and sweeps into what the page draws; a part that is not as expected is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bunko.interfaces.text import single_line

_MAX_MEASURES, _MAX_QUERIES, _MAX_VALUES = 30, 20, 60
COLOURS = 4
# Of the pictures of sweeps, in the units of their viewBox.
_WIDTH, _HEIGHT = 320, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 26


@dataclass(frozen=True, slots=True)
class Score:
    """A mean with its interval, from 0 to 1."""

    measure: str
    mode: str
    colour: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The best scores by the values of one setting, on both halves of the questions."""

    name: str
    width: int
    height: int
    lines: list[list[tuple[float, float, str]]]  # x, y and what it says
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    now_x: float | None  # where the current setting is

    @property
    def left(self) -> int:
        """Where the curve begins."""
        return _LEFT

    @property
    def base(self) -> int:
        """Where its lower axis is."""
        return _HEIGHT - _BOTTOM


def scores(report: Mapping[str, Any]) -> list[Score]:
    """Return the measures of an evaluation, each by its modes."""
    modes = [(str(name), run) for name, run in _mapping(report.get("modes")).items() if isinstance(run, dict)]
    names = dict.fromkeys(str(name) for _, run in modes for name in _mapping(run.get("measures")))
    rows = []
    for measure in list(names)[:_MAX_MEASURES]:
        for index, (mode, run) in enumerate(modes):
            value = _number(_mapping(run.get("measures")).get(measure))
            if value is None:
                continue
            interval = _mapping(run.get("intervals")).get(measure)
            low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
            rows.append(Score(measure, single_line(mode), index % COLOURS, value, _number(low), _number(high)))
    return rows


def comparisons(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how modes differ, by measure."""
    tables = []
    for comparison in _list(report.get("comparisons")):
        rows = [
            {
                "measure": str(name),
                "difference": difference,
                "low": _number(interval[0]),
                "high": _number(interval[1]),
                "wins": row.get("wins"),
                "losses": row.get("losses"),
            }
            for name, row in _mapping(_mapping(comparison).get("measures")).items()
            if isinstance(row, dict)
            and (difference := _number(row.get("difference"))) is not None
            and isinstance(interval := row.get("interval"), list)
            and len(interval) == 2
        ]
        if rows:
            first, second = (single_line(str(comparison.get(name, ""))) for name in ("first", "second"))
            tables.append({"first": first, "second": second, "rows": rows})
    return tables


def worst_queries(report: Mapping[str, Any], measure: str) -> list[tuple[str, float]]:
    """Return the questions with the lowest scores in the main mode."""
    run = _mapping(_mapping(report.get("modes")).get(str(report.get("mode"))))
    rows = [
        (single_line(str(row.get("query", ""))), score)
        for row in _list(run.get("queries"))
        if isinstance(row, dict) and (score := _number(_mapping(row.get("measures")).get(measure))) is not None
    ]
    return sorted(rows, key=lambda row: row[1])[:_MAX_QUERIES]


def curves(sweep: Mapping[str, Any]) -> list[Curve]:
    """Return a curve for each setting of a sweep that has several values."""
    points = [point for point in _list(sweep.get("points")) if isinstance(point, dict)]
    now = _mapping(_mapping(sweep.get("now")).get("settings"))
    charts = []
    for dimension in _list(sweep.get("grid")):
        if not isinstance(dimension, dict) or not isinstance(dimension.get("values"), list):
            continue
        name = str(dimension.get("name", ""))
        best = [(value, *_best_scores(points, name, value)) for value in dimension["values"][:_MAX_VALUES]]
        rows = [(value, tuning, held_out) for value, tuning, held_out in best if tuning is not None]
        if len(rows) > 1:
            charts.append(_curve(name, rows, now.get(name)))
    return charts


def _best_scores(points: list[Any], name: str, value: Any) -> tuple[float | None, float | None]:
    """Return the scores of the point that is best on the half for choosing, among those with a value."""
    scored = [
        (tuning, _number(point.get("held_out")))
        for point in points
        if _mapping(point.get("settings")).get(name) == value and (tuning := _number(point.get("tuning"))) is not None
    ]
    return max(scored, key=lambda score: score[0]) if scored else (None, None)


def _curve(name: str, rows: list[tuple[Any, float, float | None]], now: Any) -> Curve:
    numbers = [_number(value) for value, _, _ in rows]
    is_numeric = all(number is not None for number in numbers) and numbers == sorted(numbers, key=lambda n: n or 0.0)
    places = [number or 0.0 for number in numbers] if is_numeric else [float(index) for index in range(len(rows))]
    all_scores = [score for _, tuning, held_out in rows for score in (tuning, held_out) if score is not None]
    low, high = min(all_scores), max(all_scores)
    margin = max((high - low) * 0.1, 0.005)
    low, high = low - margin, high + margin

    def x_of(place: float) -> float:
        span = places[-1] - places[0] or 1.0
        return round(_LEFT + (place - places[0]) / span * (_WIDTH - _LEFT - _RIGHT), 1)

    def y_of(score: float) -> float:
        return round(_TOP + (high - score) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    lines: list[list[tuple[float, float, str]]] = [[], []]
    for place, (value, *both) in zip(places, rows, strict=True):
        for line, score in zip(lines, both, strict=True):
            if score is not None:
                line.append((x_of(place), y_of(score), f"{_text(value)}: {score:.4f}"))
    labelled = _spread(range(len(rows)), 6)
    current = _number(now) if is_numeric else None
    is_inside = current is not None and places[0] <= current <= places[-1]
    return Curve(
        single_line(name), _WIDTH, _HEIGHT, lines,
        [Tick(x_of(places[index]), _text(rows[index][0])) for index in labelled],
        [Tick(y_of(score), f"{score:.3f}") for score in (low + margin, (low + high) / 2, high - margin)],
        x_of(current) if is_inside and current is not None else None,
    )  # fmt: skip


def _spread(indexes: range, count: int) -> list[int]:
    """Return at most `count` of some indexes, spread evenly, the first and the last among them."""
    if len(indexes) <= count:
        return list(indexes)
    step = (len(indexes) - 1) / (count - 1)
    return [round(number * step) for number in range(count)]


def facts(values: Any) -> Iterator[tuple[str, str]]:
    """Return names and values as texts."""
    for name, value in _mapping(values).items():
        if value is not None:
            yield single_line(str(name)), _text(value)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else single_line(str(value))[:80]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
