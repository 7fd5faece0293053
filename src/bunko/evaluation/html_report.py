"""Format an evaluation as `report.html`, one file without scripts or network access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bunko.evaluation import plots, report
from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import QueryResult, Run
from bunko.runtime.timing import now
from bunko.text.labels import remove_hidden_chars
from bunko.version import __version__

# A page with thousands of queries opens slowly and nobody reads it; report.json contains all of them.
MAX_QUERIES = 200
_MAX_CHANGED = 10
_MAX_HITS = 5
_MAX_CHARACTERS = 120


def as_html(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """Return the report page; all text from documents and queries is escaped."""
    run, runs, measure = evaluation.main_run, evaluation.runs, f"ndcg@{evaluation.plan.n_results}"
    scores = run.values.get(measure, {})
    ordered = sorted(run.results, key=lambda result: scores.get(result.query.id, 2.0))
    results_of = _results_by_query(runs)
    names = list(dict.fromkeys(name for run in runs for name in run.measures))
    columns = {run.name: {name: (run.measures[name], *run.intervals[name]) for name in run.measures} for run in runs}
    return render_report(
        "report.html",
        evaluation=evaluation,
        summary=report.summary_line(evaluation),
        measure=measure,
        headline=_headline_numbers(evaluation),
        verdict=verdict,
        baseline=(report.BASELINE_HEADERS, report.baseline_rows(verdict)) if verdict else None,
        colours=[(plots.colour(number), run.name) for number, run in enumerate(runs)],
        scores=plots.bar_chart(names, columns),
        score_table=(["measure", *(run.name for run in runs)], report.score_rows(runs)),
        comparisons=[_comparison_values(comparison, evaluation, measure) for comparison in evaluation.comparisons],
        groups=[
            (title, [report.group_table(run, group_of) for run in runs])
            for title, group_of in report.QUERY_GROUPS
            if len(run.groups(group_of)) > 1
        ],
        histograms=[(run.name, _score_histogram(run)) for run in runs],
        questions=[results_of(result.query.id) for result in ordered[:MAX_QUERIES]],
        hidden_count=len(ordered) - MAX_QUERIES,
        max_hits=_MAX_HITS,
        max_characters=_MAX_CHARACTERS,
    )


def render_report(template: str, **values: Any) -> str:
    """Return a report as a page in bunko's style; what it shows is escaped."""
    return _environment().get_template(template).render(version=__version__, now=now(), **values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("bunko.evaluation"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_visible,
    )  # fmt: skip


def _visible(value: Any) -> Any:
    # Bidirectional marks could make a page display something else than its source says. Markup was visible before.
    return remove_hidden_chars(value) if type(value) is str else "none" if value is None else value


def _headline_numbers(evaluation: Evaluation) -> list[tuple[str, str]]:
    run, k = evaluation.main_run, evaluation.plan.n_results
    cells = [
        (f"{run.measures[name]:.3f}", f"{name}, {run.name}")
        for name in (f"ndcg@{k}", f"recall@{k}", f"mrr@{k}", "f1")
        if name in run.measures
    ]
    return [*cells, (f"{report.latency_percentiles(run.results)['p50']:.1f} ms", "median search")]


def _comparison_values(comparison: Comparison, evaluation: Evaluation, measure: str) -> dict[str, Any]:
    runs = {run.name: run for run in evaluation.runs}
    compared_runs = [runs[name] for name in (comparison.first, comparison.second) if name in runs]
    changes = {}
    if len(compared_runs) == 2:
        before, after = (run.values.get(measure, {}) for run in compared_runs)
        changes = {query_id: after[query_id] - before[query_id] for query_id in before if query_id in after}
    results_of = _results_by_query(compared_runs)
    by_change = sorted(changes, key=lambda query: changes[query])
    losses = [query for query in by_change if changes[query] < 0][:_MAX_CHANGED]
    wins = [query for query in sorted(changes, key=lambda query: -changes[query]) if changes[query] > 0][:_MAX_CHANGED]
    return {
        "first": comparison.first,
        "second": comparison.second,
        "has_changes": bool(changes),
        "chart": plots.change_chart(list(changes.values())),
        "table": (report.COMPARISON_HEADERS, report.comparison_rows(comparison)),
        "losses": [(results_of(query), changes[query]) for query in losses],
        "wins": [(results_of(query), changes[query]) for query in wins],
    }


def _results_by_query(runs: Sequence[Run]) -> Callable[[str], list[tuple[str, QueryResult]]]:
    """Return what gives the results of a query in each run."""
    by_run = [(run.name, {result.query.id: result for result in run.results}) for run in runs]
    return lambda query_id: [(name, results[query_id]) for name, results in by_run]


def _score_histogram(run: Run) -> plots.Chart | None:
    documents = [document for result in run.results for document in result.documents]
    right = [document.score for document in documents if document.grade > 0]
    return plots.score_histogram(right, [document.score for document in documents if document.grade <= 0])
