"""How two rankings become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.search import fusion

SCORES = st.dictionaries(st.integers(0, 20), st.floats(-10, 10), max_size=12)


def test_reciprocal_ranks_add_up_as_in_the_worked_example() -> None:
    scores = fusion.reciprocal_rank_fusion([["A", "B", "C"], ["C", "A", "D"]])
    assert {key: round(score, 4) for key, score in scores.items()} == {
        "A": 0.0325,
        "B": 0.0161,
        "C": 0.0323,
        "D": 0.0159,
    }
    assert sorted(scores, key=lambda key: -scores[key]) == ["A", "C", "B", "D"]


def test_equal_scores_all_become_one_and_nothing_stays_nothing() -> None:
    assert fusion.normalise_scores({"a": 3.0, "b": 3.0}) == {"a": 1.0, "b": 1.0}
    assert fusion.normalise_scores({}) == {}


def test_what_one_side_lacks_counts_zero_there() -> None:
    combined = fusion.convex_combination({"a": 0.9, "b": 0.1}, {"c": 5.0, "a": 1.0}, 0.6)
    assert combined == pytest.approx({"a": 0.6, "b": 0.0, "c": 0.4})


def test_without_lexical_hits_the_best_score_is_the_vector_weight() -> None:
    assert max(fusion.convex_combination({"a": 0.9, "b": 0.1}, {}, 0.5).values()) == 0.5


@given(SCORES, SCORES, st.floats(0, 1))
def test_a_combined_score_lies_between_0_and_1(
    vector: dict[int, float], words: dict[int, float], weight: float
) -> None:
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in fusion.convex_combination(vector, words, weight).values())


@given(SCORES, SCORES)
def test_the_weight_0_is_words_alone_and_1_is_vectors_alone(vector: dict[int, float], words: dict[int, float]) -> None:
    for key, score in fusion.normalise_scores(words).items():
        assert fusion.convex_combination(vector, words, 0.0)[key] == score
    for key, score in fusion.normalise_scores(vector).items():
        assert fusion.convex_combination(vector, words, 1.0)[key] == score
