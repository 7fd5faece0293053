"""Format a sweep as `sweep.html`, one file without scripts or network access."""

from __future__ import annotations

from collections.abc import Iterator

from bunko import __version__
from bunko.evaluation import html_report
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
from bunko.timing import now


def as_html(result: SweepResult) -> str:
    """Return the report page, with a heatmap, the influence of each setting, and the best points."""
    return html_report.html_page(f"{result.judged_set.name} · bunko sweep", _body(result))


def _body(result: SweepResult) -> Iterator[str]:
    escape_text, measure = html_report.escape_text, html_report.escape_text(result.measure)
    yield f"<h1>{escape_text(result.judged_set.name)}</h1>"
    yield (
        f'<p class="soft-text">{len(result.scores):,} of {len(result.points):,} points.'
        f" {len(result.tuning_ids):,} questions for tuning, {len(result.held_out_ids):,} held out. {now()}</p>"
    )
    if result.best is not None and result.current is not None and result.difference is not None:
        cells = (
            (f"{result.best.held_out:.3f}", f"{measure}, best, held-out half"),
            (f"{result.current.held_out:.3f}", f"{measure}, in force, held-out half"),
            (f"{result.difference.difference:+.3f}", "difference"),
        )
        boxes = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for value, name in cells)
        yield f'<div class="numbers">{boxes}</div>'
    bad = "" if result.verdict in ("better", "same") else " bad"
    table = html_report.html_table(POINT_HEADERS, point_rows(result))
    yield f'<section class="verdict{bad}"><p>{escape_text(conclusion(result))}</p>{table}</section>'
    if result.toml:
        yield f"<h2>Settings of the best point</h2><section><pre>{escape_text(result.toml)}</pre></section>"
    heat = heatmap.build_heatmap(result)
    if heat is not None:
        names = heat.x_dimension.name + (f" and {heat.y_dimension.name}" if heat.y_dimension else "")
        yield f"<h2>{measure} by {escape_text(names)}</h2><section>{heatmap.draw_heatmap(heat, result.measure)}"
        note = " Each cell uses the best values of the other settings." if len(result.plan.grid.dimensions) > 2 else ""
        yield f'<p class="soft-text">On the tuning half. Framed: the best; dashed: in force.{note}</p></section>'
    yield "<h2>What matters</h2><section>" + html_report.html_table(INFLUENCE_HEADERS, influence_rows(result))
    yield '<p class="soft-text">Influence: how far the mean over all points moves with this setting.</p></section>'
    yield f"<h2>The best {min(TOP_POINTS, len(result.scores))} points</h2>"
    yield f"<section>{html_report.html_table(*best_points(result, TOP_POINTS))}</section>"
    yield f"<footer>sweep.csv contains every point.<br>bunko {__version__}</footer>"
