"""Format an evaluation as `report.html`, one file without scripts or network access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from bunko import __version__
from bunko.evaluation import plots, report
from bunko.evaluation.baseline import BaselineVerdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import QueryResult, RetrievedDocument, Run
from bunko.evaluation.style import STYLE
from bunko.text.hidden_chars import remove_hidden_chars
from bunko.timing import now

# A page with thousands of queries opens slowly and nobody reads it; report.json contains all of them.
MAX_QUERIES = 200
_MAX_CHANGED = 10
_MAX_HITS = 5
_MAX_CHARACTERS = 120


def as_html(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """Return the report page; all text from documents and queries is escaped."""
    return html_page(f"{evaluation.judged_set.name} · bunko evaluate", _body(evaluation, verdict))


def html_page(title: str, body: Iterable[str]) -> str:
    """Return a page in bunko's style from a title and the lines of its body."""
    # The policy backs up the escaping: text that slipped through still could not load or run anything.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape_text(title)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _body(evaluation: Evaluation, verdict: BaselineVerdict | None) -> Iterator[str]:
    yield f"<h1>{escape_text(evaluation.judged_set.name)}</h1>"
    yield f'<p class="soft-text">{report.summary_line(evaluation)} {now()}</p>'
    yield _headline_numbers(evaluation)
    if verdict is not None:
        yield from _verdict_section(verdict)
    yield from _score_section(evaluation)
    for comparison in evaluation.comparisons:
        yield from _comparison_section(comparison, evaluation)
    yield from _group_sections(evaluation)
    yield "<h2>Scores of right and wrong results</h2>"
    yield '<p class="legend"><span><i class="win"></i>answers</span><span><i class="loss"></i>others</span></p>'
    for run in evaluation.runs:
        documents = [document for result in run.results for document in result.documents]
        right = [document.score for document in documents if document.grade > 0]
        wrong = [document.score for document in documents if document.grade <= 0]
        yield f"<section><h3>{escape_text(run.name)}</h3>{plots.draw_score_histogram(right, wrong)}</section>"
    yield from _query_section(evaluation)
    facts = " · ".join(f"{name} {'none' if value is None else value}" for name, value in evaluation.settings.items())
    yield f"<footer>{escape_text(facts)}<br>bunko {__version__}</footer>"


def _headline_numbers(evaluation: Evaluation) -> str:
    run, k = evaluation.main_run, evaluation.plan.n_results
    cells = [
        f"<div><b>{run.measures[name]:.3f}</b><span>{name}, {escape_text(run.name)}</span></div>"
        for name in (f"ndcg@{k}", f"recall@{k}", f"mrr@{k}", "f1")
        if name in run.measures
    ]
    median = report.latency_percentiles(run.results)["p50"]
    return f'<div class="numbers">{"".join(cells)}<div><b>{median:.1f} ms</b><span>median search</span></div></div>'


def _score_section(evaluation: Evaluation) -> Iterator[str]:
    yield "<h2>Scores</h2><section>"
    yield plots.draw_legend([run.name for run in evaluation.runs])
    names = list(dict.fromkeys(name for run in evaluation.runs for name in run.measures))
    yield plots.draw_bars(
        names,
        {
            run.name: {name: (run.measures[name], *run.intervals[name]) for name in run.measures}
            for run in evaluation.runs
        },
    )
    yield '<p class="soft-text">The thin line is the 95 % interval of the mean, by bootstrap over the questions.</p>'
    yield (
        html_table(["measure", *(run.name for run in evaluation.runs)], report.score_rows(evaluation.runs))
        + "</section>"
    )


def _verdict_section(verdict: BaselineVerdict) -> Iterator[str]:
    title, extra_class = ("Regression", " bad") if verdict.has_regression else ("No regression", "")
    yield f'<section class="verdict{extra_class}"><h3>{title} against {escape_text(verdict.path)}</h3>'
    yield html_table(report.BASELINE_HEADERS, report.baseline_rows(verdict)) + "</section>"


