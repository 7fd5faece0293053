"""Spaces between Japanese and Latin words, as the tokenizer wants them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

from bunko.text.subwords import MODEL_PATH, space_words, token_spans

CJK = "\u3005\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
# What the model was trained with, as one expression.
BORDERS = re.compile(rf"(?<=[{CJK}])(?=[A-Za-z0-9])|(?<!\s)\s++(?=[{CJK}])|^(?=[A-Za-z0-9])")


@pytest.mark.parametrize(
    ("text", "spaced"),
    [
        ("GitHubで", " GitHubで"),
        ("GitHub で", " GitHubで"),
        ("これはGitHub", "これは GitHub"),
        ("これは  GitHub", "これは  GitHub"),
        (" \u3000漢字A1あb", "漢字 A1あ b"),
        ("plain words", " plain words"),
        ("éa", "éa"),
        ("", ""),
    ],
)
def test_a_word_has_a_space_before_it_and_japanese_none(text: str, spaced: str) -> None:
    assert space_words(text) == spaced


@given(st.text(st.sampled_from("aZ09é²あ漢ｱ々 \u3000\n。-")) | st.text())
def test_spaces_are_where_the_model_learned_them(text: str) -> None:
    assert space_words(text) == BORDERS.sub(lambda match: "" if match.group() else " ", text)


def test_the_tokenizer_keeps_the_space_before_a_word() -> None:
    tokenizer = SentencePieceProcessor(model_file=str(MODEL_PATH))
    assert tokenizer.encode(" search", out_type=str) == ["▁search"]
    assert tokenizer.encode("a  search", out_type=str) == ["a", "▁", "▁search"]


def test_a_run_of_spaces_is_not_counted_as_tokens() -> None:
    assert token_spans("a search") == [(0, 1), (1, 8)]
    assert len(token_spans("  a   search  ")) == 2
