"""Why a result was found: numbers that add up, bars, and other settings tried on the page."""

from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

import pytest
from starlette.testclient import TestClient

from bunko.evaluation.judge import Judgements, default_file
from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of all tables."""
    return [
        [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)]
        for table in re.findall(r"<table.*?</table>", text, re.S)
    ]


@pytest.mark.parametrize(
    "options", [{}, {"mode": "bm25"}, {"mode": "semantic"}, {"vector_weight": "0.3"}, {"fusion": "rrf"}], ids=str
)
def test_the_numbers_of_the_panel_add_up_to_the_score(browser: TestClient, options: dict[str, str]) -> None:
    text = browser.get("/", params={"q": "polish the telescope mirror", "why": "1", **options}).text
    arms, *terms = tables(text)
    assert sum(Decimal(row[-1]) for row in arms[1:-1]) == Decimal(arms[-1][-1])
    if terms and len(terms[0][-1]) == 2:
        assert sum(Decimal(row[-1]) for row in terms[0][1:-1]) == Decimal(terms[0][-1][-1])


def test_the_panel_names_fields_kinds_and_the_best_sentence(visit: Visitor) -> None:
    text = visit(language="ja").get("/", params={"q": "mirror を磨く", "why": "1", "tag": "天文"}).text
    assert "訳語" in text
    assert "見出し" in text
    assert "<blockquote>望遠鏡の鏡は柔らかい布で磨く。</blockquote>" in text


def test_the_panel_shows_the_sentence_that_decided_the_similarity(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "polish the telescope mirror", "why": "1", "mode": "semantic"}).text
    [(score, sentence), *_] = re.findall(
        r'<h3>Nearest sentence <b class="number">([\d.]+)</b></h3>.*?<blockquote>(.*?)</blockquote>', text, re.S
    )
    assert float(score) > 0
    assert sentence in unescape(text)


def test_the_bars_of_both_arms_end_at_the_score(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "telescope mirror", "why": "1"}).text
    picture = re.findall(r'<svg class="bars" viewBox="0 0 400.0 16".*?</svg>', text, re.S)[0]
    bars = re.findall(r'<rect class="bar-(bm25|vector)" x="([\d.]+)" y="0" width="([\d.]+)"', picture)
    score = float(tables(text)[0][-1][-1])
    _, x, width = bars[-1]
    assert float(x) + float(width) == pytest.approx(400 * min(score, 1), abs=3)
    assert float(bars[1][1]) == pytest.approx(float(bars[0][2]), abs=0.1)


def test_searches_are_explained_only_where_somebody_asks(browser: TestClient) -> None:
    assert 'class="why"' not in browser.get("/", params={"q": "mirror"}).text


def test_other_settings_show_which_ranks_they_change(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "mirror cloth dough", "tool": "docs", "k1": "0", "b": "1"}).text
    assert "Ranks that changed on this page" in text
    assert 'name="k1"' in text
    assert 'value="0"' in text
    plain = browser.get("/", params={"q": "mirror", "tuning": "true"}).text
    assert "Ranks that changed on this page" not in plain


def judge(library: Library) -> None:
    judgements = Judgements(default_file(library, library.resolve_tool("docs")), "docs")
    judgements.set_grade("polish mirror", "mirror.md", 1)
    judgements.set_grade("鏡を磨く", "guide/望遠鏡.md", 1)


def test_where_answers_were_judged_the_measure_is_shown_before_and_after(browser: TestClient, library: Library) -> None:
    search = {"q": "mirror", "tool": "docs", "vector_weight": "1"}
    assert "No results of this tool have been judged yet" in browser.get("/", params=search).text
    judge(library)
    text = browser.get("/", params=search).text
    assert re.search(r"nDCG@10 of 2 judged queries: \d\.\d{4} → \d\.\d{4}", text)


def test_settings_are_shown_as_a_difference_before_they_are_written(browser: TestClient, library: Library) -> None:
    text = browser.get("/", params={"q": "mirror", "tool": "docs", "k1": "0.5", "similarity_threshold": "0.9"}).text
    address = unescape(re.findall(r'<a class="keep" href="([^"]*)"', text)[0])
    preview = browser.get(address)
    assert preview.status_code == 200
    assert re.search(r"<code>k1</code></th><td><del>1.2</del></td><td><ins>0.5</ins>", preview.text)
    assert re.search(r"<code>similarity_threshold</code></th><td><del>[^<]+</del></td><td><ins>0.9</ins>", preview.text)
    assert library.resolve_tool("docs").options.search == {}
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', preview.text)
    written = browser.post("/search-settings", data={name: unescape(value) for name, value in fields})
    assert written.status_code == 303
    assert library.resolve_tool("docs").options.search == {"k1": 0.5, "similarity_threshold": 0.9}
    entry = next(iter(library.store.audit.entries()))
    assert (entry.action, entry.who, entry.result) == ("tool update", "tester", "done")
    assert entry.arguments["search"] == ["k1=0.5", "similarity_threshold=0.9"]


def test_settings_are_those_of_one_tool(visit: Visitor) -> None:
    reply = visit(language="ja").get("/search-settings", params={"q": "mirror", "k1": "0.5"})
    assert reply.status_code == 404
    assert "No tool" not in reply.text


def test_only_those_who_may_change_a_tool_can_set_it(visit: Visitor, library: Library) -> None:
    reader = visit(Rights(read=("*",)))
    search = {"q": "mirror", "tool": "docs", "k1": "0.5"}
    assert 'class="keep"' not in reader.get("/", params=search).text
    assert reader.get("/search-settings", params=search).status_code == 403
    assert reader.post("/search-settings", data=search).status_code == 403
    assert library.resolve_tool("docs").options.search == {}
