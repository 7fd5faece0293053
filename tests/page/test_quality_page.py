"""The page about search quality: reports and sweeps as pictures, and results to judge."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from bunko.evaluation.judge import Judgements, default_file
from bunko.evaluation.report_store import ReportStore
from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor

REPORT: dict[str, Any] = {
    "created_at": "2026-01-02T10:00:00+00:00",
    "judged": {"name": "<b>notes</b>", "queries": 2, "documents": 3, "chunks": 4},
    "n_results": 5,
    "mode": "hybrid",
    "settings": {"vector_weight": 0.3},
    "modes": {
        mode: {
            "measures": {"ndcg@5": score, "mrr@5": score},
            "intervals": {"ndcg@5": [score - 0.1, score + 0.1], "mrr@5": [score - 0.2, score + 0.1]},
            "latency_ms": {"p50": 1.5},
            "languages": {"ja": {"queries": 1, "measures": {"ndcg@5": score}}},
            "queries": [
                {"id": "1", "query": "鏡を磨く", "language": "ja", "measures": {"ndcg@5": 0.25}},
                {"id": "2", "query": "bread", "language": "en", "measures": {"ndcg@5": 1.0}},
            ],
        }
        for mode, score in (("bm25", 0.5), ("hybrid", 0.75))
    },
    "comparisons": [
        {
            "first": "bm25",
            "second": "hybrid",
            "measures": {
                "ndcg@5": {"difference": 0.25, "interval": [0.1, 0.4], "p": 0.01, "wins": 2, "losses": 0, "ties": 0}
            },
        }
    ],
}
SWEEP: dict[str, Any] = {
    "created_at": "2026-01-03T10:00:00+00:00",
    "judged": {"name": "notes", "queries": 8, "documents": 3, "tuning": 4, "held_out": 4},
    "measure": "ndcg@10",
    "measured": 4,
    "total": 4,
    "grid": [
        {"name": "k1", "key": "search.k1", "values": [0.8, 1.6], "influence": 0.1},
        {"name": "b", "key": "search.b", "values": [0.5, 1.0], "influence": 0.01},
    ],
    "best": {"settings": {"k1": 1.6, "b": 0.5}, "held_out": 0.7, "tuning": 0.8, "interval": [0.6, 0.8]},
    "now": {"settings": {"k1": 1.2, "b": 0.75}, "held_out": 0.6, "tuning": 0.6, "interval": [0.5, 0.7]},
    "difference": {"value": 0.1, "interval": [0.02, 0.2], "p": 0.02},
    "verdict": "better",
    "toml": "[search]\nk1 = 1.6",
    "points": [
        {"settings": {"k1": k1, "b": b}, "tuning": k1 / 2 - b / 10, "held_out": k1 / 2.2 - b / 10, "measures": {}}
        for k1 in (0.8, 1.6)
        for b in (0.5, 1.0)
    ],
}


@pytest.fixture
def reports(library: Library) -> ReportStore:
    store = ReportStore(library.paths.folder)
    store.keep(REPORT)
    store.keep(SWEEP)
    return store


def test_without_reports_the_page_says_how_to_get_some(visit: Visitor) -> None:
    text = visit(is_local=True).get("/quality").text
    assert "bunko evaluate" in text
    assert "/evaluations" in text


def test_an_evaluation_is_drawn_with_its_intervals(visit: Visitor, reports: ReportStore) -> None:
    report_id = reports.all()[1].id
    text = visit(is_local=True).get("/quality", params={"report": report_id}).text
    assert "<b>notes</b>" not in text
    assert "&lt;b&gt;notes&lt;/b&gt;" in text
    assert re.findall(r'<svg class="score"[^>]*aria-label="([^"]*)"', text)[:2] == [
        "ndcg@5, bm25: 0.500, 95 % interval 0.400 to 0.600",
        "ndcg@5, hybrid: 0.750, 95 % interval 0.650 to 0.850",
    ]
    assert '<rect class="series-1" width="75"' in text
    assert "+0.250" in text
    assert text.index("鏡を磨く") < text.index("bread")  # the worst first
    assert 'href="/?q=%E9%8F%A1%E3%82%92%E7%A3%A8%E3%81%8F"' in text


def test_a_sweep_is_drawn_as_a_curve_for_each_setting(visit: Visitor, reports: ReportStore) -> None:
    text = visit(is_local=True, language="ja").get("/quality", params={"report": reports.all()[0].id}).text
    assert len(re.findall(r'<svg class="curve"', text)) == 2
    assert len(re.findall(r'<polyline class="line-0" points="[\d. ,-]+"', text)) == 2
    assert "k1 = 1.6" in text
    assert "確認されました" in text


@pytest.mark.parametrize("part", ["modes", "comparisons", "grid", "points", "best", "judged", "settings"])
@pytest.mark.parametrize("value", [None, [], {}, 3, "x"])
def test_a_damaged_report_breaks_no_page(browser: TestClient, library: Library, part: str, value: Any) -> None:
    store = ReportStore(library.paths.folder)
    for report in (REPORT, SWEEP):
        if part in report:
            path = store.keep(report | {part: value})
            assert browser.get("/quality").status_code == 200
            assert browser.get("/quality", params={"report": path.stem}).status_code in (200, 404)


def test_reports_are_for_those_who_may_read_everything(visit: Visitor, reports: ReportStore) -> None:
    text = visit(Rights(read=("docs",))).get("/quality").text
    assert "notes" not in text


def test_results_are_shown_with_their_grades(visit: Visitor, library: Library) -> None:
    Judgements(default_file(library, library.resolve_tool("docs")), "docs").set_grade("mirror", "mirror.md", 2)
    text = visit(is_local=True).get("/quality/judge", params={"tool": "docs", "q": "mirror"}).text
    assert re.search(r'data-path="mirror.md" data-grade="2"', text)
    assert "Polish the <mark>mirror</mark>" in text
    assert "data-grade-of" in text


def test_recorded_searches_are_offered(visit: Visitor, library: Library) -> None:
    library.store.cache.log_search("鏡の手入れ", "docs", "2026-01-01", limit=10)
    text = visit(is_local=True, language="ja").get("/quality/judge", params={"tool": "docs"}).text
    assert "鏡の手入れ" in text


def test_only_tools_that_somebody_may_change_can_be_judged(visit: Visitor) -> None:
    limited = visit(Rights(read=("kitchen",), write=("docs",)))
    text = limited.get("/quality/judge").text
    assert '<option value="docs"' in text
    assert "kitchen" not in text
    assert limited.get("/quality/judge", params={"tool": "kitchen", "q": "味噌"}).status_code == 403
    assert visit(Rights(read=("*",))).get("/quality/judge").status_code == 403
    assert "/quality/judge" not in visit(Rights(read=("*",))).get("/quality").text
    assert visit(is_local=True, read_only=True).get("/quality/judge").status_code == 403
