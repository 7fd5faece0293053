"""A word as the query writes it is worth more than its translation; a translation still finds what has nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.search.query_analysis import analyse_query
from bunko.types import Mode
from tests.conftest import Opener

FILLER = (
    "The quick brown fox jumps over the lazy dog while a cat sleeps in the warm evening sun near an old stone wall."
)


@pytest.fixture
def filler(docs: Path) -> None:
    """Write texts about something else, in both languages."""
    for number in range(6):
        (docs / f"fox{number}.md").write_text(f"# Note {number}\n\n{FILLER}\n", encoding="utf-8")
        (docs / f"neko{number}.md").write_text(f"# 覚え書き{number}\n\n猫が屋根で眠っている。\n", encoding="utf-8")


LIBRARIES = [
    (
        "roll back",
        "# 運用\n\n## ロールバック\n\n問題が起きたら一つ前の版に戻す。\n",
        "# Operations\n\n## Releases\n\nTo roll back, redeploy the previous version.\n",
    ),
    (
        "How do I roll back a release?",
        "# 運用\n\n## リリースのロールバック\n\n問題が起きたら一つ前の版に戻す。\n",
        "# Operations\n\n## Versions\n\nTo roll back a release, redeploy the previous version.\n",
    ),
    ("server", "# サーバー\n\nサーバーは地下にある。\n", "# Rooms\n\nThe server is in the basement.\n"),
    (
        "validation",
        "# 検証\n\n検証は値を確かめる。検証してから保存する。\n",
        "# Input\n\nValues need validation before they are saved.\n",
    ),
    (
        "サーバー",
        f"# 部屋\n\n{'猫が屋根で眠っている。' * 12}サーバーは地下にある。\n",
        "# Server\n\nThe server is in the basement. A server is a server.\n",
    ),
    (
        "検証",
        f"# 入力\n\n{'猫が屋根で眠っている。' * 12}値は保存する前に検証する。\n",
        "# Validation\n\nValidation checks values. Validation comes before saving.\n",
    ),
]


@pytest.mark.parametrize(("query", "japanese", "english"), LIBRARIES, ids=[query for query, _, _ in LIBRARIES])
@pytest.mark.usefixtures("filler")
def test_a_word_in_the_body_precedes_its_translation_in_a_heading(
    query: str, japanese: str, english: str, docs: Path, open_docs: Opener
) -> None:
    (docs / "ja.md").write_text(japanese, encoding="utf-8")
    (docs / "en.md").write_text(english, encoding="utf-8")
    expected = ["en.md", "ja.md"] if query.isascii() else ["ja.md", "en.md"]
    assert [hit.uri for hit in open_docs().search(query, mode="bm25").hits] == expected


@pytest.mark.parametrize(("query", "japanese", "english"), [LIBRARIES[0], LIBRARIES[2]], ids=["roll back", "server"])
@pytest.mark.usefixtures("filler")
def test_the_words_of_a_hybrid_search_prefer_the_language_of_the_question(
    query: str, japanese: str, english: str, docs: Path, open_docs: Opener
) -> None:
    (docs / "ja.md").write_text(japanese, encoding="utf-8")
    (docs / "en.md").write_text(english, encoding="utf-8")
    assert [hit.uri for hit in open_docs().search(query).hits[:2]] == ["en.md", "ja.md"]


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
@pytest.mark.usefixtures("filler")
def test_a_text_with_fewer_of_the_words_does_not_precede_their_translations(
    mode: Mode, docs: Path, open_docs: Opener
) -> None:
    (docs / "ja.md").write_text("# サーバーの再起動\n\nサーバーを再起動するには管理画面を開く。\n", encoding="utf-8")
    (docs / "en.md").write_text("# Rooms\n\nThe server is in the basement.\n", encoding="utf-8")
    assert open_docs().search("restart the server", mode=mode).hits[0].uri == "ja.md"


@pytest.mark.usefixtures("filler")
def test_a_result_does_not_depend_on_how_many_are_wanted(docs: Path, open_docs: Opener) -> None:
    for number in range(8):
        (docs / f"ja{number}.md").write_text("# サーバー\n\nサーバーは地下にある。\n", encoding="utf-8")
    (docs / "en.md").write_text(f"# Rooms\n\n{FILLER} The server is in the basement.\n", encoding="utf-8")
    library = open_docs()
    rankings = [[hit.uri for hit in library.search("server", mode="bm25", top_k=k).hits] for k in (1, 3, 9)]
    assert rankings[2][0] == "en.md"
    assert rankings == [rankings[2][:k] for k in (1, 3, 9)]


@pytest.mark.usefixtures("filler")
def test_the_explained_points_of_texts_that_changed_places_add_up(docs: Path, open_docs: Opener) -> None:
    (docs / "ja.md").write_text(LIBRARIES[0][1], encoding="utf-8")
    (docs / "en.md").write_text(LIBRARIES[0][2], encoding="utf-8")
    english, japanese = open_docs().search("roll back", mode="bm25", explain=True).hits
    for hit in (english, japanese):
        assert hit.explanation is not None
        assert hit.explanation.bm25 is not None
        points = sum(term.score for term in hit.explanation.term_scores)
        assert points == pytest.approx(hit.explanation.bm25.score, rel=1e-4)
    assert english.explanation is not None
    assert japanese.explanation is not None
    assert english.explanation.terms == ("roll", "back")
    assert set(japanese.explanation.expansions) >= {("loanword", "roll"), ("loanword", "back")}


@pytest.mark.usefixtures("filler")
def test_an_english_word_finds_no_loanword_without_them(docs: Path, open_docs: Opener) -> None:
    (docs / "ja.md").write_text("# 部屋\n\nサーバーは地下にある。\n", encoding="utf-8")
    library = open_docs()
    assert [hit.uri for hit in library.search("server", mode="bm25", bridge=False).hits] == ["ja.md"]
    assert not library.search("server", mode="bm25", bridge=False, loanwords=False).hits


def test_a_number_is_the_origin_of_no_loanword() -> None:
    analysis = analyse_query("node 2024")
    loanwords = {
        spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role == "loanword"
    }
    assert loanwords == {"node"}
