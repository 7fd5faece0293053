"""An evaluation in, `report.html` out: one file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from bunko import __version__
from bunko.evaluation import plots, report
from bunko.evaluation.baseline import Verdict
from bunko.evaluation.compare import Comparison
from bunko.evaluation.evaluate import Evaluation
from bunko.evaluation.run import Found, Result, Run
from bunko.evaluation.style import STYLE
from bunko.text.hidden_chars import clean
from bunko.timing import now

# A page of thousands of questions is slow to open and nobody reads it; report.json has them all.
MOST_QUESTIONS = 200
_MOST_CHANGED = 10
_MOST_HITS = 5
_MOST_CHARACTERS = 120


def as_html(done: Evaluation, verdict: Verdict | None = None) -> str:
    """Return the page; whatever comes from documents and questions is escaped."""
    return whole(f"{done.judged.name} · bunko evaluate", _body(done, verdict))


def whole(title: str, body: Iterable[str]) -> str:
    """Return a page in our style, of a title and the lines of its body."""
    # The policy is a second lock behind the escaping: even a text that slipped through could load and run nothing.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title)}</title><style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _body(done: Evaluation, verdict: Verdict | None) -> Iterator[str]:
    judged, k = done.judged, done.plan.n_results
    yield f"<h1>{safe(judged.name)}</h1>"
    yield (
        f'<p class="soft-text">{report.counted(len(judged.queries), "question")} about'
        f" {report.counted(done.documents, 'document')} in {report.counted(done.chunks, 'chunk')}."
        f" Judged: the first {report.counted(k, 'result')} of each. {now()}</p>"
    )
    shown = [name for name in (f"ndcg@{k}", f"recall@{k}", f"mrr@{k}", "f1") if name in done.main.measures]
    cells = [
        f"<div><b>{done.main.measures[name]:.3f}</b><span>{name}, {safe(done.main.name)}</span></div>" for name in shown
    ]
    median = report.latency(done.main.results)["p50"]
    yield f'<div class="numbers">{"".join(cells)}<div><b>{median:.1f} ms</b><span>median search</span></div></div>'
    if verdict is not None:
        yield from _verdict(verdict)
    yield "<h2>Scores</h2><section>"
    yield plots.legend([run.name for run in done.runs])
    names = list(dict.fromkeys(name for run in done.runs for name in run.measures))
    yield plots.bars(
        names,
        {run.name: {name: (run.measures[name], *run.intervals[name]) for name in run.measures} for run in done.runs},
    )
    yield '<p class="soft-text">The thin line is the 95 % interval of the mean, by bootstrap over the questions.</p>'
    yield table(["measure", *(run.name for run in done.runs)], report.scores(done.runs)) + "</section>"
    for one in done.comparisons:
        yield from _comparison(one, done)
    yield from _groups(done)
    yield "<h2>Scores of right and wrong results</h2>"
    yield '<p class="legend"><span><i class="win"></i>answers</span><span><i class="loss"></i>others</span></p>'
    for run in done.runs:
        right = [found.score for one in run.results for found in one.found if found.grade > 0]
        wrong = [found.score for one in run.results for found in one.found if found.grade <= 0]
        yield f"<section><h3>{safe(run.name)}</h3>{plots.spread(right, wrong)}</section>"
    yield from _questions(done)
    facts = " · ".join(f"{name} {'none' if value is None else value}" for name, value in done.settings.items())
    yield f"<footer>{safe(facts)}<br>bunko {__version__}</footer>"


def _verdict(verdict: Verdict) -> Iterator[str]:
    word = "Regression" if verdict.regressed else "No regression"
    yield f'<section class="verdict{" bad" if verdict.regressed else ""}"><h3>{word} against {safe(verdict.path)}</h3>'
    yield table(report.BASELINE, report.changes(verdict)) + "</section>"


def _comparison(one: Comparison, done: Evaluation) -> Iterator[str]:
    yield f"<h2>{safe(one.second)} compared with {safe(one.first)}</h2><section>"
    runs = {run.name: run for run in done.runs}
    main = f"ndcg@{done.plan.n_results}"
    pair = [runs[name] for name in (one.first, one.second) if name in runs]
    changed = _changes(pair[0], pair[1], main) if len(pair) == 2 else {}
    if changed:
        yield f'<p class="soft-text">Each bar is a question: how much {main} it wins or loses.</p>'
        yield plots.changes(list(changed.values()))
    yield table(report.COMPARED, report.compared(one)) + "</section>"
    answers = [(run.name, {result.query.id: result for result in run.results}) for run in pair]
    for title, sign in (("Greatest losses", 1), ("Greatest wins", -1)):
        ordered = sorted(
            (query for query in changed if changed[query] * sign < 0), key=lambda query: sign * changed[query]
        )
        if ordered:
            yield f"<h3>{title}</h3>"
        for query in ordered[:_MOST_CHANGED]:
            yield _question([(name, of[query]) for name, of in answers], main, changed[query])


def _changes(first: Run, second: Run, measure: str) -> dict[str, float]:
    before, after = first.values.get(measure, {}), second.values.get(measure, {})
    return {one: after[one] - before[one] for one in before if one in after}


def _groups(done: Evaluation) -> Iterator[str]:
    for title, by in report.GROUPS:
        if len(done.main.groups(by)) < 2:
            continue
        yield f"<h2>By {title}</h2><section>"
        for run in done.runs:
            head, rows = report.grouped(run, by)
            yield table(head, rows)
        yield "</section>"


def _questions(done: Evaluation) -> Iterator[str]:
    main = f"ndcg@{done.plan.n_results}"
    scored = done.main.values.get(main, {})
    ordered = sorted(done.main.results, key=lambda one: scored.get(one.query.id, 2.0))
    rest = len(ordered) - MOST_QUESTIONS
    more = f" {rest:,} more are in report.json." if rest > 0 else ""
    yield "<h2>Questions</h2>"
    yield f'<p class="soft-text">Those with the lowest {main} of {safe(done.main.name)} first.{more}</p>'
    runs = [(run.name, {one.query.id: one for one in run.results}) for run in done.runs]
    for one in ordered[:MOST_QUESTIONS]:
        yield _question([(name, of[one.query.id]) for name, of in runs], main)


def _question(answers: Sequence[tuple[str, Result]], main: str, change: float = 0.0) -> str:
    first = answers[0][1]
    query = first.query
    tags = "".join(f'<span class="tag">{safe(tag)}</span>' for tag in (query.language, query.kind) if tag)
    score = f"<span>{first.measures[main]:.3f}</span>" if main in first.measures else ""
    if change:
        score = f'<span class="{"up" if change > 0 else "down"}">{change:+.3f}</span>'
    wanted = "".join(f"<li>{safe(name)} <b>grade {grade:g}</b></li>" for name, grade in query.grades.items())
    parts = [f"<h3>Wanted</h3><ul>{wanted}</ul>" if wanted else "<p>No document answers this.</p>"]
    if query.notes:
        parts.append(f'<p class="soft-text">{safe(query.notes)}</p>')
    for name, result in answers:
        hits = "".join(_hits(result.found)) or "<li>Nothing was found.</li>"
        parts.append(f"<h3>{safe(name)}</h3><ol>{hits}</ol>")
    return (
        f"<details><summary><span>{safe(query.text)}</span>{tags}{score}</summary>"
        f'<div><p class="facts">{safe(query.id)}</p>{"".join(parts)}</div></details>'
    )


def _hits(found: Sequence[Found]) -> Iterator[str]:
    for rank, one in enumerate(found, 1):
        if rank <= _MOST_HITS or one.grade > 0:
            yield _hit(rank, one)


def _hit(rank: int, found: Found) -> str:
    right = found.grade > 0
    grade = f" <b>grade {found.grade:g}</b>" if right else ""
    return (
        f"<li value={rank}{' class=right' if right else ''}>{safe(found.citation)} · {found.score:.3f}{grade}"
        f"<blockquote>{safe(found.text[:_MOST_CHARACTERS])}</blockquote></li>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    names = "".join(f"<th>{safe(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def safe(text: str) -> str:
    """Return a text as it may stand in a page."""
    # Marks that turn the direction of writing could make a page say what its source does not.
    return escape(clean(text))
