"""The numbers of an explanation: they add up to the scores that are shown."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.serialize import page_to_dict
from bunko.library.library import Library
from bunko.search.request import SearchRequest
from bunko.types import Explanation, Hit
from tests.conftest import Opener
from tests.search.test_search import PAGES

QUERIES = (
    "サーバー 再起動",
    "京都の寺",
    "api reference",
    "学",
    "猫",
    "しれんのしろ",
    "refrence paramters",
    "form validation",
)
RANKINGS: tuple[dict[str, Any], ...] = (
    {"mode": "bm25"},
    {"mode": "bm25", "k1": 0.4, "b": 0.1},
    {"mode": "semantic"},
    {"mode": "hybrid"},
    {"mode": "hybrid", "vector_weight": 0.4},
    {"mode": "hybrid", "fusion": "rrf", "rrf_k": 20},
)


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    for name, text in PAGES.items():
        (docs / name).write_text(text, encoding="utf-8")
    return open_docs()


def explain(hit: Hit) -> Explanation:
    assert hit.explanation is not None
    return hit.explanation


@pytest.mark.parametrize("options", RANKINGS, ids=str)
def test_the_parts_of_each_arm_add_up_to_the_score(library: Library, options: dict[str, Any]) -> None:
    for query in QUERIES:
        for hit in library.search(query, explain=True, top_k=8, **options).hits:
            why = explain(hit)
            assert sum(part.points for part in why.parts) == pytest.approx(hit.score, abs=1e-6)
            for part in why.parts:
                assert part.points == pytest.approx(part.weight * part.value, abs=1e-6)


@pytest.mark.parametrize("options", RANKINGS, ids=str)
def test_the_terms_add_up_to_the_score_by_words(library: Library, options: dict[str, Any]) -> None:
    for query in QUERIES:
        for hit in library.search(query, explain=True, top_k=8, **options).hits:
            why = explain(hit)
            expected = why.bm25.score if why.bm25 else 0.0
            assert sum(term.score for term in why.term_scores) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("options", RANKINGS, ids=str)
def test_the_numbers_that_are_shown_add_up_exactly(library: Library, options: dict[str, Any]) -> None:
    for query in QUERIES:
        ranking = {name: value for name, value in options.items() if name != "mode"}
        page = library.page(SearchRequest(query, explain=True, top_k=8, mode=options["mode"], ranking=ranking))
        for result in page_to_dict(page)["results"]:
            why = result["explain"]
            points = [Decimal(str(part["points"])) for part in why["parts"]]
            assert sum(points) == Decimal(str(result["score"]))
            if why["bm25"]:
                scores = [Decimal(str(term["score"])) for term in why["term_scores"]]
                assert sum(scores) == Decimal(str(why["bm25"]["score"]))


def test_of_the_terms_with_one_meaning_only_the_highest_counts(library: Library) -> None:
    why = explain(library.search("サーバー", mode="bm25", explain=True).hits[0])
    scores = {term.term: term.score for term in why.term_scores}
    assert {"サーバー", "server"} <= scores.keys()
    assert sorted(scores[term] > 0 for term in ("サーバー", "server")) == [False, True]


def test_a_term_says_in_which_fields_it_is(library: Library, docs: Path) -> None:
    (docs / "parts.md").write_text("# Telescope\n\n## Mirror\n\nPolish it weekly.\n", encoding="utf-8")
    library.reindex()
    fields = {
        term.term: term.fields
        for term in explain(library.search("telescope mirror polish", mode="bm25", explain=True).hits[0]).term_scores
        if term.role == ""
    }
    assert fields == {"telescop": ("title", "heading"), "mirror": ("heading",), "polish": ("text",)}


def test_the_best_sentence_is_the_one_with_the_terms_that_count_most(library: Library, docs: Path) -> None:
    (docs / "long.md").write_text("# 記録\n\n朝は晴れた。望遠鏡の鏡を磨いた。夜は寝た。\n", encoding="utf-8")
    library.reindex()
    why = explain(library.search("望遠鏡を磨く", mode="bm25", explain=True).hits[0])
    assert why.best_sentence == "望遠鏡の鏡を磨いた。"


def test_a_hit_by_vectors_alone_has_a_best_sentence_too(library: Library) -> None:
    hits = library.search("サーバー 再起動", mode="semantic", explain=True).hits
    assert explain(hits[0]).best_sentence == "サーバーを再起動する手順をまとめる。"


def test_the_sentence_that_decided_the_similarity_is_named_with_its_cosine(library: Library, docs: Path) -> None:
    text = "朝は晴れて、洗濯物がよく乾いた一日だった。望遠鏡の鏡を柔らかい布で磨いてから片付けた。夜は早く寝た。"
    (docs / "long.md").write_text(f"# 記録\n\n## 夜\n\n{text}\n", encoding="utf-8")
    library.reindex()
    why = explain(library.search("polish the telescope", mode="semantic", explain=True).hits[0])
    assert why.nearest_sentence == "望遠鏡の鏡を柔らかい布で磨いてから片付けた。"
    assert why.vector is not None
    assert why.sentence_score is not None
    assert why.sentence_score > why.vector.score


def test_words_alone_are_explained_without_a_nearest_sentence(library: Library) -> None:
    why = explain(library.search("サーバー", mode="bm25", explain=True).hits[0])
    assert (why.nearest_sentence, why.sentence_score) == ("", None)


def test_a_search_that_does_not_explain_computes_none_of_it(library: Library) -> None:
    assert all(hit.explanation is None for hit in library.search("京都").hits)
