"""A sweep in, `sweep.json`, `sweep.md` and `sweep.csv` out, and the tables that every report of it shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from bunko import __version__
from bunko.evaluation.report import markdown_table
from bunko.evaluation.sweep.grid import PointValues, format_value
from bunko.evaluation.sweep.result import PointResult, SweepResult
from bunko.timing import now

TOP_POINTS = 20
POINT_HEADERS = ["", "settings", "tuning half", "held-out half", "95 % interval"]


def as_json(result: SweepResult, *, include_points: bool = True) -> dict[str, Any]:
    """Return a sweep as plain values; every point only if the whole is wanted."""
    found: dict[str, Any] = {
        "bunko": __version__,
        "created_at": now(),
        "complete": result.is_complete,
        "fingerprint": result.fingerprint,
        "judged": {
            "name": result.judged_set.name,
            "digest": result.judged_set.digest,
            "documents": result.documents,
            "queries": len(result.judged_set.queries),
            "tuning": len(result.tuning_ids),
            "held_out": len(result.held_out_ids),
        },
        "measure": result.measure,
        "n_results": result.plan.n_results,
        "settings": result.settings,
        "grid": [
            {"name": one.name, "key": one.key, "values": list(one.values), "influence": round(result.influence(one), 6)}
            for one in result.plan.grid.dimensions
        ],
        "measured": len(result.scores),
        "total": len(result.points),
        "reused": result.reused_count,
        "seconds": round(result.seconds, 2),
        "notices": result.notices,
    }
    if result.difference is not None and result.best is not None and result.current is not None:
        row = result.difference
        found |= {
            "best": _point_data(result.best),
            "now": _point_data(result.current),
            "difference": {
                "value": round(row.difference, 6), "interval": [round(row.low, 6), round(row.high, 6)],
                "p": round(row.p, 6), "wins": row.wins, "losses": row.losses, "ties": row.ties,
            },
            "verdict": result.verdict,
            "conclusion": conclusion(result),
            "toml": result.toml,
        }  # fmt: skip
    if include_points:
        found["points"] = [
            {
                "settings": result.points[at],
                "tuning": result.scores[at].tuning,
                "held_out": result.scores[at].held_out,
                "measures": dict(result.scores[at].measures),
            }
            for at in sorted(result.scores)
        ]
    return found


def _point_data(point_result: PointResult) -> dict[str, Any]:
    return {
        "settings": dict(point_result.values),
        "mode": point_result.run.mode,
        "tuning": round(point_result.tuning, 6),
        "held_out": round(point_result.held_out, 6),
        "interval": [round(point_result.low, 6), round(point_result.high, 6)],
        "measures": {name: round(value, 6) for name, value in point_result.run.measures.items()},
    }


def conclusion(result: SweepResult) -> str:
    """Say in a sentence or two whether the best point is really better."""
    row = result.difference
    if row is None:
        return f"{len(result.scores):,} of {len(result.points):,} points were measured; nothing was concluded."
    change = f"{row.difference:+.4f}, 95 % interval [{row.low:+.4f}, {row.high:+.4f}]"
    told = {
        "same": "The settings in force are the best of the grid. There is nothing to change.",
        "better": f"Better, and questions that had no part in the choice agree: {result.measure} {change}.",
        "not proven": f"Not proven to be better: on the questions held back the difference is {change}, which holds 0."
        " Keep the settings in force, or judge more questions.",
        "worse": f"Worse on the questions held back: {change}. The best on one half was luck; keep what is in force.",
    }[result.verdict]
    edges = [
        one.name
        for one in result.plan.grid.dimensions
        if result.best and one.is_ordered and len(one.values) > 2 and result.best.values[one.name] in _range_ends(one.values)  # noqa: E501
        and one.key not in ("search.vector_weight", "search.b")
    ]  # fmt: skip
    if edges and result.verdict != "same":
        told += f" The best lies at the end of the range of {' and '.join(edges)}: a wider grid may hold a better one."
    return told


def _range_ends(values: Any) -> tuple[float, float]:
    return min(values), max(values)


def point_rows(result: SweepResult) -> list[list[str]]:
    """Return a row for the best point and one for the settings in force."""
    return [
        [
            name, format_point(one.values), f"{one.tuning:.4f}", f"{one.held_out:.4f}", f"[{one.low:.4f}, {one.high:.4f}]",  # noqa: E501
        ]
        for name, one in (("best", result.best), ("in force", result.current))
        if one is not None
    ]  # fmt: skip


def format_point(values: PointValues) -> str:
    """Write the settings of a point in one line."""
    return " ".join(f"{name}={format_value(value)}" for name, value in values.items())


def best_points(result: SweepResult, limit: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the best points."""
    names = [one.name for one in result.plan.grid.dimensions]
    rows = []
    for rank, at in enumerate(result.rank_points()[:limit], 1):
        score = result.scores[at]
        rows.append(
            [
                str(rank), *(format_value(result.points[at][name]) for name in names), f"{score.tuning:.4f}",
                f"{score.held_out:.4f}",
            ]
        )  # fmt: skip
    return ["", *names, f"{result.measure} tuning", "held out"], rows


def influence_rows(result: SweepResult) -> list[list[str]]:
    """Return a row for each dimension, the one that matters most first."""
    ordered = sorted(result.plan.grid.dimensions, key=result.influence, reverse=True)
    return [
        [one.name, str(len(one.values)), format_value(result.settings[one.key]), f"{result.influence(one):.4f}"]
        for one in ordered
    ]


INFLUENCE_HEADERS = ["setting", "values", "in force", "influence"]


def as_markdown(result: SweepResult) -> str:
    """Return a sweep as a page of tables, every point in the last."""
    return "\n".join(_markdown_lines(result)) + "\n"


def _markdown_lines(result: SweepResult) -> Iterator[str]:
    yield f"# Sweep over {' '.join(result.judged_set.name.split())}\n"
    yield (
        f"{len(result.scores):,} of {len(result.points):,} points, {len(result.judged_set.queries):,} questions:"
        f" {len(result.tuning_ids):,} to choose by, {len(result.held_out_ids):,} held back. {now()}\n"
    )
    yield conclusion(result) + "\n"
    yield from markdown_table(POINT_HEADERS, point_rows(result))
    if result.toml:
        yield f"\n```toml\n{result.toml}\n```"
    yield "\n## What matters\n"
    yield from markdown_table(INFLUENCE_HEADERS, influence_rows(result))
    yield "\n## Every point\n"
    yield from markdown_table(*best_points(result, len(result.points)))


def as_csv(result: SweepResult) -> str:
    """Return every point in a line, in the order of the grid."""
    names = [one.name for one in result.plan.grid.dimensions]
    measured = list(dict.fromkeys(name for score in result.scores.values() for name in score.measures))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*names, "tuning", "held_out", *measured])
    for at in sorted(result.scores):
        score = result.scores[at]
        values = [score.tuning, score.held_out, *(score.measures.get(name) for name in measured)]
        rows.writerow(
            [format_value(result.points[at][name]) for name in names]
            + ["" if value is None else f"{value:.6f}" for value in values]
        )
    return out.getvalue()
