"""The keys of a query: its words first, then the n-grams that count beside them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.search.query_analysis import analyse_query
from bunko.text import ngrams
from bunko.text.line_joins import join_lines

MIXED = st.text(st.sampled_from("検索する温泉サーバーabcdeé019 、-\n"), max_size=300)


@given(st.one_of(MIXED, st.text(max_size=60)))
def test_the_distinctive_ones_of_the_first_n_grams_count_beside_the_words(query: str) -> None:
    analysis = analyse_query(query)
    grams = ngrams.query_grams(join_lines(query))[:128]
    assert analysis.grams == tuple(grams)
    expected = [gram.key for gram in grams if gram.is_distinctive]
    assert [term.key for term in analysis.terms if term.is_gram] == expected


@pytest.mark.parametrize(
    ("query", "spellings"),
    [("server settings", ["server", "set"]), ("ＡＰＩの設定", ["api", "設定", "の設", "設定"]), ("", [])],
)
def test_words_come_before_n_grams(query: str, spellings: list[str]) -> None:
    analysis = analyse_query(query)
    assert [
        spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role in ("", "gram")
    ] == spellings
    assert len(analysis.terms) == len(analysis.spellings) == len(analysis.roles)
