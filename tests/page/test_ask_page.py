"""The page that answers questions: marked sentences, and sources that open in the document view."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.types.access import Rights
from tests.page.conftest import Visitor


def test_without_a_model_sentences_are_quoted_with_their_sources(browser: TestClient) -> None:
    text = browser.get("/ask", params={"q": "望遠鏡の鏡は何で磨きますか？"}).text
    assert "These sentences are quoted from your documents." in text
    assert re.search(r'<p class="sentence quoted">望遠鏡の鏡は柔らかい布で磨く。', text)
    assert "supported" not in text  # it is a quotation, not a claim
    address = unescape(re.findall(r'<li id="source-\d+" value="\d+">\s*<h3><a href="([^"]*)"', text)[0])
    document = browser.get(address)
    assert document.status_code == 200
    assert 'class="hit"' in document.text


def test_a_source_opens_at_the_sentence_that_is_quoted(browser: TestClient, library: Library, docs: Path) -> None:
    text = (
        "# Care\n\nMirrors are precious.\nKeep them dry.\n\nClean the **lens** with\nalcohol once a year.\n\nThe end.\n"
    )
    (docs / "care.md").write_text(text, "utf-8")
    library.import_("docs")
    page = browser.get("/ask", params={"q": "How often should I clean the lens with alcohol?"}).text
    assert 'quoted">Clean the lens with alcohol once a year.' in page  # as people read it
    address = unescape(re.findall(r'<h3><a href="([^"]*care[^"]*)"', page)[0])
    assert "hit=L6-L7&" in address
    assert re.findall(r'<p class="hit" id="(L\d+)"', browser.get(address).text) == ["L6"]  # a paragraph of two lines


def test_a_question_that_nothing_answers_is_not_answered(visit: Visitor) -> None:
    text = visit(language="ja").get("/ask", params={"q": "東京タワーの高さは？"}).text
    assert "ライブラリーには答えがありません。" in text


def test_without_a_question_the_page_says_what_it_does(visit: Visitor) -> None:
    assert "出典を付けて答えます" in visit(language="ja").get("/ask").text


def test_only_tools_that_somebody_may_read_answer(visit: Visitor) -> None:
    text = visit(Rights(read=("docs",))).get("/ask", params={"q": "味噌はいつ溶きますか？"}).text
    assert "味噌を溶く" not in text
    assert "kitchen" not in text


def test_an_error_is_shown_beside_the_form(browser: TestClient) -> None:
    reply = browser.get("/ask", params={"q": "mirror?", "tool": "nothing"})
    assert reply.status_code == 404
    assert 'name="q"' in reply.text
