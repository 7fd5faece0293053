"""A sweep in, `sweep.html` out: a map, what matters and the best points, in one file that runs no script."""

from __future__ import annotations

from collections.abc import Iterator

from bunko import __version__
from bunko.evaluation import html_report
from bunko.evaluation.sweep import heatmap
from bunko.evaluation.sweep.report import INFLUENCE, SHOWN, SIDES, best_points, conclusion, influences, sides
from bunko.evaluation.sweep.result import Sweep
from bunko.timing import now


def as_html(done: Sweep) -> str:
    """Return a page with the map; it opens offline and runs nothing."""
    return html_report.whole(f"{done.judged.name} · bunko sweep", _body(done))


def _body(done: Sweep) -> Iterator[str]:
    safe, measure = html_report.safe, html_report.safe(done.measure)
    yield f"<h1>{safe(done.judged.name)}</h1>"
    yield (
        f'<p class="soft-text">{len(done.scores):,} of {len(done.points):,} points.'
        f" {len(done.tuning):,} questions to choose by, {len(done.held_out):,} held back. {now()}</p>"
    )
    if done.best is not None and done.now is not None and done.difference is not None:
        cells = (
            (f"{done.best.held_out:.3f}", f"{measure}, best, held-out half"),
            (f"{done.now.held_out:.3f}", f"{measure}, in force, held-out half"),
            (f"{done.difference.difference:+.3f}", "difference"),
        )
        boxes = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for value, name in cells)
        yield f'<div class="numbers">{boxes}</div>'
    bad = "" if done.verdict in ("better", "same") else " bad"
    table = html_report.table(SIDES, sides(done))
    yield f'<section class="verdict{bad}"><p>{safe(conclusion(done))}</p>{table}</section>'
    if done.toml:
        yield f"<h2>Settings of the best point</h2><section><pre>{safe(done.toml)}</pre></section>"
    found = heatmap.heat(done)
    if found is not None:
        names = found.across.name + (f" and {found.down.name}" if found.down else "")
        yield f"<h2>{measure} by {safe(names)}</h2><section>{heatmap.drawn(found, done.measure)}"
        rest = " The other settings are the best for each field." if len(done.plan.grid.dimensions) > 2 else ""
        yield f'<p class="soft-text">On the tuning half. Framed: the best; dashed: in force.{rest}</p></section>'
    yield "<h2>What matters</h2><section>" + html_report.table(INFLUENCE, influences(done))
    yield '<p class="soft-text">Influence: how far the mean over all points moves with this setting.</p></section>'
    yield f"<h2>The best {min(SHOWN, len(done.scores))} points</h2>"
    yield f"<section>{html_report.table(*best_points(done, SHOWN))}</section>"
    yield f"<footer>sweep.csv holds every point.<br>bunko {__version__}</footer>"
