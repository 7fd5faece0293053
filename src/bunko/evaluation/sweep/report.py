"""A sweep in, `sweep.json`, `sweep.md` and `sweep.csv` out, and the tables that every report of it shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from bunko import __version__
from bunko.evaluation.report import table
from bunko.evaluation.sweep.grid import Values, written
from bunko.evaluation.sweep.result import Side, Sweep
from bunko.timing import now

SHOWN = 20
SIDES = ["", "settings", "tuning half", "held-out half", "95 % interval"]


def as_json(done: Sweep, *, whole: bool = True) -> dict[str, Any]:
    """Return a sweep as plain values; every point only if the whole is wanted."""
    found: dict[str, Any] = {
        "bunko": __version__,
        "created_at": now(),
        "complete": done.complete,
        "fingerprint": done.fingerprint,
        "judged": {
            "name": done.judged.name,
            "digest": done.judged.digest,
            "documents": done.documents,
            "queries": len(done.judged.queries),
            "tuning": len(done.tuning),
            "held_out": len(done.held_out),
        },
        "measure": done.measure,
        "n_results": done.plan.n_results,
        "settings": done.settings,
        "grid": [
            {"name": one.name, "key": one.key, "values": list(one.values), "influence": round(done.influence(one), 6)}
            for one in done.plan.grid.dimensions
        ],
        "measured": len(done.scores),
        "total": len(done.points),
        "reused": done.reused,
        "seconds": round(done.seconds, 2),
        "notices": done.notices,
    }
    if done.difference is not None and done.best is not None and done.now is not None:
        row = done.difference
        found |= {
            "best": _side(done.best),
            "now": _side(done.now),
            "difference": {
                "value": round(row.difference, 6), "interval": [round(row.low, 6), round(row.high, 6)],
                "p": round(row.p, 6), "wins": row.wins, "losses": row.losses, "ties": row.ties,
            },
            "verdict": done.verdict,
            "conclusion": conclusion(done),
            "toml": done.toml,
        }  # fmt: skip
    if whole:
        found["points"] = [
            {
                "settings": done.points[at],
                "tuning": done.scores[at].tuning,
                "held_out": done.scores[at].held_out,
                "measures": dict(done.scores[at].measures),
            }
            for at in sorted(done.scores)
        ]
    return found


def _side(one: Side) -> dict[str, Any]:
    return {
        "settings": dict(one.values),
        "mode": one.run.mode,
        "tuning": round(one.tuning, 6),
        "held_out": round(one.held_out, 6),
        "interval": [round(one.low, 6), round(one.high, 6)],
        "measures": {name: round(value, 6) for name, value in one.run.measures.items()},
    }


def conclusion(done: Sweep) -> str:
    """Say in a sentence or two whether the best point is really better."""
    row = done.difference
    if row is None:
        return f"{len(done.scores):,} of {len(done.points):,} points were measured; nothing was concluded."
    change = f"{row.difference:+.4f}, 95 % interval [{row.low:+.4f}, {row.high:+.4f}]"
    told = {
        "same": "The settings in force are the best of the grid. There is nothing to change.",
        "better": f"Better, and questions that had no part in the choice agree: {done.measure} {change}.",
        "not proven": f"Not proven to be better: on the questions held back the difference is {change}, which holds 0."
        " Keep the settings in force, or judge more questions.",
        "worse": f"Worse on the questions held back: {change}. The best on one half was luck; keep what is in force.",
    }[done.verdict]
    edges = [
        one.name
        for one in done.plan.grid.dimensions
        if done.best and one.is_ordered and len(one.values) > 2 and done.best.values[one.name] in _ends(one.values)
        and one.key not in ("search.vector_weight", "search.b")
    ]  # fmt: skip
    if edges and done.verdict != "same":
        told += f" The best lies at the end of the range of {' and '.join(edges)}: a wider grid may hold a better one."
    return told


def _ends(values: Any) -> tuple[float, float]:
    return min(values), max(values)


def sides(done: Sweep) -> list[list[str]]:
    """Return a row for the best point and one for the settings in force."""
    return [
        [
            name, point(one.values), f"{one.tuning:.4f}", f"{one.held_out:.4f}", f"[{one.low:.4f}, {one.high:.4f}]",
        ]
        for name, one in (("best", done.best), ("in force", done.now))
        if one is not None
    ]  # fmt: skip


def point(values: Values) -> str:
    """Write the settings of a point in one line."""
    return " ".join(f"{name}={written(value)}" for name, value in values.items())


def best_points(done: Sweep, most: int) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of the best points."""
    names = [one.name for one in done.plan.grid.dimensions]
    rows = []
    for rank, at in enumerate(done.ranked()[:most], 1):
        score = done.scores[at]
        rows.append(
            [
                str(rank), *(written(done.points[at][name]) for name in names), f"{score.tuning:.4f}",
                f"{score.held_out:.4f}",
            ]
        )  # fmt: skip
    return ["", *names, f"{done.measure} tuning", "held out"], rows


def influences(done: Sweep) -> list[list[str]]:
    """Return a row for each dimension, the one that matters most first."""
    ordered = sorted(done.plan.grid.dimensions, key=done.influence, reverse=True)
    return [
        [one.name, str(len(one.values)), written(done.settings[one.key]), f"{done.influence(one):.4f}"]
        for one in ordered
    ]


INFLUENCE = ["setting", "values", "in force", "influence"]


def as_markdown(done: Sweep) -> str:
    """Return a sweep as a page of tables, every point in the last."""
    return "\n".join(_lines(done)) + "\n"


def _lines(done: Sweep) -> Iterator[str]:
    yield f"# Sweep over {' '.join(done.judged.name.split())}\n"
    yield (
        f"{len(done.scores):,} of {len(done.points):,} points, {len(done.judged.queries):,} questions:"
        f" {len(done.tuning):,} to choose by, {len(done.held_out):,} held back. {now()}\n"
    )
    yield conclusion(done) + "\n"
    yield from table(SIDES, sides(done))
    if done.toml:
        yield f"\n```toml\n{done.toml}\n```"
    yield "\n## What matters\n"
    yield from table(INFLUENCE, influences(done))
    yield "\n## Every point\n"
    yield from table(*best_points(done, len(done.points)))


def as_csv(done: Sweep) -> str:
    """Return every point in a line, in the order of the grid."""
    names = [one.name for one in done.plan.grid.dimensions]
    measured = list(dict.fromkeys(name for score in done.scores.values() for name in score.measures))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*names, "tuning", "held_out", *measured])
    for at in sorted(done.scores):
        score = done.scores[at]
        values = [score.tuning, score.held_out, *(score.measures.get(name) for name in measured)]
        rows.writerow(
            [written(done.points[at][name]) for name in names]
            + ["" if value is None else f"{value:.6f}" for value in values]
        )
    return out.getvalue()
