"""Lay out a heatmap of the two settings with the most influence."""

from __future__ import annotations

from dataclasses import dataclass

from bunko.evaluation.plots import WIDTH, Bar, Chart, Label
from bunko.evaluation.sweep.grid import Dimension, SettingValue, format_value
from bunko.evaluation.sweep.result import SweepResult

_LEFT, _TOP = 120, 34
_MAX_NUMBERED_COLUMNS = 14
_MIN_OPACITY = 0.06


@dataclass(frozen=True, slots=True)
class Heatmap:
    """The best score of all points for each pair of values; one line if only one setting varies."""

    x_dimension: Dimension
    y_dimension: Dimension | None
    cells: dict[tuple[SettingValue, SettingValue], float]
    best: tuple[SettingValue, SettingValue]
    current: tuple[SettingValue, SettingValue]

    def relative_score(self, value: float) -> float:
        """Return the position of a value between the lowest cell (0) and the highest (1)."""
        low, high = min(self.cells.values()), max(self.cells.values())
        return (value - low) / (high - low) if high > low else 1.0

    @property
    def y_values(self) -> tuple[SettingValue, ...]:
        """Return the values of the vertical axis; (None,) if there is none."""
        return self.y_dimension.values if self.y_dimension else (None,)


def build_heatmap(result: SweepResult) -> Heatmap | None:
    """Return the heatmap of a sweep, None if nothing varies or nothing was measured."""
    varied = [dimension for dimension in result.plan.grid.dimensions if len(dimension.values) > 1]
    if not varied or not result.scores:
        return None
    axes = sorted(varied, key=result.influence, reverse=True)[:2]
    x_dimension = max(axes, key=lambda dimension: len(dimension.values))
    y_dimension = next((dimension for dimension in axes if dimension is not x_dimension), None)
    better = min if result.lower_is_better else max
    cells: dict[tuple[SettingValue, SettingValue], float] = {}

    def cell_of(values: dict[str, SettingValue]) -> tuple[SettingValue, SettingValue]:
        return values[x_dimension.name], values[y_dimension.name] if y_dimension else None

    for index, score in result.scores.items():
        cell = cell_of(result.points[index])
        cells[cell] = better(cells.get(cell, score.tuning), score.tuning)
    current = (result.settings[x_dimension.key], result.settings[y_dimension.key] if y_dimension else None)
    return Heatmap(x_dimension, y_dimension, cells, cell_of(result.points[result.rank_points()[0]]), current)


def heatmap_chart(heatmap: Heatmap, measure: str) -> Chart:
    """Return a heatmap as a chart; the best point has a solid frame, the settings in force a dashed one."""
    x_dimension, y_dimension = heatmap.x_dimension, heatmap.y_dimension
    cell_width = (WIDTH - _LEFT - 10) / len(x_dimension.values)
    cell_height = min(34.0, max(18.0, cell_width * 0.6))
    height = _TOP + cell_height * len(heatmap.y_values) + 34
    labels = [
        Label(_LEFT + (i + 0.5) * cell_width, _TOP - 8, format_value(x_value))
        for i, x_value in enumerate(x_dimension.values)
        if i % -(-len(x_dimension.values) // 20) == 0
    ]
    bars = []
    for j, y_value in enumerate(heatmap.y_values):
        y = _TOP + j * cell_height
        row_name = format_value(y_value) if y_dimension else measure
        labels.append(Label(_LEFT - 8, y + cell_height / 2 + 4, row_name, "end"))
        for i, x_value in enumerate(x_dimension.values):
            cell = (x_value, y_value)
            score = heatmap.cells.get(cell)
            if score is None:
                continue
            place = f"{x_dimension.name} {format_value(x_value)}"
            place += f", {y_dimension.name} {format_value(y_value)}" if y_dimension else ""
            bars.append(
                Bar(
                    "c0", _LEFT + i * cell_width + 1, y + 1, cell_width - 2, cell_height - 2, f"{place}: {score:.4f}",
                    # Squared, because the differences that matter are near the top.
                    opacity=_MIN_OPACITY + (1 - _MIN_OPACITY) * heatmap.relative_score(score) ** 2,
                    frame="solid" if cell == heatmap.best else "dashed" if cell == heatmap.current else "",
                    text=format_score(score) if len(x_dimension.values) <= _MAX_NUMBERED_COLUMNS else "",
                )
            )  # fmt: skip
    labels.append(Label((_LEFT + WIDTH) / 2, height - 10, x_dimension.name))
    labels += [Label(8, _TOP - 8, y_dimension.name, "start")] if y_dimension else []
    name = f"{measure} by {x_dimension.name}" + (f" and {y_dimension.name}" if y_dimension else "")
    return Chart(name, height, bars, labels, rounding=2)


def format_score(value: float) -> str:
    """Return a score from 0 to 1 with three digits and no leading zero."""
    return f"{value:.3f}".removeprefix("0")
