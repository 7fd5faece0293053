"""A sweep in, its map out: how good the two settings that matter most are together, as numbers and as inline SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from bunko.evaluation.sweep.grid import Dimension, SettingValue, format_value
from bunko.evaluation.sweep.result import SweepResult

_WIDTH, _LEFT, _TOP = 760, 120, 34
_MAX_NUMBERED_COLUMNS = 14
_MIN_OPACITY = 0.06


@dataclass(frozen=True, slots=True)
class Heatmap:
    """What the best of all points with two values is, for each pair of values; one line if there is one dimension."""

    x_dimension: Dimension
    y_dimension: Dimension | None
    cells: dict[tuple[SettingValue, SettingValue], float]
    best: tuple[SettingValue, SettingValue]
    current: tuple[SettingValue, SettingValue]

    def relative_score(self, value: float) -> float:
        """Return where a value lies between the worst cell and the best, from 0 to 1."""
        low, high = min(self.cells.values()), max(self.cells.values())
        return (value - low) / (high - low) if high > low else 1.0

    @property
    def y_values(self) -> tuple[SettingValue, ...]:
        """Return the values of the dimension that goes down."""
        return self.y_dimension.values if self.y_dimension else (None,)


def build_heatmap(result: SweepResult) -> Heatmap | None:
    """Return the map of a sweep, None where nothing changes or nothing was measured."""
    moving = [one for one in result.plan.grid.dimensions if len(one.values) > 1]
    if not moving or not result.scores:
        return None
    chosen = sorted(moving, key=result.influence, reverse=True)[:2]
    across = max(chosen, key=lambda one: len(one.values))
    down = next((one for one in chosen if one is not across), None)
    better = min if result.lower_is_better else max
    cells: dict[tuple[SettingValue, SettingValue], float] = {}

    def place(values: dict[str, SettingValue]) -> tuple[SettingValue, SettingValue]:
        return values[across.name], values[down.name] if down else None

    for at, score in result.scores.items():
        where = place(result.points[at])
        cells[where] = better(cells.get(where, score.tuning), score.tuning)
    in_force = (result.settings[across.key], result.settings[down.key] if down else None)
    return Heatmap(across, down, cells, place(result.points[result.rank_points()[0]]), in_force)


def draw_heatmap(heatmap: Heatmap, measure: str) -> str:
    """Draw a map; the best point has a frame, the settings in force a broken one."""
    wide = (_WIDTH - _LEFT - 10) / len(heatmap.x_dimension.values)
    high = min(34.0, max(18.0, wide * 0.6))
    height = _TOP + high * len(heatmap.y_values) + 34
    parts = []
    step = -(-len(heatmap.x_dimension.values) // 20)
    numbers = len(heatmap.x_dimension.values) <= _MAX_NUMBERED_COLUMNS
    for i, value in enumerate(heatmap.x_dimension.values):
        if i % step == 0:
            parts.append(_label(_LEFT + (i + 0.5) * wide, _TOP - 8, format_value(value), "middle"))
    for j, line in enumerate(heatmap.y_values):
        y = _TOP + j * high
        parts.append(_label(_LEFT - 8, y + high / 2 + 4, format_value(line) if heatmap.y_dimension else measure, "end"))
        for i, value in enumerate(heatmap.x_dimension.values):
            found = heatmap.cells.get((value, line))
            if found is None:
                continue
            x = _LEFT + i * wide
            told = f"{heatmap.x_dimension.name} {format_value(value)}"
            if heatmap.y_dimension:
                told += f", {heatmap.y_dimension.name} {format_value(line)}"
            strength = (
                _MIN_OPACITY + (1 - _MIN_OPACITY) * heatmap.relative_score(found) ** 2
            )  # what matters is near the top
            frame = "best" if (value, line) == heatmap.best else "now" if (value, line) == heatmap.current else ""
            parts.append(
                f'<g><title>{escape(told)}: {found:.4f}</title><rect class="c0" fill-opacity="{strength:.3f}"'
                f' x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}" height="{high - 2:.1f}" rx="2"/>'
            )
            if frame:
                dashes = ' stroke-dasharray="4 3"' if frame == "now" else ""
                parts.append(
                    f'<rect class="range" x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:.1f}"'
                    f' height="{high - 2:.1f}" rx="2"{dashes}/>'
                )
            if numbers:
                strong = ' style="fill:var(--card)"' if strength > 0.6 else ""
                parts.append(
                    f'<text{strong} x="{x + wide / 2:.1f}" y="{y + high / 2 + 4:.1f}"'
                    f' text-anchor="middle">{format_score(found)}</text>'
                )
            parts.append("</g>")
    parts.append(_label((_LEFT + _WIDTH) / 2, height - 10, heatmap.x_dimension.name, "middle"))
    if heatmap.y_dimension:
        parts.append(_label(8, _TOP - 8, heatmap.y_dimension.name, "start"))
    name = f"{measure} by {heatmap.x_dimension.name}" + (
        f" and {heatmap.y_dimension.name}" if heatmap.y_dimension else ""
    )
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'


def format_score(value: float) -> str:
    """Write a share in four characters."""
    return f"{value:.3f}".removeprefix("0")


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
