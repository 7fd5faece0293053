"""An evaluation in, `report.json` and `report.md` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bunko import __version__
from bunko.evaluation.baseline import Verdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.dataset import Query
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import Result, Run, means
from bunko.timing import now

_PERCENTILES = (50, 90, 95, 99)
# What people look at first.
_WORST = 10


def as_json(done: Evaluation, verdict: Verdict | None = None, *, whole: bool = True) -> dict[str, Any]:
    """Return an evaluation as plain values; the single questions only if the whole is wanted."""
    result: dict[str, Any] = {
        "bunko": __version__,
        "created_at": now(),
        "judged": {
            "name": done.judged.name,
            "digest": done.judged.digest,
            "documents": done.documents,
            "chunks": done.chunks,
            "queries": len(done.judged.queries),
            "answerable": sum(query.answerable for query in done.judged.queries),
        },
        "n_results": done.plan.n_results,
        "settings": done.settings,
        "mode": done.main.name,
        "measures": _rounded(done.main.measures),
        "modes": {run.name: _mode(run, whole=whole) for run in done.runs},
        "comparisons": [_comparison(one) for one in done.comparisons],
    }
    if verdict is not None:
        result["baseline"] = asdict(verdict) | {"regressed": verdict.regressed}
    return result


def _mode(run: Run, *, whole: bool) -> dict[str, Any]:
    of_run: dict[str, Any] = {
        "mode": run.mode,
        "measures": _rounded(run.measures),
        "intervals": {name: [round(low, 6), round(high, 6)] for name, (low, high) in run.intervals.items()},
        "latency_ms": latency(run.results),
        "languages": _groups(run.groups(GROUPS[0][1])),
        "kinds": _groups(run.groups(GROUPS[1][1])),
    }
    if whole:
        of_run["queries"] = [_query(one) for one in run.results]
    return of_run


def latency(results: Iterable[Result]) -> dict[str, float]:
    """Return how long searches took, in milliseconds, by percentile."""
    times = [one.milliseconds for one in results]
    return {f"p{at}": round(float(np.percentile(times, at)), 3) for at in _PERCENTILES}


def _groups(groups: dict[str, tuple[Result, ...]]) -> dict[str, Any]:
    return {name: {"queries": len(of), "measures": _rounded(means(of))} for name, of in groups.items()}


def _query(one: Result) -> dict[str, Any]:
    query = one.query
    return {
        "id": query.id,
        "query": query.text,
        "language": query.language,
        "kind": query.kind,
        "expected": dict(query.grades),
        "measures": _rounded(one.measures),
        "latency_ms": round(one.milliseconds, 3),
        "results": [
            {"source": found.document, "score": round(found.score, 6), "grade": found.grade, "citation": found.citation}
            for found in one.found
        ],
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    rows = {}
    for row in one.differences:
        rows[row.measure] = {
            "first": round(row.first, 6), "second": round(row.second, 6), "difference": round(row.difference, 6),
            "interval": [round(row.low, 6), round(row.high, 6)], "p": round(row.p, 6),
            "wins": row.wins, "losses": row.losses, "ties": row.ties, "certain": row.certain,
        }  # fmt: skip
    return {"first": one.first, "second": one.second, "measures": rows}


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in numbers.items()}


def counted(number: int, one: str, many: str = "") -> str:
    """Return how many there are, in words."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def as_markdown(done: Evaluation, verdict: Verdict | None = None) -> str:
    """Return an evaluation as a page of tables."""
    return "\n".join(_page(done, verdict)) + "\n"


def _page(done: Evaluation, verdict: Verdict | None) -> Iterator[str]:
    judged = done.judged
    yield f"# Evaluation of {_cell(judged.name)}"
    yield ""
    yield (
        f"{counted(len(judged.queries), 'question')} about {counted(done.documents, 'document')}"
        f" in {counted(done.chunks, 'chunk')}. Judged: the first {counted(done.plan.n_results, 'result')} of each."
    )
    yield ""
    yield from table(
        ["setting", "value"], [[name, "none" if v is None else str(v)] for name, v in done.settings.items()]
    )
    if verdict is not None:
        yield "\n## Baseline\n"
        yield "REGRESSION" if verdict.regressed else "No regression."
        yield ""
        rows = [
            [one.mode, f"{one.before:.4f}", f"{one.now:.4f}", f"{one.now - one.before:+.4f}"] for one in verdict.changes
        ]
        yield from table(["mode", "F1 before", "F1 now", "change"], rows)
    yield "\n## Scores\n"
    yield "The mean over all questions, with its 95 % interval.\n"
    yield from table(["measure", *(run.name for run in done.runs)], scores(done.runs))
    yield "\n## Latency\n"
    times = {run.name: latency(run.results) for run in done.runs}
    rows = [[f"p{at}", *(f"{one[f'p{at}']:.2f}" for one in times.values())] for at in _PERCENTILES]
    yield from table(["milliseconds", *times], rows)
    for one in done.comparisons:
        yield f"\n## {_cell(one.second)} compared with {_cell(one.first)}\n"
        yield from table(COMPARED, compared(one))
    for title, by in GROUPS:
        yield f"\n## By {title}\n"
        for run in done.runs:
            yield from table(*grouped(run, by))
            yield ""
    yield "\n## Worst questions\n"
    main = f"ndcg@{done.plan.n_results}"
    worst = sorted((one for one in done.main.results if main in one.measures), key=lambda one: one.measures[main])
    rows = [[one.query.id, one.query.text, f"{one.measures[main]:.3f}"] for one in worst[:_WORST]]
    yield from table(["id", f"question ({done.main.name})", main], rows)


GROUPS: tuple[tuple[str, Callable[[Query], str]], ...] = (
    ("language", lambda query: query.language),
    ("kind", lambda query: query.kind or "other"),
)


def grouped(run: Run, by: Callable[[Query], str]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table with a row for each group of questions."""
    names = list(run.measures)
    rows = []
    for name, of in run.groups(by).items():
        found = means(of)
        rows.append([name, str(len(of)), *(f"{found[one]:.4f}" if one in found else "" for one in names)])
    return [run.name, "questions", *names], rows


def scores(runs: Sequence[Run]) -> list[list[str]]:
    """Return a row for each measure: its mean in each run, with the 95 % interval."""
    found = [(run.measures, run.intervals) for run in runs]
    names = list(dict.fromkeys(name for measured, _ in found for name in measured))
    rows = []
    for name in names:
        cells = [
            f"{measured[name]:.4f} [{sure[name][0]:.3f}, {sure[name][1]:.3f}]" if name in measured else ""
            for measured, sure in found
        ]
        rows.append([name, *cells])
    return rows


BASELINE = ["mode", "F1 before", "F1 now", "change", ""]


def changes(verdict: Verdict) -> list[list[str]]:
    """Return a row for each mode that a baseline knows."""
    return [
        [one.mode, f"{one.before:.4f}", f"{one.now:.4f}", f"{one.now - one.before:+.4f}", "worse" * one.regressed]
        for one in verdict.changes
    ]


COMPARED = ["measure", "first", "second", "difference", "95 % interval", "p", "wins", "losses", "ties", ""]


def compared(one: Comparison) -> list[list[str]]:
    """Return a row for each measure that two runs share."""
    return [
        [
            row.measure, f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"[{row.low:+.4f}, {row.high:+.4f}]", f"{row.p:.4f}", str(row.wins), str(row.losses), str(row.ties),
            row.verdict,
        ]
        for row in one.differences
    ]  # fmt: skip


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; what comes from files cannot break out of its cell."""
    yield "| " + " | ".join(map(_cell, head)) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_cell, row)) + " |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
