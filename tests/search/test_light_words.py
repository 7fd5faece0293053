"""Words that say little about the answer to a question count little, and still find what has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.search.query_analysis import analyse_query
from bunko.text import bridge
from bunko.text.stopwords import WEIGHTS_PATH, query_weight
from bunko.types.ranking import RankingOptions
from tests.conftest import Opener, Run


def weights(query: str) -> dict[str, float]:
    analysis = analyse_query(query, RankingOptions(bridge=False))
    return {
        spelling: term.weight
        for spelling, term in zip(analysis.spellings, analysis.terms, strict=True)
        if not term.is_gram
    }


def roles(query: str) -> dict[str, str]:
    analysis = analyse_query(query, RankingOptions(bridge=False, loanwords=False))
    return dict(zip(analysis.spellings, analysis.roles, strict=True))


@pytest.mark.parametrize(
    ("query", "telling", "light"),
    [
        ("粗大ごみの回収はいつですか", "回収", "何時"),
        ("切符をもらう窓口を教えてください", "切符", "教える"),
        ("望遠鏡を使用する", "望遠", "為る"),
        ("has each telescope its own mirror", "telescop", "own"),
        ("what kind of mirror happens to crack", "mirror", "happen"),
        ("how many telescopes are there", "telescop", "mani"),
    ],
)
def test_a_word_that_says_little_counts_less_than_a_telling_one(query: str, telling: str, light: str) -> None:
    assert weights(query)[telling] == 1.0
    assert 0 < weights(query)[light] < 0.6


def test_a_question_word_counts_little_instead_of_nothing() -> None:
    assert roles("閉館はいつ")["何時"] == "light"
    assert 0 < weights("閉館はいつ")["何時"] <= 0.5


@pytest.mark.parametrize("query", ["いつ", "何ですか", "どうしてもらえる", "happen", "any other"])
def test_a_query_of_light_words_alone_counts_them_in_full(query: str) -> None:
    assert set(weights(query).values()) == {1.0}
    assert set(roles(query).values()) <= {"", "gram"}


@pytest.mark.parametrize(
    ("light_words", "weight"), [(0, 1.0), (0.5, query_weight("違う") ** 0.5), (1, query_weight("違う"))]
)
def test_how_far_light_words_count_less_is_an_option(light_words: float, weight: float) -> None:
    analysis = analyse_query("違う望遠鏡", RankingOptions(bridge=False, light_words=light_words))
    assert analysis.terms[analysis.spellings.index("違う")].weight == pytest.approx(weight)


def test_the_translations_of_a_light_word_count_less_too() -> None:
    analysis = analyse_query("違う望遠鏡", RankingOptions(bridge_weight=1.0))
    translation = bridge.meanings("違う")[0]
    weight = analysis.terms[analysis.spellings.index(translation.spelling)].weight
    assert weight == pytest.approx(query_weight("違う") * translation.weight)
    assert query_weight("違う") < 0.6


def test_a_text_need_not_have_the_light_words_to_be_a_full_match(docs: Path, open_docs: Opener) -> None:
    (docs / "a.md").write_text("# 案内\n\n回収は火曜日。\n", encoding="utf-8")
    (docs / "b.md").write_text("# 回収\n\n回収の望遠鏡はいつ回収。\n", encoding="utf-8")
    library = open_docs()

    def uris(query: str) -> list[str]:
        return [hit.uri for hit in library.search(query, min_combined_score=1.0, vector_weight=0.3).hits]

    assert uris("回収はいつ") == ["b.md", "a.md"]
    assert uris("回収の望遠鏡") == ["b.md"]


def test_a_quoted_light_word_must_be_in_the_text(docs: Path, open_docs: Opener) -> None:
    (docs / "a.md").write_text("# 案内\n\n回収はいつでも頼める。\n", encoding="utf-8")
    (docs / "b.md").write_text("# 案内\n\n回収は火曜日の回収だけ。\n", encoding="utf-8")
    assert [hit.uri for hit in open_docs().search('回収 "いつ"').hits] == ["a.md"]


def test_explain_names_light_words(docs: Path, run: Run) -> None:
    (docs / "a.md").write_text("# 案内\n\n回収はいつでも頼める。\n", encoding="utf-8")
    flags = ("search", "回収はいつ", "--docs-dir", docs, "--mode", "bm25", "--explain")
    assert "何時 (light)" in run(*flags).out
    results = run(*flags, "--json").json()["results"]
    assert isinstance(results, list)
    assert {"kind": "light", "term": "何時"} in results[0]["explain"]["expansions"]


def test_every_weight_is_a_share() -> None:
    rows = [line.split("\t") for line in WEIGHTS_PATH.read_text(encoding="utf-8").splitlines()]
    assert len({word for word, _ in rows}) == len(rows) > 100
    assert all(0.1 <= float(weight) < 1 for _, weight in rows)
    assert query_weight("望遠") == 1.0
