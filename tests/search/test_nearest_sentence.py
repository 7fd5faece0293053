"""A hit that only its vectors found shows the sentence that is nearest to the query."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.search.nearest_sentence import nearest_sentence
from bunko.search.passages import extract_passages
from bunko.text.snippets import SnippetTerms, snippet_range
from tests.conftest import Opener, Run

FILLER = "この段落には、ほかのことだけが書いてある。" * 8
TEXT = f"# 記録\n\n## 夜\n\n{FILLER}\n\n望遠鏡の鏡を柔らかい布で磨いてから片付けた。\n\n{FILLER}\n"
SENTENCE = "望遠鏡の鏡を柔らかい布で磨いてから片付けた。"


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    (docs / "a.md").write_text(TEXT, encoding="utf-8")
    return open_docs()


def test_a_hit_knows_its_nearest_sentence(library: Library) -> None:
    [hit] = library.search("polish the telescope", mode="semantic").hits
    assert nearest_sentence(hit) == SENTENCE


def test_a_hit_by_words_alone_has_no_nearest_sentence(library: Library) -> None:
    [hit] = library.search("望遠鏡", mode="bm25").hits
    assert nearest_sentence(hit) == ""


def test_a_snippet_without_a_word_of_the_query_shows_the_nearest_sentence(library: Library) -> None:
    hits = library.search("polish the telescope", mode="semantic").hits
    [passage] = extract_passages(hits, library.document_of, "snippet", query="qqqq")
    assert passage.text.startswith(SENTENCE)


def test_the_command_line_shows_the_nearest_sentence_and_its_cosine(library: Library, docs: Path, run: Run) -> None:
    arguments = ("--docs-dir", docs, "--mode", "semantic")
    assert SENTENCE in run("search", "polish the telescope", *arguments).out
    assert SENTENCE in run("search", "polish the telescope", *arguments, "--format", "md").out
    assert "nearest sentence 0." in run("search", "polish the telescope", *arguments, "--explain").out


def test_the_title_above_a_text_is_not_part_of_the_sentence(docs: Path, open_docs: Opener) -> None:
    text = "# 望遠鏡\n\n## 手入れ\n\n鏡を柔らかい布で磨いてから片付けた。\n"
    (docs / "b.md").write_text(text, encoding="utf-8")
    [hit] = open_docs().search("polish the mirror", mode="semantic").hits
    assert nearest_sentence(hit) == "鏡を柔らかい布で磨いてから片付けた。"


def test_an_explanation_shows_the_heading_if_that_is_nearest(docs: Path, open_docs: Opener) -> None:
    text = f"# 手引き\n\n## 望遠鏡の鏡を磨いて片付ける方法\n\n{FILLER}\n"
    (docs / "b.md").write_text(text, encoding="utf-8")
    [hit] = open_docs().search("polish the telescope", mode="semantic", explain=True).hits
    assert hit.explanation is not None
    assert hit.explanation.nearest_sentence == "望遠鏡の鏡を磨いて片付ける方法"
    assert hit.explanation.sentence_score is not None
    assert hit.explanation.sentence_score > hit.score
    assert nearest_sentence(hit) == ""  # a snippet shows what is below the heading


def test_a_text_that_is_the_query_is_no_nearer_than_equal(docs: Path, open_docs: Opener) -> None:
    text = "鯨ヶ浦の灯台は白い。毎年夏に灯台の祭りがあります。"
    (docs / "b.md").write_text(text, encoding="utf-8")
    [hit] = open_docs().search(text, mode="semantic", explain=True).hits
    assert hit.score <= 1
    assert hit.vector_distance is not None
    assert hit.vector_distance >= 0
    assert hit.explanation is not None
    assert hit.explanation.sentence_score == pytest.approx(1, abs=1e-3)


def test_emoji_do_not_find_a_text_with_a_line_in_unknown_characters(docs: Path, open_docs: Opener) -> None:
    (docs / "b.md").write_text("京都の寺と庭を一日かけて歩いて回りました。\n\nไทยภาษา\n", encoding="utf-8")
    assert not open_docs().search("😀😀😀").hits


def test_a_sentence_is_found_in_a_text_whose_lines_were_joined() -> None:
    text = f"{FILLER} Polish the mirror with a soft cloth. {FILLER}"
    start, end = snippet_range(text, SnippetTerms({}), 60, sentence="Polish the mirror\nwith a soft cloth.")
    assert text[start:end].startswith("Polish the mirror with a soft cloth.")


def test_words_of_the_query_matter_more_than_the_nearest_sentence() -> None:
    text = f"{FILLER}{SENTENCE}{FILLER}猫が鳴いた。"
    start, end = snippet_range(text, SnippetTerms({"猫": 1.0}), 60, sentence=SENTENCE)
    assert "猫" in text[start:end]


def test_of_places_with_the_same_words_a_snippet_shows_the_nearest_sentence() -> None:
    sentence = "猫は窓のそばで眠る。"
    text = "猫の話を猫が聞く。" + FILLER + sentence + FILLER
    start, end = snippet_range(text, SnippetTerms({"猫": 1.0}), 60, sentence=sentence)
    assert sentence in text[start:end]


def test_a_sentence_that_is_not_in_the_text_changes_nothing() -> None:
    assert snippet_range(FILLER, SnippetTerms({}), 60, sentence=SENTENCE) == snippet_range(FILLER, SnippetTerms({}), 60)
