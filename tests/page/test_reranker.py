"""The page tells what the reranker did, does not wait for it while somebody types, and lists local models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.page.conftest import Visitor
from tests.tiny_models import write_cross_encoder


@pytest.fixture
def library(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library whose reranker prefers the text that shares most letters with the query."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    (docs / "a.md").write_text("# fur\n\ncat cat cat\n", "utf-8")
    (docs / "b.md").write_text("# sky\n\ncat is good " + "umbrella in winter " * 8, "utf-8")
    environ = {
        "BUNKO_SEARCH_FRESHNESS_SECONDS": "3600",
        "BUNKO_EMBEDDING_PROVIDER": "none",
        "BUNKO_SEARCH_RERANKER": str(write_cross_encoder(tmp_path / "letters")),
    }
    with open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ) as library:
        library.add(docs, name="docs")
        library.import_("docs")
        yield library


def names(text: str) -> list[str]:
    return re.findall(r'data-citation="([ab])\.md', text)


def test_results_are_reranked_as_soon_as_nobody_types(browser: TestClient) -> None:
    assert names(browser.get("/", params={"q": "cat dog", "typed": "true"}).text) == ["a", "b"]
    assert names(browser.get("/", params={"q": "cat dog"}).text) == ["b", "a"]


def test_the_next_page_of_a_typed_search_can_be_opened(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "cat dog", "typed": "true", "top_k": "1"}).text
    following = re.search(r'href="(/\?[^"]*cursor=[^"]*)"', text)
    assert following
    assert "typed" not in following[1]
    assert browser.get(unescape(following[1])).status_code == 200


def test_links_of_a_search_without_the_reranker_lead_to_others_without_it(browser: TestClient) -> None:
    text = browser.get("/", params={"q": "cat dog", "rerank": "false"}).text
    assert names(text) == ["a", "b"]
    assert re.search(r'href="/\?[^"]*rerank=false[^"]*why=1', text)
    assert "rerank" not in browser.get("/", params={"q": "cat dog"}).text


@pytest.mark.parametrize(("language", "expected"), [("en", "Reranker"), ("ja", "並べ替え")])
def test_the_panel_tells_the_score_and_rank_of_the_reranker(visit: Visitor, language: str, expected: str) -> None:
    text = visit(is_local=True, language=language).get("/", params={"q": "cat dog", "why": "1"}).text
    panel = text[text.index('class="why"') :]
    assert f'{expected} <b class="number">0.9526</b>' in panel  # of the logit 3: six common letters, less three


def test_local_models_and_the_reranker_say_what_they_are_and_lack(visit: Visitor) -> None:
    text = visit(is_local=True).get("/library/models").text
    assert re.search(r"<h3>letters <span class=.chip on.>in use", text)
    assert "37 MB · Japanese · Apache-2.0" in text
    assert "bunko models get ruri-v3-30m" in text
    japanese = visit(is_local=True, language="ja").get("/library/models").text
    assert "次のコマンドで入手できます: bunko models get ruri-v3-30m" in japanese
    assert "最初に試すのに向いています" in japanese
    assert "571 MB · 100 以上の言語 · Apache-2.0" in japanese
