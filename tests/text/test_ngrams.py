"""Every character of a text is in some n-gram."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bunko.text import ngrams

JAPANESE_AND_MORE = st.text(st.sampled_from("検索走るサーバーabcABC019 、。-_é𠮷한국ก\n"), max_size=40)


@given(st.one_of(JAPANESE_AND_MORE, st.text(max_size=60)))
def test_the_grams_of_a_query_are_among_the_grams_of_the_same_text(text: str) -> None:
    assert {gram.key for gram in ngrams.query_grams(text)} <= set(ngrams.gram_keys(text).tolist())


@given(JAPANESE_AND_MORE, JAPANESE_AND_MORE)
def test_a_part_of_a_text_is_found_in_it(before: str, text: str) -> None:
    whole = set(ngrams.gram_keys(f"{before} {text}").tolist())
    assert {gram.key for gram in ngrams.query_grams(text)} <= whole


@given(st.text(max_size=80))
def test_keys_are_sorted_and_distinct(text: str) -> None:
    keys = ngrams.gram_keys(text)
    assert np.all(keys[:-1] < keys[1:])


def test_every_dense_character_begins_a_pair_so_that_it_can_be_looked_up_alone() -> None:
    keys = ngrams.gram_keys("子猫と猫。犬")
    for character in "子猫と犬":
        first, past = ngrams.pair_key_range(character)
        assert any(first <= key < past for key in keys.tolist())


def test_pairs_of_hiragana_are_found_but_do_not_tell() -> None:
    telling = {gram.spelling: gram.is_distinctive for gram in ngrams.query_grams("検索する")}
    assert telling == {"検索": True, "索す": True, "する": False}


def test_width_and_case_do_not_matter() -> None:
    assert ngrams.gram_keys("ＡＢＣ ｶﾞ").tolist() == ngrams.gram_keys("abc ガ").tolist()
