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


def test_a_sentence_is_found_in_a_text_whose_lines_were_joined() -> None:
    text = f"{FILLER} Polish the mirror with a soft cloth. {FILLER}"
    start, end = snippet_range(text, SnippetTerms({}), 60, sentence="Polish the mirror\nwith a soft cloth.")
    assert text[start:end].startswith("Polish the mirror with a soft cloth.")


def test_words_of_the_query_matter_more_than_the_nearest_sentence() -> None:
    text = f"{FILLER}{SENTENCE}{FILLER}猫が鳴いた。"
    start, end = snippet_range(text, SnippetTerms({"猫": 1.0}), 60, sentence=SENTENCE)
    assert "猫" in text[start:end]


def test_a_sentence_that_is_not_in_the_text_changes_nothing() -> None:
    assert snippet_range(FILLER, SnippetTerms({}), 60, sentence=SENTENCE) == snippet_range(FILLER, SnippetTerms({}), 60)
