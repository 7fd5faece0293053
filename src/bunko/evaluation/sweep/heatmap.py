"""Draw a heatmap of the two settings with the most influence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from bunko.evaluation.sweep.grid import Dimension, SettingValue, format_value
from bunko.evaluation.sweep.result import SweepResult

_WIDTH, _LEFT, _TOP = 760, 120, 34
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


def draw_heatmap(heatmap: Heatmap, measure: str) -> str:
    """Draw a heatmap as inline SVG; the best point has a solid frame, the settings in force a dashed one."""
    cell_width = (_WIDTH - _LEFT - 10) / len(heatmap.x_dimension.values)
    cell_height = min(34.0, max(18.0, cell_width * 0.6))
    height = _TOP + cell_height * len(heatmap.y_values) + 34
    parts = []
    step = -(-len(heatmap.x_dimension.values) // 20)
    show_scores = len(heatmap.x_dimension.values) <= _MAX_NUMBERED_COLUMNS
    for i, x_value in enumerate(heatmap.x_dimension.values):
        if i % step == 0:
            parts.append(_label(_LEFT + (i + 0.5) * cell_width, _TOP - 8, format_value(x_value), "middle"))
    for j, y_value in enumerate(heatmap.y_values):
        y = _TOP + j * cell_height
        row_name = format_value(y_value) if heatmap.y_dimension else measure
        parts.append(_label(_LEFT - 8, y + cell_height / 2 + 4, row_name, "end"))
        for i, x_value in enumerate(heatmap.x_dimension.values):
            box = _Box(_LEFT + i * cell_width, y, cell_width, cell_height)
            parts.extend(_draw_cell(heatmap, (x_value, y_value), box, show_score=show_scores))
    parts.append(_label((_LEFT + _WIDTH) / 2, height - 10, heatmap.x_dimension.name, "middle"))
    if heatmap.y_dimension:
        parts.append(_label(8, _TOP - 8, heatmap.y_dimension.name, "start"))
    name = f"{measure} by {heatmap.x_dimension.name}" + (
        f" and {heatmap.y_dimension.name}" if heatmap.y_dimension else ""
    )
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'


class _Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def _draw_cell(
    heatmap: Heatmap, cell: tuple[SettingValue, SettingValue], box: _Box, *, show_score: bool
) -> Iterator[str]:
    score = heatmap.cells.get(cell)
    if score is None:
        return
    tooltip = f"{heatmap.x_dimension.name} {format_value(cell[0])}"
    if heatmap.y_dimension:
        tooltip += f", {heatmap.y_dimension.name} {format_value(cell[1])}"
    # Squared, because the differences that matter are near the top.
    opacity = _MIN_OPACITY + (1 - _MIN_OPACITY) * heatmap.relative_score(score) ** 2
    rectangle = (
        f'x="{box.x + 1:.1f}" y="{box.y + 1:.1f}" width="{box.width - 2:.1f}" height="{box.height - 2:.1f}" rx="2"'
    )
    yield f'<g><title>{escape(tooltip)}: {score:.4f}</title><rect class="c0" fill-opacity="{opacity:.3f}" {rectangle}/>'
    if cell == heatmap.best:
        yield f'<rect class="range" {rectangle}/>'
    elif cell == heatmap.current:
        yield f'<rect class="range" {rectangle} stroke-dasharray="4 3"/>'
    if show_score:
        text_style = ' style="fill:var(--card)"' if opacity > 0.6 else ""
        yield (
            f'<text{text_style} x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4:.1f}"'
            f' text-anchor="middle">{format_score(score)}</text>'
        )
    yield "</g>"


def format_score(value: float) -> str:
    """Return a score from 0 to 1 with three digits and no leading zero."""
    return f"{value:.3f}".removeprefix("0")


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
