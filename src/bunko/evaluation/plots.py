"""Draw the charts of `report.html` as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

# How many bar colours are distinguishable; the style sheet defines one class for each.
_COLOUR_COUNT = 6
_WIDTH, _LEFT, _TOP = 760, 96, 8


def draw_bars(rows: Sequence[str], columns: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> str:
    """Draw a group of bars for each row: value and interval of each column, on a scale from 0 to 1."""
    height, gap = 14, 12
    group = height * len(columns) + gap
    parts = [_grid_lines(len(rows) * group)]
    for i, row in enumerate(rows):
        top = _TOP + i * group
        parts.append(_label(_LEFT - 8, top + (group - gap) / 2 + 4, row, "end"))
        for j, (name, cells) in enumerate(columns.items()):
            if row not in cells:
                continue
            value, low, high = cells[row]
            y = top + j * height
            tooltip = f"{name}: {value:.4f}, 95 % [{low:.3f}, {high:.3f}]"
            middle, low_x, high_x = y + (height - 3) / 2, _x_of_score(low), _x_of_score(high)
            parts.append(
                f'<g><title>{escape(tooltip)}</title><rect class="c{j % _COLOUR_COUNT}" x="{_LEFT}" y="{y}"'
                f' width="{max(1.0, _x_of_score(value) - _LEFT):.1f}" height="{height - 3}" rx="2"/>'
                f'<path class="range" d="M{low_x:.1f} {middle}H{high_x:.1f}M{low_x:.1f} {middle - 3}v6'
                f'M{high_x:.1f} {middle - 3}v6"/></g>'
            )
    return _svg(len(rows) * group + _TOP + 22, "".join(parts), "Scores by mode")


def draw_changes(values: Sequence[float]) -> str:
    """Draw the change of each query's score, from the greatest win to the greatest loss."""
    height, half = 150, 66
    ordered = sorted((value for value in values if abs(value) > 1e-9), reverse=True)
    if not ordered:
        return "<p>No question is answered differently.</p>"
    largest = max(abs(value) for value in ordered)
    # A screen has no room for a thousand bars: of each group of neighbours one is drawn.
    step = -(-len(ordered) // 380)
    bar_values = [ordered[index] for index in range(0, len(ordered), step)]
    bar_width = min(18.0, (_WIDTH - 20) / len(bar_values))
    parts = [f'<line class="axis" x1="10" x2="{_WIDTH - 10}" y1="{height / 2}" y2="{height / 2}"/>']
    for i, value in enumerate(bar_values):
        bar_height = max(1.0, abs(value) / largest * half)
        y = height / 2 - bar_height if value > 0 else height / 2
        kind = "win" if value > 0 else "loss"
        parts.append(
            f'<rect class="{kind}" x="{10 + i * bar_width:.1f}" y="{y:.1f}" width="{max(0.6, bar_width - 1):.1f}"'
            f' height="{bar_height:.1f}"><title>{value:+.3f}</title></rect>'
        )
    parts.append(_label(_WIDTH - 10, 14, f"±{largest:.2f}", "end"))
    return _svg(height, "".join(parts), "Wins and losses")


def draw_score_histogram(right_scores: Sequence[float], wrong_scores: Sequence[float]) -> str:
    """Draw the score distributions of relevant and other results, each as shares of its own total."""
    scores = [*right_scores, *wrong_scores]
    if not scores:
        return "<p>Nothing was found.</p>"
    low, high = min(scores), max(scores)
    edges = np.linspace(low, high if high > low else low + 1, 33)
    height, base = 150, 128
    groups = [("win", right_scores), ("loss", wrong_scores)]
    shares = [np.histogram(scores, edges)[0] / max(1, len(scores)) for _, scores in groups]
    largest = max(float(share.max()) for share in shares) or 1.0
    bar_width = (_WIDTH - 20) / 32
    parts = [f'<line class="axis" x1="10" x2="{_WIDTH - 10}" y1="{base}" y2="{base}"/>']
    for (kind, _), group_shares in zip(groups, shares, strict=True):
        for i, share in enumerate(group_shares):
            if share:
                bar_height = float(share) / largest * (base - 10)
                tooltip = f"{share:.1%} from {edges[i]:.3f} to {edges[i + 1]:.3f}"
                parts.append(
                    f'<rect class="{kind} soft" x="{10 + i * bar_width:.1f}" y="{base - bar_height:.1f}"'
                    f' width="{bar_width - 1:.1f}" height="{bar_height:.1f}"><title>{tooltip}</title></rect>'
                )
    parts.append(_label(10, height - 6, f"{low:.3f}", "start") + _label(_WIDTH - 10, height - 6, f"{high:.3f}", "end"))
    return _svg(height, "".join(parts), "Scores of right and wrong results")


def draw_legend(names: Sequence[str]) -> str:
    """Return a legend of the bar colours."""
    items = (f'<span><i class="c{i % _COLOUR_COUNT}"></i>{escape(name)}</span>' for i, name in enumerate(names))
    return f'<p class="legend">{"".join(items)}</p>'


def _grid_lines(height: float) -> str:
    lines = []
    for tenth in range(0, 11, 2):
        x = _x_of_score(tenth / 10)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{height + _TOP - 8}"/>')
        lines.append(_label(x, height + _TOP + 10, f"{tenth / 10:.1f}", "middle"))
    return "".join(lines)


def _x_of_score(value: float) -> float:
    return _LEFT + min(1.0, max(0.0, value)) * (_WIDTH - _LEFT - 20)


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, content: str, name: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">{content}</svg>'
