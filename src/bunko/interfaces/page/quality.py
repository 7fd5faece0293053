"""The pages about search quality: the reports of evaluations and sweeps as pictures, and judging with single keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bunko.errors import AccessDenied
from bunko.evaluation.judge import JudgeAccess, JudgedHit
from bunko.evaluation.report_store import FOLDER, ReportStore
from bunko.interfaces.api.routes.quality import report_store
from bunko.interfaces.page.library import time_values
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.results import mark_terms
from bunko.interfaces.page.view import PageView
from bunko.interfaces.text import single_line
from bunko.library.access import ASK_HINT
from bunko.search.passages import display_label, snippet_terms, split_author
from bunko.text.labels import remove_hidden_chars
from bunko.text.readable import excerpt_text, readable_title
from bunko.text.snippets import SnippetTerms

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess

_MAX_MEASURES, _MAX_QUERIES, _MAX_VALUES = 30, 20, 60
COLOURS = 4
_MAX_LABELS = 6  # of the values of a setting
# Of the pictures of sweeps, in the units of their viewBox.
_WIDTH, _HEIGHT = 320, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 12, 10, 26


@dataclass(frozen=True, slots=True)
class Score:
    """A mean with its interval, from 0 to 1."""

    measure: str
    mode: str
    colour: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The best scores by the values of one setting, on both halves of the questions."""

    name: str
    width: int
    height: int
    lines: list[list[tuple[float, float, str]]]  # x, y and what it says
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    now_x: float | None  # where the current setting is

    @property
    def left(self) -> int:
        """Where the curve begins."""
        return _LEFT

    @property
    def base(self) -> int:
        """Where its lower axis is."""
        return _HEIGHT - _BOTTOM


def scores(report: Mapping[str, Any]) -> list[Score]:
    """Return the measures of an evaluation, each by its modes."""
    modes = [(str(name), run) for name, run in _mapping(report.get("modes")).items() if isinstance(run, dict)]
    names = dict.fromkeys(str(name) for _, run in modes for name in _mapping(run.get("measures")))
    rows = []
    for measure in list(names)[:_MAX_MEASURES]:
        for index, (mode, run) in enumerate(modes):
            value = _number(_mapping(run.get("measures")).get(measure))
            if value is None:
                continue
            interval = _mapping(run.get("intervals")).get(measure)
            low, high = interval if isinstance(interval, list) and len(interval) == 2 else (None, None)
            rows.append(Score(measure, single_line(mode), index % COLOURS, value, _number(low), _number(high)))
    return rows