def _comparison_section(comparison: Comparison, evaluation: Evaluation) -> Iterator[str]:
    yield f"<h2>{escape_text(comparison.second)} compared with {escape_text(comparison.first)}</h2><section>"
    runs = {run.name: run for run in evaluation.runs}
    measure = f"ndcg@{evaluation.plan.n_results}"
    compared_runs = [runs[name] for name in (comparison.first, comparison.second) if name in runs]
    changes = _query_changes(compared_runs[0], compared_runs[1], measure) if len(compared_runs) == 2 else {}
    if changes:
        yield f'<p class="soft-text">Each bar is a question: how much {measure} it wins or loses.</p>'
        yield plots.draw_changes(list(changes.values()))
    yield html_table(report.COMPARISON_HEADERS, report.comparison_rows(comparison)) + "</section>"
    answers = [(run.name, {result.query.id: result for result in run.results}) for run in compared_runs]
    for title, sign in (("Greatest losses", 1), ("Greatest wins", -1)):
        ordered = sorted(
            (query for query in changes if changes[query] * sign < 0), key=lambda query: sign * changes[query]
        )
        if ordered:
            yield f"<h3>{title}</h3>"
        for query in ordered[:_MAX_CHANGED]:
            yield _query_details(
                [(name, results_by_id[query]) for name, results_by_id in answers], measure, changes[query]
            )


def _query_changes(first: Run, second: Run, measure: str) -> dict[str, float]:
    before, after = first.values.get(measure, {}), second.values.get(measure, {})
    return {query_id: after[query_id] - before[query_id] for query_id in before if query_id in after}


def _group_sections(evaluation: Evaluation) -> Iterator[str]:
    for title, group_of in report.QUERY_GROUPS:
        if len(evaluation.main_run.groups(group_of)) < 2:
            continue
        yield f"<h2>By {title}</h2><section>"
        for run in evaluation.runs:
            head, rows = report.group_table(run, group_of)
            yield html_table(head, rows)
        yield "</section>"


def _query_section(evaluation: Evaluation) -> Iterator[str]:
    measure = f"ndcg@{evaluation.plan.n_results}"
    scores = evaluation.main_run.values.get(measure, {})
    ordered = sorted(evaluation.main_run.results, key=lambda result: scores.get(result.query.id, 2.0))
    hidden_count = len(ordered) - MAX_QUERIES
    more = f" {hidden_count:,} more are in report.json." if hidden_count > 0 else ""
    name = escape_text(evaluation.main_run.name)
    yield "<h2>Questions</h2>"
    yield f'<p class="soft-text">Those with the lowest {measure} of {name} first.{more}</p>'
    runs = [(run.name, {result.query.id: result for result in run.results}) for run in evaluation.runs]
    for result in ordered[:MAX_QUERIES]:
        yield _query_details([(name, results_by_id[result.query.id]) for name, results_by_id in runs], measure)


def _query_details(results: Sequence[tuple[str, QueryResult]], measure: str, change: float = 0.0) -> str:
    first = results[0][1]
    query = first.query
    tags = "".join(f'<span class="tag">{escape_text(tag)}</span>' for tag in (query.language, query.kind) if tag)
    score = f"<span>{first.measures[measure]:.3f}</span>" if measure in first.measures else ""
    if change:
        score = f'<span class="{"up" if change > 0 else "down"}">{change:+.3f}</span>'
    expected = "".join(f"<li>{escape_text(name)} <b>grade {grade:g}</b></li>" for name, grade in query.grades.items())
    parts = [f"<h3>Expected</h3><ul>{expected}</ul>" if expected else "<p>No document answers this.</p>"]
    if query.notes:
        parts.append(f'<p class="soft-text">{escape_text(query.notes)}</p>')
    for name, result in results:
        hits = "".join(_hit_items(result.documents)) or "<li>Nothing was found.</li>"
        parts.append(f"<h3>{escape_text(name)}</h3><ol>{hits}</ol>")
    return (
        f"<details><summary><span>{escape_text(query.text)}</span>{tags}{score}</summary>"
        f'<div><p class="facts">{escape_text(query.id)}</p>{"".join(parts)}</div></details>'
    )


def _hit_items(documents: Sequence[RetrievedDocument]) -> Iterator[str]:
    for rank, document in enumerate(documents, 1):
        if rank <= _MAX_HITS or document.grade > 0:
            yield _hit_item(rank, document)


def _hit_item(rank: int, document: RetrievedDocument) -> str:
    is_relevant = document.grade > 0
    grade = f" <b>grade {document.grade:g}</b>" if is_relevant else ""
    extra_class = " class=right" if is_relevant else ""
    return (
        f"<li value={rank}{extra_class}>{escape_text(document.citation)} · {document.score:.3f}{grade}"
        f"<blockquote>{escape_text(document.text[:_MAX_CHARACTERS])}</blockquote></li>"
    )


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; cells are escaped."""
    names = "".join(f"<th>{escape_text(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def escape_text(text: str) -> str:
    """Return the text escaped for HTML, without hidden characters."""
    # Bidirectional marks could make a page display something else than its source says.
    return escape(remove_hidden_chars(text))
