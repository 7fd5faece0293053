"""Lay out the charts of reports; `templates/charts.html` draws them as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

WIDTH = 760
# How many bar colours are distinguishable; the style sheet defines one class for each.
_COLOUR_COUNT = 6
_LEFT, _TOP = 96, 8


class Label(NamedTuple):
    """A text and where it begins, ends or has its middle."""

    x: float
    y: float
    text: str
    anchor: str = "middle"


class Line(NamedTuple):
    """A straight line."""

    kind: str
    x1: float
    x2: float
    y1: float
    y2: float


class Bar(NamedTuple):
    """A rectangle with what it says when pointed at."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    tooltip: str
    interval: tuple[float, float] | None = None  # from where to where its thin line goes
    opacity: float | None = None
    frame: str = ""  # solid or dashed
    text: str = ""  # in its middle


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of bars, lines and labels."""

    name: str
    height: float
    bars: Sequence[Bar]
    labels: Sequence[Label]
    lines: Sequence[Line] = ()
    rounding: int = 0  # of the corners of bars
    width: int = WIDTH


def colour(number: int) -> str:
    """Return the colour of the bars of a mode."""
    return f"c{number % _COLOUR_COUNT}"


def bar_chart(rows: Sequence[str], columns: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> Chart:
    """Return a group of bars for each row: value and interval of each column, on a scale from 0 to 1."""
    height, gap = 14, 12
    group = height * len(columns) + gap
    bottom = len(rows) * group + _TOP
    ticks = [tenth / 10 for tenth in range(0, 11, 2)]
    lines = [Line("grid", _x_of_score(tick), _x_of_score(tick), _TOP - 4, bottom - 8) for tick in ticks]
    labels = [Label(_x_of_score(tick), bottom + 10, f"{tick:.1f}") for tick in ticks]
    labels += [Label(_LEFT - 8, _TOP + i * group + (group - gap) / 2 + 4, row, "end") for i, row in enumerate(rows)]
    bars = []
    for i, row in enumerate(rows):
        for j, (name, cells) in enumerate(columns.items()):
            if row not in cells:
                continue
            value, low, high = cells[row]
            width = max(1.0, _x_of_score(value) - _LEFT)
            tooltip = f"{name}: {value:.4f}, 95 % [{low:.3f}, {high:.3f}]"
            interval = (_x_of_score(low), _x_of_score(high))
            bars.append(Bar(colour(j), _LEFT, _TOP + i * group + j * height, width, height - 3, tooltip, interval))
    return Chart("Scores by mode", bottom + 22, bars, labels, lines, rounding=2)


def change_chart(values: Sequence[float]) -> Chart | None:
    """Return the change of each query's score, from the greatest win to the greatest loss; None without any."""
    height, half = 150, 66
    ordered = sorted((value for value in values if abs(value) > 1e-9), reverse=True)
    if not ordered:
        return None
    largest = max(abs(value) for value in ordered)
    # A screen has no room for a thousand bars: of each group of neighbours one is drawn.
    bar_values = ordered[:: -(-len(ordered) // 380)]
    step = min(18.0, (WIDTH - 20) / len(bar_values))
    bars = []
    for i, value in enumerate(bar_values):
        bar_height = max(1.0, abs(value) / largest * half)
        kind, y = ("win", height / 2 - bar_height) if value > 0 else ("loss", height / 2)
        bars.append(Bar(kind, 10 + i * step, y, max(0.6, step - 1), bar_height, f"{value:+.3f}"))
    labels = [Label(WIDTH - 10, 14, f"±{largest:.2f}", "end")]
    return Chart("Wins and losses", height, bars, labels, [Line("axis", 10, WIDTH - 10, height / 2, height / 2)])


def score_histogram(right_scores: Sequence[float], wrong_scores: Sequence[float]) -> Chart | None:
    """Return the scores of relevant and other results, each as shares of its own total; None without any."""
    scores = [*right_scores, *wrong_scores]
    if not scores:
        return None
    low, high = min(scores), max(scores)
    edges = np.linspace(low, high if high > low else low + 1, 33)
    height, base = 150, 128
    groups = [("win soft", right_scores), ("loss soft", wrong_scores)]
    shares = [np.histogram(scores, edges)[0] / max(1, len(scores)) for _, scores in groups]
    largest = max(float(share.max()) for share in shares) or 1.0
    step = (WIDTH - 20) / 32
    bars = []
    for (kind, _), group_shares in zip(groups, shares, strict=True):
        for i, share in enumerate(group_shares):
            if share:
                bar_height = float(share) / largest * (base - 10)
                tooltip = f"{share:.1%} from {edges[i]:.3f} to {edges[i + 1]:.3f}"
                bars.append(Bar(kind, 10 + i * step, base - bar_height, step - 1, bar_height, tooltip))
    labels = [Label(10, height - 6, f"{low:.3f}", "start"), Label(WIDTH - 10, height - 6, f"{high:.3f}", "end")]
    name = "Scores of right and wrong results"
    return Chart(name, height, bars, labels, [Line("axis", 10, WIDTH - 10, base, base)])


def _x_of_score(value: float) -> float:
    return _LEFT + min(1.0, max(0.0, value)) * (WIDTH - _LEFT - 20)
