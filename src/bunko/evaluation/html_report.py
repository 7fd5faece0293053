"""An evaluation in, `report.html` out: one file that needs no network and runs no script."""

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

# A page of thousands of questions is slow to open and nobody reads it; report.json has them all.
MAX_QUERIES = 200
_MAX_CHANGED = 10
_MAX_HITS = 5
_MAX_CHARACTERS = 120


def as_html(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """Return the page; whatever comes from documents and questions is escaped."""
    return html_page(f"{evaluation.judged_set.name} · bunko evaluate", _body(evaluation, verdict))


def html_page(title: str, body: Iterable[str]) -> str:
    """Return a page in our style, of a title and the lines of its body."""
    # The policy is a second lock behind the escaping: even a text that slipped through could load and run nothing.
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
    judged, k = evaluation.judged_set, evaluation.plan.n_results
    yield f"<h1>{escape_text(judged.name)}</h1>"
    yield (
        f'<p class="soft-text">{report.format_count(len(judged.queries), "question")} about'
        f" {report.format_count(evaluation.documents, 'document')} in {report.format_count(evaluation.chunks, 'chunk')}."  # noqa: E501
        f" Judged: the first {report.format_count(k, 'result')} of each. {now()}</p>"
    )
    shown = [name for name in (f"ndcg@{k}", f"recall@{k}", f"mrr@{k}", "f1") if name in evaluation.main_run.measures]
    cells = [
        f"<div><b>{evaluation.main_run.measures[name]:.3f}</b><span>{name}, {escape_text(evaluation.main_run.name)}</span></div>"  # noqa: E501
        for name in shown
    ]
    median = report.latency_percentiles(evaluation.main_run.results)["p50"]
    yield f'<div class="numbers">{"".join(cells)}<div><b>{median:.1f} ms</b><span>median search</span></div></div>'
    if verdict is not None:
        yield from _verdict_section(verdict)
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
    for one in evaluation.comparisons:
        yield from _comparison_section(one, evaluation)
    yield from _group_sections(evaluation)
    yield "<h2>Scores of right and wrong results</h2>"
    yield '<p class="legend"><span><i class="win"></i>answers</span><span><i class="loss"></i>others</span></p>'
    for run in evaluation.runs:
        right = [found.score for one in run.results for found in one.documents if found.grade > 0]
        wrong = [found.score for one in run.results for found in one.documents if found.grade <= 0]
        yield f"<section><h3>{escape_text(run.name)}</h3>{plots.draw_score_histogram(right, wrong)}</section>"
    yield from _query_section(evaluation)
    facts = " · ".join(f"{name} {'none' if value is None else value}" for name, value in evaluation.settings.items())
    yield f"<footer>{escape_text(facts)}<br>bunko {__version__}</footer>"


def _verdict_section(verdict: BaselineVerdict) -> Iterator[str]:
    word = "Regression" if verdict.has_regression else "No regression"
    yield f'<section class="verdict{" bad" if verdict.has_regression else ""}"><h3>{word} against {escape_text(verdict.path)}</h3>'  # noqa: E501
    yield html_table(report.BASELINE_HEADERS, report.baseline_rows(verdict)) + "</section>"


def _comparison_section(comparison: Comparison, evaluation: Evaluation) -> Iterator[str]:
    yield f"<h2>{escape_text(comparison.second)} compared with {escape_text(comparison.first)}</h2><section>"
    runs = {run.name: run for run in evaluation.runs}
    main = f"ndcg@{evaluation.plan.n_results}"
    pair = [runs[name] for name in (comparison.first, comparison.second) if name in runs]
    changed = _query_changes(pair[0], pair[1], main) if len(pair) == 2 else {}
    if changed:
        yield f'<p class="soft-text">Each bar is a question: how much {main} it wins or loses.</p>'
        yield plots.draw_changes(list(changed.values()))
    yield html_table(report.COMPARISON_HEADERS, report.comparison_rows(comparison)) + "</section>"
    answers = [(run.name, {result.query.id: result for result in run.results}) for run in pair]
    for title, sign in (("Greatest losses", 1), ("Greatest wins", -1)):
        ordered = sorted(
            (query for query in changed if changed[query] * sign < 0), key=lambda query: sign * changed[query]
        )
        if ordered:
            yield f"<h3>{title}</h3>"
        for query in ordered[:_MAX_CHANGED]:
            yield _query_details([(name, of[query]) for name, of in answers], main, changed[query])


def _query_changes(first: Run, second: Run, measure: str) -> dict[str, float]:
    before, after = first.values.get(measure, {}), second.values.get(measure, {})
    return {one: after[one] - before[one] for one in before if one in after}


def _group_sections(evaluation: Evaluation) -> Iterator[str]:
    for title, by in report.QUERY_GROUPS:
        if len(evaluation.main_run.groups(by)) < 2:
            continue
        yield f"<h2>By {title}</h2><section>"
        for run in evaluation.runs:
            head, rows = report.group_table(run, by)
            yield html_table(head, rows)
        yield "</section>"


def _query_section(evaluation: Evaluation) -> Iterator[str]:
    main = f"ndcg@{evaluation.plan.n_results}"
    scored = evaluation.main_run.values.get(main, {})
    ordered = sorted(evaluation.main_run.results, key=lambda one: scored.get(one.query.id, 2.0))
    rest = len(ordered) - MAX_QUERIES
    more = f" {rest:,} more are in report.json." if rest > 0 else ""
    yield "<h2>Questions</h2>"
    yield f'<p class="soft-text">Those with the lowest {main} of {escape_text(evaluation.main_run.name)} first.{more}</p>'  # noqa: E501
    runs = [(run.name, {one.query.id: one for one in run.results}) for run in evaluation.runs]
    for one in ordered[:MAX_QUERIES]:
        yield _query_details([(name, of[one.query.id]) for name, of in runs], main)


def _query_details(results: Sequence[tuple[str, QueryResult]], measure: str, change: float = 0.0) -> str:
    first = results[0][1]
    query = first.query
    tags = "".join(f'<span class="tag">{escape_text(tag)}</span>' for tag in (query.language, query.kind) if tag)
    score = f"<span>{first.measures[measure]:.3f}</span>" if measure in first.measures else ""
    if change:
        score = f'<span class="{"up" if change > 0 else "down"}">{change:+.3f}</span>'
    wanted = "".join(f"<li>{escape_text(name)} <b>grade {grade:g}</b></li>" for name, grade in query.grades.items())
    parts = [f"<h3>Wanted</h3><ul>{wanted}</ul>" if wanted else "<p>No document answers this.</p>"]
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
    for rank, one in enumerate(documents, 1):
        if rank <= _MAX_HITS or one.grade > 0:
            yield _hit_item(rank, one)


def _hit_item(rank: int, document: RetrievedDocument) -> str:
    right = document.grade > 0
    grade = f" <b>grade {document.grade:g}</b>" if right else ""
    return (
        f"<li value={rank}{' class=right' if right else ''}>{escape_text(document.citation)} · {document.score:.3f}{grade}"  # noqa: E501
        f"<blockquote>{escape_text(document.text[:_MAX_CHARACTERS])}</blockquote></li>"
    )


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    names = "".join(f"<th>{escape_text(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def escape_text(text: str) -> str:
    """Return a text as it may stand in a page."""
    # Marks that turn the direction of writing could make a page say what its source does not.
    return escape(remove_hidden_chars(text))
