"""Format a sweep as `sweep.json`, `sweep.md` and `sweep.csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from bunko.evaluation.compare import Difference
from bunko.evaluation.report import markdown_table
from bunko.evaluation.sweep.grid import PointValues, format_value
from bunko.evaluation.sweep.result import PointResult, SweepResult
from bunko.runtime.timing import now
from bunko.types.ranking import OPTIONS
from bunko.version import __version__

TOP_POINTS = 20
# Options that cannot be outside 0 to 1: their range usually cannot be wider.
_BOUNDED_KEYS = tuple(f"search.{name}" for name, option in OPTIONS.items() if (option.low, option.high) == (0, 1))
POINT_HEADERS = ["", "settings", "tuning half", "held-out half", "95 % interval"]


def as_json(result: SweepResult, *, include_points: bool = True) -> dict[str, Any]:
    """Return a sweep as JSON data, with or without its points."""
    data: dict[str, Any] = {
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
            {
                "name": dimension.name,
                "key": dimension.key,
                "values": list(dimension.values),
                "influence": round(result.influence(dimension), 6),
            }
            for dimension in result.plan.grid.dimensions
        ],
        "measured": len(result.scores),
        "total": len(result.points),
        "reused": result.reused_count,
        "seconds": round(result.seconds, 2),
        "notices": result.notices,
    }
    if result.difference is not None and result.best is not None and result.current is not None:
        data |= {
            "best": _point_data(result.best),
            "now": _point_data(result.current),
            "difference": _difference_data(result.difference),
            "verdict": result.verdict,
            "conclusion": conclusion(result),
            "toml": result.toml,
        }
    if include_points:
        data["points"] = [
            {
                "settings": result.points[index],
                "tuning": result.scores[index].tuning,
                "held_out": result.scores[index].held_out,
                "measures": dict(result.scores[index].measures),
            }
            for index in sorted(result.scores)
        ]
    return data


def _point_data(point_result: PointResult) -> dict[str, Any]:
    return {
        "settings": dict(point_result.values),
        "mode": point_result.run.mode,
        "tuning": round(point_result.tuning, 6),
        "held_out": round(point_result.held_out, 6),
        "interval": [round(point_result.low, 6), round(point_result.high, 6)],
        "measures": {name: round(value, 6) for name, value in point_result.run.measures.items()},
    }


def _difference_data(difference: Difference) -> dict[str, Any]:
    return {
        "value": round(difference.difference, 6),
        "interval": [round(difference.low, 6), round(difference.high, 6)],
        "p": round(difference.p, 6),
        "wins": difference.wins,
        "losses": difference.losses,
        "ties": difference.ties,
    }


def conclusion(result: SweepResult) -> str:
    """Return a sentence or two about whether the best point is proven to be better."""
    difference = result.difference
    if difference is None:
        return f"{len(result.scores):,} of {len(result.points):,} points were measured; there is no conclusion yet."
    change = f"{difference.difference:+.4f}, 95 % interval [{difference.low:+.4f}, {difference.high:+.4f}]"
    text = {
        "same": "The current settings are the best of the grid. There is nothing to change.",
        "better": f"Better, and the held-out questions confirm it: {result.measure} {change}.",
        "not proven": f"Not proven to be better: on the held-out questions the difference is {change}, which contains"
        " 0. Keep the current settings, or judge more questions.",
        "worse": f"Worse on the held-out questions: {change}. The gain on the tuning half was chance; keep the current"
        " settings.",
    }[result.verdict]
    edges = _dimensions_at_edge(result)
    if edges and result.verdict != "same":
        text += f" The best is at the end of the range of {' and '.join(edges)}: a wider grid may contain a better one."
    return text


def _dimensions_at_edge(result: SweepResult) -> list[str]:
    """Return the dimensions whose best value is the first or the last of a range that could be wider."""
    if result.best is None:
        return []
    return [
        dimension.name
        for dimension in result.plan.grid.dimensions
        if dimension.is_ordered
        and len(dimension.values) > 2
        and result.best.values[dimension.name] in _range_ends(dimension.values)
        and dimension.key not in _BOUNDED_KEYS
    ]


def _range_ends(values: Any) -> tuple[float, float]:
    return min(values), max(values)


def point_rows(result: SweepResult) -> list[list[str]]:
    """Return a row for the best point and one for the settings in force."""
    return [
        [
            name,
            format_point(point.values),
            f"{point.tuning:.4f}",
            f"{point.held_out:.4f}",
            f"[{point.low:.4f}, {point.high:.4f}]",
        ]
        for name, point in (("best", result.best), ("in force", result.current))
        if point is not None
    ]


def format_point(values: PointValues) -> str:
    """Return the settings of a point in one line."""
    return " ".join(f"{name}={format_value(value)}" for name, value in values.items())


def best_points(result: SweepResult, limit: int) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of a table of the best points."""
    names = [dimension.name for dimension in result.plan.grid.dimensions]
    rows = []
    for rank, index in enumerate(result.rank_points()[:limit], 1):
        score = result.scores[index]
        rows.append(
            [
                str(rank), *(format_value(result.points[index][name]) for name in names), f"{score.tuning:.4f}",
                f"{score.held_out:.4f}",
            ]
        )  # fmt: skip
    return ["", *names, f"{result.measure} tuning", "held out"], rows


def influence_rows(result: SweepResult) -> list[list[str]]:
    """Return a row for each dimension, the one with the most influence first."""
    ordered = sorted(result.plan.grid.dimensions, key=result.influence, reverse=True)
    return [
        [
            dimension.name,
            str(len(dimension.values)),
            format_value(result.settings[dimension.key]),
            f"{result.influence(dimension):.4f}",
        ]
        for dimension in ordered
    ]


INFLUENCE_HEADERS = ["setting", "values", "in force", "influence"]


def as_markdown(result: SweepResult) -> str:
    """Return a sweep as Markdown tables, the last with every point."""
    return "\n".join(_markdown_lines(result)) + "\n"


def _markdown_lines(result: SweepResult) -> Iterator[str]:
    yield f"# Sweep over {' '.join(result.judged_set.name.split())}\n"
    yield (
        f"{len(result.scores):,} of {len(result.points):,} points, {len(result.judged_set.queries):,} questions:"
        f" {len(result.tuning_ids):,} for tuning, {len(result.held_out_ids):,} held out. {now()}\n"
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
    """Return a CSV line for every measured point, in the order of the grid."""
    names = [dimension.name for dimension in result.plan.grid.dimensions]
    measures = list(dict.fromkeys(name for score in result.scores.values() for name in score.measures))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*names, "tuning", "held_out", *measures])
    for index in sorted(result.scores):
        score = result.scores[index]
        values = [score.tuning, score.held_out, *(score.measures.get(name) for name in measures)]
        writer.writerow(
            [format_value(result.points[index][name]) for name in names]
            + ["" if value is None else f"{value:.6f}" for value in values]
        )
    return buffer.getvalue()
