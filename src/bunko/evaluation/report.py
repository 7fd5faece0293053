"""Format an evaluation as `report.json` and `report.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import QueryResult, Run, means
from bunko.runtime.timing import now
from bunko.version import __version__

_PERCENTILES = (50, 90, 95, 99)
_WORST_COUNT = 10  # the queries that people look at first


def as_json(
    evaluation: Evaluation, verdict: BaselineVerdict | None = None, *, include_queries: bool = True
) -> dict[str, Any]:
    """Return an evaluation as JSON data, with or without the result of each query."""
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
        "comparisons": [_comparison_data(comparison) for comparison in evaluation.comparisons],
    }
    if evaluation.judged_set.notices:
        result["notices"] = list(evaluation.judged_set.notices)
    if verdict is not None:
        result["baseline"] = asdict(verdict) | {"regressed": verdict.has_regression}
    return result


def _run_data(run: Run, *, include_queries: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "mode": run.mode,
        "measures": _round_values(run.measures),
        "intervals": {name: [round(low, 6), round(high, 6)] for name, (low, high) in run.intervals.items()},
        "latency_ms": latency_percentiles(run.results),
        "languages": _group_data(run.groups(QUERY_GROUPS[0][1])),
        "kinds": _group_data(run.groups(QUERY_GROUPS[1][1])),
    }
    if include_queries:
        data["queries"] = [_query_data(result) for result in run.results]
    return data


def latency_percentiles(results: Iterable[QueryResult]) -> dict[str, float]:
    """Return percentiles of the search latency in milliseconds."""
    times = [result.milliseconds for result in results]
    return {f"p{percent}": round(float(np.percentile(times, percent)), 3) for percent in _PERCENTILES}


def _group_data(groups: dict[str, tuple[QueryResult, ...]]) -> dict[str, Any]:
    return {
        name: {"queries": len(results), "measures": _round_values(means(results))} for name, results in groups.items()
    }


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
            {
                "source": document.uri,
                "score": round(document.score, 6),
                "grade": document.grade,
                "citation": document.citation,
            }
            for document in result.documents
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
    """Return a count with its noun in the right number: `1 query`, `1,000 queries`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def as_markdown(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """Return an evaluation as Markdown tables."""
    return "\n".join(_markdown_lines(evaluation, verdict)) + "\n"


def _markdown_lines(evaluation: Evaluation, verdict: BaselineVerdict | None) -> Iterator[str]:
    judged = evaluation.judged_set
    yield f"# Evaluation of {_escape_cell(judged.name)}"
    yield ""
    yield summary_line(evaluation)
    yield ""
    for notice in judged.notices:
        yield f"- {_escape_cell(notice)}"
    if judged.notices:
        yield ""
    yield from markdown_table(
        ["setting", "value"],
        [[name, "none" if value is None else str(value)] for name, value in evaluation.settings.items()],
    )
    if verdict is not None:
        yield "\n## Baseline\n"
        yield "REGRESSION" if verdict.has_regression else "No regression."
        yield ""
        # The last column, which marks regressions, is for the terminal and the page.
        yield from markdown_table(BASELINE_HEADERS[:-1], [row[:-1] for row in baseline_rows(verdict)])
    yield "\n## Scores\n"
    yield "The mean over all questions, with its 95 % interval.\n"
    yield from markdown_table(["measure", *(run.name for run in evaluation.runs)], score_rows(evaluation.runs))
    yield "\n## Latency\n"
    times = {run.name: latency_percentiles(run.results) for run in evaluation.runs}
    rows = [
        [f"p{percent}", *(f"{percentiles[f'p{percent}']:.2f}" for percentiles in times.values())]
        for percent in _PERCENTILES
    ]
    yield from markdown_table(["milliseconds", *times], rows)
    for comparison in evaluation.comparisons:
        yield f"\n## {_escape_cell(comparison.second)} compared with {_escape_cell(comparison.first)}\n"
        yield from markdown_table(COMPARISON_HEADERS, comparison_rows(comparison))
    for title, group_of in QUERY_GROUPS:
        yield f"\n## By {title}\n"
        for run in evaluation.runs:
            yield from markdown_table(*group_table(run, group_of))
            yield ""
    yield "\n## Worst questions\n"
    measure = f"ndcg@{evaluation.plan.n_results}"
    scored = [result for result in evaluation.main_run.results if measure in result.measures]
    worst = sorted(scored, key=lambda result: result.measures[measure])[:_WORST_COUNT]
    rows = [[result.query.id, result.query.text, f"{result.measures[measure]:.3f}"] for result in worst]
    yield from markdown_table(["id", f"question ({evaluation.main_run.name})", measure], rows)


def summary_line(evaluation: Evaluation) -> str:
    """Return a sentence about how much was measured."""
    queries = format_count(len(evaluation.judged_set.queries), "question")
    documents = format_count(evaluation.documents, "document")
    chunks = format_count(evaluation.chunks, "chunk")
    results = format_count(evaluation.plan.n_results, "result")
    return f"{queries} about {documents} in {chunks}. Judged: the first {results} of each."


QUERY_GROUPS: tuple[tuple[str, Callable[[JudgedQuery], str]], ...] = (
    ("language", lambda query: query.language),
    ("kind", lambda query: query.kind or "other"),
)


def group_table(run: Run, group_of: Callable[[JudgedQuery], str]) -> tuple[list[str], list[list[str]]]:
    """Return the headers and the rows of a table with one row per group of queries."""
    measures = list(run.measures)
    rows = []
    for name, results in run.groups(group_of).items():
        values = means(results)
        cells = (f"{values[measure]:.4f}" if measure in values else "" for measure in measures)
        rows.append([name, str(len(results)), *cells])
    return [run.name, "questions", *measures], rows


def score_rows(runs: Sequence[Run]) -> list[list[str]]:
    """Return a row for each measure: its mean in each run, with the 95 % interval."""
    names = list(dict.fromkeys(name for run in runs for name in run.measures))
    return [[name, *(_score_cell(run, name) for run in runs)] for name in names]


def _score_cell(run: Run, measure: str) -> str:
    if measure not in run.measures:
        return ""
    low, high = run.intervals[measure]
    return f"{run.measures[measure]:.4f} [{low:.3f}, {high:.3f}]"


BASELINE_HEADERS = ["mode", "F1 before", "F1 now", "change", ""]


def baseline_rows(verdict: BaselineVerdict) -> list[list[str]]:
    """Return a row for each mode that the baseline contains."""
    return [
        [
            change.mode,
            f"{change.before:.4f}",
            f"{change.now:.4f}",
            f"{change.now - change.before:+.4f}",
            "worse" if change.regressed else "",
        ]
        for change in verdict.changes
    ]


COMPARISON_HEADERS = ["measure", "first", "second", "difference", "95 % interval", "p", "wins", "losses", "ties", ""]


def comparison_rows(comparison: Comparison) -> list[list[str]]:
    """Return a row for each measure that both runs have."""
    return [
        [
            row.measure, f"{row.first:.4f}", f"{row.second:.4f}", f"{row.difference:+.4f}",
            f"[{row.low:+.4f}, {row.high:+.4f}]", f"{row.p:.4f}", str(row.wins), str(row.losses), str(row.ties),
            row.verdict,
        ]
        for row in comparison.differences
    ]  # fmt: skip


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; cells are escaped, so that text from files stays in its cell."""
    yield "| " + " | ".join(map(_escape_cell, head)) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_escape_cell, row)) + " |"


def _escape_cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
