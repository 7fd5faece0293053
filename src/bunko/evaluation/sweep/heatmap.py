"""A sweep in, its map out: how good the two settings that matter most are together, as numbers and as inline SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from bunko.evaluation.sweep.grid import Dimension, Value, written
from bunko.evaluation.sweep.result import Sweep

_WIDTH, _LEFT, _TOP = 760, 120, 34
_MOST_WITH_NUMBERS = 14
_FAINT = 0.06


@dataclass(frozen=True, slots=True)
class Heat:
    """What the best of all points with two values is, for each pair of values; one line if there is one dimension."""

    across: Dimension
    down: Dimension | None
    cells: dict[tuple[Value, Value], float]
    best: tuple[Value, Value]
    now: tuple[Value, Value]

    def share(self, value: float) -> float:
        """Return where a value lies between the worst cell and the best, from 0 to 1."""
        low, high = min(self.cells.values()), max(self.cells.values())
        return (value - low) / (high - low) if high > low else 1.0

    @property
    def lines(self) -> tuple[Value, ...]:
        """Return the values of the dimension that goes down."""
        return self.down.values if self.down else (None,)


def heat(done: Sweep) -> Heat | None:
    """Return the map of a sweep, None where nothing changes or nothing was measured."""
    moving = [one for one in done.plan.grid.dimensions if len(one.values) > 1]
    if not moving or not done.scores:
        return None
    chosen = sorted(moving, key=done.influence, reverse=True)[:2]
    across = max(chosen, key=lambda one: len(one.values))
    down = next((one for one in chosen if one is not across), None)
    better = min if done.lower_is_better else max
    cells: dict[tuple[Value, Value], float] = {}

    def place(values: dict[str, Value]) -> tuple[Value, Value]:
        return values[across.name], values[down.name] if down else None

    for at, score in done.scores.items():
        where = place(done.points[at])
        cells[where] = better(cells.get(where, score.tuning), score.tuning)
    in_force = (done.settings[across.key], done.settings[down.key] if down else None)
    return Heat(across, down, cells, place(done.points[done.ranked()[0]]), in_force)


def drawn(one: Heat, measure: str) -> str:
    """Draw a map; the best point has a frame, the settings in force a broken one."""
    wide = (_WIDTH - _LEFT - 10) / len(one.across.values)
    high = min(34.0, max(18.0, wide * 0.6))
    height = _TOP + high * len(one.lines) + 34
    parts = []
    step = -(-len(one.across.values) // 20)
    numbers = len(one.across.values) <= _MOST_WITH_NUMBERS
    for i, value in enumerate(one.across.values):
        if i % step == 0:
            parts.append(_label(_LEFT + (i + 0.5) * wide, _TOP - 8, written(value), "middle"))
    for j, line in enumerate(one.lines):
        y = _TOP + j * high
        parts.append(_label(_LEFT - 8, y + high / 2 + 4, written(line) if one.down else measure, "end"))
        for i, value in enumerate(one.across.values):
            found = one.cells.get((value, line))
            if found is None:
                continue
            x = _LEFT + i * wide
            told = f"{one.across.name} {written(value)}"
            if one.down:
                told += f", {one.down.name} {written(line)}"
            strength = _FAINT + (1 - _FAINT) * one.share(found) ** 2  # what matters is near the top
            frame = "best" if (value, line) == one.best else "now" if (value, line) == one.now else ""
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
                    f' text-anchor="middle">{short(found)}</text>'
                )
            parts.append("</g>")
    parts.append(_label((_LEFT + _WIDTH) / 2, height - 10, one.across.name, "middle"))
    if one.down:
        parts.append(_label(8, _TOP - 8, one.down.name, "start"))
    name = f"{measure} by {one.across.name}" + (f" and {one.down.name}" if one.down else "")
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">{"".join(parts)}</svg>'


def short(value: float) -> str:
    """Write a share in four characters."""
    return f"{value:.3f}".removeprefix("0")


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
