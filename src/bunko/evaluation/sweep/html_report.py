"""Format a sweep as `sweep.html`, one file without scripts or network access."""

from __future__ import annotations

from bunko.evaluation.html_report import render_report
from bunko.evaluation.sweep import heatmap
from bunko.evaluation.sweep.report import (
    INFLUENCE_HEADERS,
    POINT_HEADERS,
    TOP_POINTS,
    best_points,
    conclusion,
    influence_rows,
    point_rows,
)
from bunko.evaluation.sweep.result import SweepResult


def as_html(result: SweepResult) -> str:
    """Return the report page, with a heatmap, the influence of each setting, and the best points."""
    heat = heatmap.build_heatmap(result)
    return render_report(
        "sweep.html",
        sweep=result,
        conclusion=conclusion(result),
        point_table=(POINT_HEADERS, point_rows(result)),
        heatmap=heatmap.heatmap_chart(heat, result.measure) if heat else None,
        influence_table=(INFLUENCE_HEADERS, influence_rows(result)),
        best_table=best_points(result, TOP_POINTS),
        top_points=TOP_POINTS,
    )