def comparisons(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how modes differ, by measure."""
    tables = []
    for comparison in _list(report.get("comparisons")):
        rows = [
            {
                "measure": str(name),
                "difference": difference,
                "low": _number(interval[0]),
                "high": _number(interval[1]),
                "wins": row.get("wins"),
                "losses": row.get("losses"),
            }
            for name, row in _mapping(_mapping(comparison).get("measures")).items()
            if isinstance(row, dict)
            and (difference := _number(row.get("difference"))) is not None
            and isinstance(interval := row.get("interval"), list)
            and len(interval) == 2
        ]
        if rows:
            first, second = (single_line(str(comparison.get(name, ""))) for name in ("first", "second"))
            tables.append({"first": first, "second": second, "rows": rows})
    return tables


def worst_queries(report: Mapping[str, Any], measure: str) -> list[tuple[str, float]]:
    """Return the questions with the lowest scores in the main mode."""
    run = _mapping(_mapping(report.get("modes")).get(str(report.get("mode"))))
    rows = [
        (single_line(str(row.get("query", ""))), score)
        for row in _list(run.get("queries"))
        if isinstance(row, dict) and (score := _number(_mapping(row.get("measures")).get(measure))) is not None
    ]
    return sorted(rows, key=lambda row: row[1])[:_MAX_QUERIES]


def curves(sweep: Mapping[str, Any]) -> list[Curve]:
    """Return a curve for each setting of a sweep that has several values."""
    points = [point for point in _list(sweep.get("points")) if isinstance(point, dict)]
    now = _mapping(_mapping(sweep.get("now")).get("settings"))
    charts = []
    for dimension in _list(sweep.get("grid")):
        if not isinstance(dimension, dict) or not isinstance(dimension.get("values"), list):
            continue
        name = str(dimension.get("name", ""))
        best = [(value, *_best_scores(points, name, value)) for value in dimension["values"][:_MAX_VALUES]]
        rows = [(value, tuning, held_out) for value, tuning, held_out in best if tuning is not None]
        if len(rows) > 1:
            charts.append(_curve(name, rows, now.get(name)))
    return charts


def _best_scores(points: list[Any], name: str, value: Any) -> tuple[float | None, float | None]:
    """Return the scores of the point that is best on the half for choosing, among those with a value."""
    scored = [
        (tuning, _number(point.get("held_out")))
        for point in points
        if _mapping(point.get("settings")).get(name) == value and (tuning := _number(point.get("tuning"))) is not None
    ]
    return max(scored, key=lambda score: score[0]) if scored else (None, None)


def _curve(name: str, rows: list[tuple[Any, float, float | None]], now: Any) -> Curve:
    numbers = [_number(value) for value, _, _ in rows]
    is_numeric = all(number is not None for number in numbers) and numbers == sorted(numbers, key=lambda n: n or 0.0)
    places = [number or 0.0 for number in numbers] if is_numeric else [float(index) for index in range(len(rows))]
    all_scores = [score for _, tuning, held_out in rows for score in (tuning, held_out) if score is not None]
    low, high = min(all_scores), max(all_scores)
    margin = max((high - low) * 0.1, 0.005)
    low, high = low - margin, high + margin

    def x_of(place: float) -> float:
        span = places[-1] - places[0] or 1.0
        return round(_LEFT + (place - places[0]) / span * (_WIDTH - _LEFT - _RIGHT), 1)

    def y_of(score: float) -> float:
        return round(_TOP + (high - score) / (high - low) * (_HEIGHT - _TOP - _BOTTOM), 1)

    lines: list[list[tuple[float, float, str]]] = [[], []]
    for place, (value, *both) in zip(places, rows, strict=True):
        for line, score in zip(lines, both, strict=True):
            if score is not None:
                line.append((x_of(place), y_of(score), f"{_text(value)}: {score:.4f}"))
    # At most six, spread evenly, the first and the last among them.
    count = min(len(rows), _MAX_LABELS)
    labelled = [round(number * (len(rows) - 1) / max(count - 1, 1)) for number in range(count)]
    current = _number(now) if is_numeric else None
    is_inside = current is not None and places[0] <= current <= places[-1]
    return Curve(
        single_line(name), _WIDTH, _HEIGHT, lines,
        [Tick(x_of(places[index]), _text(rows[index][0])) for index in labelled],
        [Tick(y_of(score), f"{score:.3f}") for score in (low + margin, (low + high) / 2, high - margin)],
        x_of(current) if is_inside and current is not None else None,
    )  # fmt: skip


def facts(values: Any) -> Iterator[tuple[str, str]]:
    """Return names and values as texts."""
    for name, value in _mapping(values).items():
        if value is not None:
            yield single_line(str(name)), _text(value)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else single_line(str(value))[:80]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


_VERDICTS = {"better": "better", "not proven": "not_proven", "same": "same"}


class QualityPage(PageView):
    """Shows reports."""

    async def answer(self, request: Request) -> Response:
        """Return the page with all reports, and the one that the address names, else the newest."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        store = None
        with suppress(AccessDenied):
            store = report_store(library)
        reports, local_time = store.all() if store else [], library.readable.local_time()
        report_id = request.query_params.get("report", "") or (reports[0].id if reports else "")
        values: dict[str, Any] = {
            "reports": [
                {
                    "id": report.id,
                    "kind": report.kind,
                    "name": single_line(report.name),
                    "queries": report.queries,
                    "created": time_values(report.created_at, local_time),
                    "measure": single_line(report.measure),
                    "score": report.score,
                }
                for report in reports
            ],
            "chosen": report_id,
            "report": _report_values(store, report_id) if store and report_id else None,
            "can_see": store is not None,
            "folder": single_line(str(store.folder)) if store and library.caller.rights.writes_all else f"…/{FOLDER}",
            "can_judge": not self.registry.is_read_only and bool(JudgeAccess(library).tools()),
        }
        return render(request, "quality.html", values)


def _report_values(store: ReportStore, report_id: str) -> dict[str, Any]:
    stored, content = store.load(report_id)
    values: dict[str, Any] = {"kind": stored.kind, "name": single_line(stored.name), "queries": stored.queries}
    values["facts"] = list(facts(content.get("settings"))) if stored.kind == "evaluation" else []
    if stored.kind == "evaluation":
        rows = scores(content)
        return values | {
            "scores": rows,
            "mode": single_line(str(content.get("mode", ""))),
            "modes": list(dict.fromkeys((score.mode, score.colour) for score in rows)),
            "comparisons": comparisons(content),
            "measure": stored.measure,
            "worst": worst_queries(content, stored.measure),
        }
    best = content.get("best")
    return values | {
        "curves": curves(content),
        "measure": single_line(stored.measure),
        "verdict": _VERDICTS.get(str(content.get("verdict")), ""),
        "best": list(facts(best.get("settings"))) if isinstance(best, dict) else [],
        "toml": str(content.get("toml") or ""),
        "measured": content.get("measured"),
        "total": content.get("total"),
    }


_DEPTH = 5  # results of each search mode, as many as bunko judge takes
_MAX_CHARS = 900
_MAX_WAITING_QUERIES = 50


class JudgePage(PageView):
    """Shows what a query finds, each with its grade."""

    async def answer(self, request: Request) -> Response:
        """Return the page with the documents to judge, or the searches that wait for it."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        judge = JudgeAccess(library)
        tools = judge.tools()
        if self.registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        if not tools:
            raise AccessDenied("This token may not change the library", hint=ASK_HINT)
        query = request.query_params.get("q", "").strip()
        tool = request.query_params.get("tool", "") or tools[0].name
        terms = snippet_terms(query)
        documents = judge.documents(tool, query, depth=_DEPTH) if query else []
        query_count, judgement_count = judge.counts(tool)
        values: dict[str, Any] = {
            "tools": [(candidate.name, single_line(candidate.name)) for candidate in tools],
            "tool": tool,
            "query": query,
            "documents": [_document_values(document, query, terms) for document in documents],
            "waiting": judge.waiting_queries(tool)[:_MAX_WAITING_QUERIES],
            "query_count": query_count,
            "judgement_count": judgement_count,
        }
        return render(request, "judge.html", values, script_sections=["judge"])


def _document_values(document: JudgedHit, query: str, terms: SnippetTerms) -> dict[str, Any]:
    hit = document.hit
    text = excerpt_text(remove_hidden_chars(hit.chunk.text), hit.uri)
    labels = [display_label(readable_title(label, hit.uri)) for label in split_author(hit)[1]]
    name = display_label(readable_title(hit.title, hit.uri)) or single_line(hit.uri)
    return {
        "path": hit.uri,
        "name": name,
        "trail": [label for label in labels if label and label != name],
        "location": single_line(hit.citation),
        "date": hit.date[:10],
        "text": mark_terms(text[:_MAX_CHARS] + ("…" if len(text) > _MAX_CHARS else ""), terms),
        "grade": "" if document.grade is None else f"{document.grade:g}",
        "address": document_address(hit.tool, hit.uri, q=query),
    }
