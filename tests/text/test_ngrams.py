"""Every character of a text is in some n-gram."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
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


@pytest.mark.parametrize("group_chars", [1, 50, 20_000])
@given(texts=st.lists(st.one_of(JAPANESE_AND_MORE, st.text(max_size=60)), max_size=6))
def test_inverted_texts_are_listed_once_for_each_of_their_grams(group_chars: int, texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "GROUP_CHARS", group_chars)
        keys, starts, rows = ngrams.invert(texts)
    lists = [(key, rows[first:end].tolist()) for key, (first, end) in zip(keys.tolist(), pairwise(starts), strict=True)]
    all_keys, text_indices = ngrams.occurrences(texts)
    wanted = sorted(set(zip(all_keys.tolist(), text_indices.tolist(), strict=True)))
    assert [(key, row) for key, key_rows in lists for row in key_rows] == wanted
    assert keys.tolist() == sorted({key for key, _ in wanted})


def test_no_more_texts_are_inverted_at_a_time_than_can_be_told_apart() -> None:
    keys, starts, rows = ngrams.invert([""] * (ngrams.MAX_TEXTS - 1) + ["猫"])
    assert (len(keys), starts.tolist(), rows.tolist()) == (1, [0, 1], [ngrams.MAX_TEXTS - 1])
    with pytest.raises(ValueError, match="32768 texts"):
        ngrams.invert([""] * (ngrams.MAX_TEXTS + 1))


def test_the_last_characters_of_each_script_fit_into_a_sorted_number() -> None:
    texts = ["\U0003ffff\U0003ffff", "\u1fbc\u1fbc\u1fbc", "\U0003ffff"]
    keys, _, _ = ngrams.invert(texts)
    assert keys.tolist() == np.unique(ngrams.occurrences(texts)[0]).tolist()


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
