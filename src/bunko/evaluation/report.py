"""An evaluation in, `report.json` and `report.md` out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bunko import __version__
from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import QueryResult, Run, means
from bunko.timing import now

_PERCENTILES = (50, 90, 95, 99)
# What people look at first.
_WORST_COUNT = 10


def as_json(
    evaluation: Evaluation, verdict: BaselineVerdict | None = None, *, include_queries: bool = True
) -> dict[str, Any]:
    """Return an evaluation as plain values; the single questions only if the whole is wanted."""
    result: dict[str, Any] = {
        "bunko": __version__,
        "created_at": now(),
        "judged": {
            "name": evaluation.judged_set.name,
            "digest": evaluation.judged_set.digest,
            "documents": evaluation.documents,
            "chunks": evaluation.chunks,
            "queries": len(evaluation.judged_set.queries),
            "answerable": sum(query.is_answerable for query in evaluation.judged_set.queries),
        },
        "n_results": evaluation.plan.n_results,
        "settings": evaluation.settings,
        "mode": evaluation.main_run.name,
        "measures": _round_values(evaluation.main_run.measures),
        "modes": {run.name: _run_data(run, include_queries=include_queries) for run in evaluation.runs},
        "comparisons": [_comparison_data(one) for one in evaluation.comparisons],
    }
    if verdict is not None:
        result["baseline"] = asdict(verdict) | {"regressed": verdict.has_regression}
    return result


def _run_data(run: Run, *, include_queries: bool) -> dict[str, Any]:
    of_run: dict[str, Any] = {
        "mode": run.mode,
        "measures": _round_values(run.measures),
        "intervals": {name: [round(low, 6), round(high, 6)] for name, (low, high) in run.intervals.items()},
        "latency_ms": latency_percentiles(run.results),
        "languages": _group_data(run.groups(QUERY_GROUPS[0][1])),
        "kinds": _group_data(run.groups(QUERY_GROUPS[1][1])),
    }
    if include_queries:
        of_run["queries"] = [_query_data(one) for one in run.results]
    return of_run


def latency_percentiles(results: Iterable[QueryResult]) -> dict[str, float]:
    """Return how long searches took, in milliseconds, by percentile."""
    times = [one.milliseconds for one in results]
    return {f"p{at}": round(float(np.percentile(times, at)), 3) for at in _PERCENTILES}


def _group_data(groups: dict[str, tuple[QueryResult, ...]]) -> dict[str, Any]:
    return {name: {"queries": len(of), "measures": _round_values(means(of))} for name, of in groups.items()}


def _query_data(result: QueryResult) -> dict[str, Any]:
    query = result.query
    return {
        "id": query.id,
        "query": query.text,
        "language": query.language,
        "kind": query.kind,
        "expected": dict(query.grades),
        "measures": _round_values(result.measures),
        "latency_ms": round(result.milliseconds, 3),
        "results": [
            {"source": found.uri, "score": round(found.score, 6), "grade": found.grade, "citation": found.citation}
            for found in result.documents
        ],
    }


def _comparison_data(comparison: Comparison) -> dict[str, Any]:
    rows = {}
    for row in comparison.differences:
        rows[row.measure] = {
            "first": round(row.first, 6), "second": round(row.second, 6), "difference": round(row.difference, 6),
            "interval": [round(row.low, 6), round(row.high, 6)], "p": round(row.p, 6),
            "wins": row.wins, "losses": row.losses, "ties": row.ties, "certain": row.is_significant,
        }  # fmt: skip
    return {"first": comparison.first, "second": comparison.second, "measures": rows}


def _round_values(numbers: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in numbers.items()}


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Return how many there are, in words."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def as_markdown(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """Return an evaluation as a page of tables."""
    return "\n".join(_markdown_lines(evaluation, verdict)) + "\n"


def _markdown_lines(evaluation: Evaluation, verdict: BaselineVerdict | None) -> Iterator[str]:
    judged = evaluation.judged_set
    yield f"# Evaluation of {_escape_cell(judged.name)}"
    yield ""
    yield (
        f"{format_count(len(judged.queries), 'question')} about {format_count(evaluation.documents, 'document')}"
        f" in {format_count(evaluation.chunks, 'chunk')}. Judged: the first {format_count(evaluation.plan.n_results, 'result')} of each."  # noqa: E501
    )
    yield ""
    yield from markdown_table(
        ["setting", "value"], [[name, "none" if v is None else str(v)] for name, v in evaluation.settings.items()]
    )
    if verdict is not None:
        yield "\n## Baseline\n"
        yield "REGRESSION" if verdict.has_regression else "No regression."
        yield ""
        rows = [
            [one.mode, f"{one.before:.4f}", f"{one.now:.4f}", f"{one.now - one.before:+.4f}"] for one in verdict.changes
        ]
        yield from markdown_table(["mode", "F1 before", "F1 now", "change"], rows)
    yield "\n## Scores\n"
    yield "The mean over all questions, with its 95 % interval.\n"
    yield from markdown_table(["measure", *(run.name for run in evaluation.runs)], score_rows(evaluation.runs))
    yield "\n## Latency\n"
    times = {run.name: latency_percentiles(run.results) for run in evaluation.runs}
    rows = [[f"p{at}", *(f"{one[f'p{at}']:.2f}" for one in times.values())] for at in _PERCENTILES]
    yield from markdown_table(["milliseconds", *times], rows)
    for one in evaluation.comparisons:
        yield f"\n## {_escape_cell(one.second)} compared with {_escape_cell(one.first)}\n"
        yield from markdown_table(COMPARISON_HEADERS, comparison_rows(one))
    for title, by in QUERY_GROUPS:
        yield f"\n## By {title}\n"
        for run in evaluation.runs:
            yield from markdown_table(*group_table(run, by))
            yield ""
    yield "\n## Worst questions\n"
    main = f"ndcg@{evaluation.plan.n_results}"
    worst = sorted(
        (one for one in evaluation.main_run.results if main in one.measures), key=lambda one: one.measures[main]
    )
    rows = [[one.query.id, one.query.text, f"{one.measures[main]:.3f}"] for one in worst[:_WORST_COUNT]]
    yield from markdown_table(["id", f"question ({evaluation.main_run.name})", main], rows)


QUERY_GROUPS: tuple[tuple[str, Callable[[JudgedQuery], str]], ...] = (
    ("language", lambda query: query.language),
    ("kind", lambda query: query.kind or "other"),
)


def group_table(run: Run, group_of: Callable[[JudgedQuery], str]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table with a row for each group of questions."""
    names = list(run.measures)
    rows = []
    for name, of in run.groups(group_of).items():
        found = means(of)
        rows.append([name, str(len(of)), *(f"{found[one]:.4f}" if one in found else "" for one in names)])
    return [run.name, "questions", *names], rows


def score_rows(runs: Sequence[Run]) -> list[list[str]]:
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


BASELINE_HEADERS = ["mode", "F1 before", "F1 now", "change", ""]


def baseline_rows(verdict: BaselineVerdict) -> list[list[str]]:
    """Return a row for each mode that a baseline knows."""
    return [
        [one.mode, f"{one.before:.4f}", f"{one.now:.4f}", f"{one.now - one.before:+.4f}", "worse" * one.regressed]
        for one in verdict.changes
    ]


COMPARISON_HEADERS = ["measure", "first", "second", "difference", "95 % interval", "p", "wins", "losses", "ties", ""]


def comparison_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row for each measure that two runs share."""
    return [
        [
            row.measure, f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"[{row.low:+.4f}, {row.high:+.4f}]", f"{row.p:.4f}", str(row.wins), str(row.losses), str(row.ties),
            row.verdict,
        ]
        for row in comparison.differences
    ]  # fmt: skip


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; what comes from files cannot break out of its cell."""
    yield "| " + " | ".join(map(_escape_cell, head)) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_escape_cell, row)) + " |"


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
