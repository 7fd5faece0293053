"""Token estimates are close enough for a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bunko.text.token_count import estimate_tokens, max_tokens

JAPANESE = "検索エンジンは文書を索引に変え、質問に答える。設定を変えたら索引を作り直す必要がある。"
ENGLISH = "A search engine turns documents into an index and answers questions. Rebuild it after a change of settings."


def test_nothing_costs_nothing() -> None:
    assert estimate_tokens("") == 0


def test_a_japanese_character_costs_several_times_an_english_one() -> None:
    assert estimate_tokens(JAPANESE) / len(JAPANESE) > 3 * estimate_tokens(ENGLISH) / len(ENGLISH)


def test_an_english_word_costs_between_one_and_two_tokens() -> None:
    assert 1 <= estimate_tokens(ENGLISH) / len(ENGLISH.split()) <= 2


def test_one_foreign_character_does_not_change_what_the_rest_costs() -> None:
    assert 0 <= estimate_tokens(f"{ENGLISH}é") - estimate_tokens(ENGLISH) <= 2


@given(st.text(), st.text())
def test_a_longer_text_never_costs_noticeably_less(beginning: str, ending: str) -> None:
    assert estimate_tokens(beginning + ending) >= estimate_tokens(beginning) - 1


@given(st.text(), st.text())
def test_two_texts_together_cost_about_what_they_cost_apart(first: str, second: str) -> None:
    assert abs(estimate_tokens(first + second) - estimate_tokens(first) - estimate_tokens(second)) <= 2


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_a_kanji_costs_at_least_a_token(text: str) -> None:
    assert estimate_tokens(text) >= len(text)


@given(st.text() | st.text(st.sampled_from("a b😀漢。\n")))
def test_the_length_of_a_text_limits_what_it_costs(text: str) -> None:
    assert estimate_tokens(text) <= max_tokens(len(text))


@given(st.text(max_size=60))
def test_a_short_text_costs_what_it_adds_to_a_long_one(text: str) -> None:
    beginning = "。" * 200  # no part of a word, and 130 tokens exactly
    assert estimate_tokens(beginning + text) == estimate_tokens(beginning) + estimate_tokens(text)
