"""The lexical index against a plain implementation, whatever the rows, their spread and what has died."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko.indexes.embedded import bm25, segment, segment_scores
from bunko.indexes.embedded.snapshot import SegmentView
from bunko.indexes.embedded.view import EmbeddedView
from bunko.indexes.term_weights import idf
from bunko.search.query_analysis import analyse_query
from bunko.text import analyzer, ngrams
from bunko.text.term_codec import pack_terms, unpack_chunk_terms, unpack_terms
from bunko.types.records import QueryTerm, StoredChunk

CONSTANTS = st.sampled_from([(1.2, 0.75), (1.5, 0.75), (2.5, 0.5), (0.0, 0.0), (0.9, 1.0)])
QUERY = st.lists(
    st.builds(QueryTerm, st.integers(1, 14), st.floats(0.05, 2.0), is_gram=st.just(False), group=st.integers(-1, 3)),
    min_size=1,
    max_size=10,
    unique_by=lambda one: one.key,
)
ROWS = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=20), min_size=1, max_size=40)


def stored(rows: list[list[int]]) -> list[StoredChunk]:
    return [
        StoredChunk(number, number, number, "", *unpack_terms(pack_terms([row]))[0], None)
        for number, row in enumerate(rows)
    ]


def snapshot(rows: list[list[int]], cuts: list[int], dead: set[int]) -> EmbeddedView:
    borders = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    parts = []
    for begin, end in itertools.pairwise(borders):
        piece = segment.build(stored(rows)[begin:end], 0, {})
        alive = np.array([number not in dead for number in range(begin, end)], np.bool_)
        parts.append(SegmentView(piece, alive if dead else None))
    return EmbeddedView(parts, 1)


def plain(rows: list[list[int]], dead: set[int], query: list[QueryTerm], k1: float, b: float) -> dict[int, float]:
    """BM25 as it is written down, in double precision; of a group the word that counts most in a row counts.

    All words of a group are as rare as the most frequent one, by its weight.
    """
    alive = {number: Counter(row) for number, row in enumerate(rows) if number not in dead}
    if not alive:
        return {}
    average = max(1.0, sum(sum(row.values()) for row in alive.values()) / len(alive))
    scores: dict[int, dict[object, float]] = {}
    for one in query:
        same = [other for other in query if other.group == one.group] if one.group >= 0 else [one._replace(weight=1.0)]
        df = max(other.weight * sum(other.key in row for row in alive.values()) for other in same)
        df = min(df, len(alive))
        idf = math.log(1 + (len(alive) - df + 0.5) / (df + 0.5))
        thing = one.group if one.group >= 0 else ("alone", one.key)
        for number, row in alive.items():
            if tf := row[one.key]:
                length = sum(row.values())
                score = one.weight * idf * (k1 + 1) * tf / (tf + k1 * (1 - b + b * length / average))
                things = scores.setdefault(number, {})
                things[thing] = max(things.get(thing, 0.0), score)
    return {number: sum(things.values()) for number, things in scores.items()}


@settings(max_examples=100, deadline=None)
@given(
    ROWS,
    st.lists(st.integers(0, 50), max_size=3),
    st.sets(st.integers(0, 39), max_size=10),
    st.lists(st.integers(1, 14), min_size=1, max_size=8, unique=True),
    st.integers(1, 12),
    CONSTANTS,
)
def test_scores_and_order_are_those_of_a_plain_implementation(
    rows: list[list[int]],
    cuts: list[int],
    dead: set[int],
    query: list[int],
    k: int,
    constants: tuple[float, float],
) -> None:
    agree(rows, cuts, dead, [QueryTerm(term, 1.0) for term in query], k, *constants)


@settings(max_examples=100, deadline=None)
@given(
    ROWS,
    st.lists(st.integers(0, 50), max_size=3),
    st.sets(st.integers(0, 39), max_size=10),
    QUERY,
    st.integers(1, 12),
    CONSTANTS,
)
def test_of_several_words_for_one_thing_the_best_counts_and_only_once(
    rows: list[list[int]],
    cuts: list[int],
    dead: set[int],
    query: list[QueryTerm],
    k: int,
    constants: tuple[float, float],
) -> None:
    agree(rows, cuts, dead, query, k, *constants)


def agree(
    rows: list[list[int]], cuts: list[int], dead: set[int], query: list[QueryTerm], k: int, k1: float, b: float
) -> None:
    state = snapshot(rows, cuts, dead)
    found = state.rank(query, k, k1=k1, b=b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_scores, "MAX_POSTINGS_AT_ONCE", 0)
        assert state.rank(query, k, k1=k1, b=b) == found, "list by list"
        for name, value in (("MIN_DENSE_ROWS", 0), ("MIN_LATE_POSTINGS", 0), ("PIECE_POSTINGS", 3)):
            patch.setattr(segment_scores, name, value)
            assert state.rank(query, k, k1=k1, b=b) == found, f"all rows, {name}"
    expected = plain(rows, dead, query, k1, b)
    assert len(found.rows) == min(k, len(expected))
    ids = state.chunk_ids(found.rows)
    assert len(set(ids)) == len(ids)
    assert found.scores == pytest.approx([expected[number] for number in ids], rel=1e-4)
    assert found.scores == pytest.approx(sorted(expected.values(), reverse=True)[:k], rel=1e-4)


@pytest.mark.slow
@given(ROWS, st.lists(st.integers(0, 50), max_size=3), st.sets(st.integers(0, 39), max_size=10))
def test_merging_segments_changes_no_answer(rows: list[list[int]], cuts: list[int], dead: set[int]) -> None:
    state = snapshot(rows, cuts, dead)
    if not state.size:
        return
    merged = segment.merge([part.segment for part in state.views], [part.alive for part in state.views], {})
    whole = EmbeddedView([SegmentView(merged)], 1)
    query = [QueryTerm(term, 1.0) for term in (1, 5, 9)]
    before, after = (s.rank(query, 10, k1=1.2, b=0.75) for s in (state, whole))
    assert state.chunk_ids(before.rows) == whole.chunk_ids(after.rows)
    assert before.scores == after.scores


@pytest.mark.slow
@pytest.mark.parametrize("min_dense_rows", [0, 10**9])
def test_common_words_in_a_large_index_are_pruned_without_changing_the_answer(
    monkeypatch: pytest.MonkeyPatch, min_dense_rows: int
) -> None:
    monkeypatch.setattr(segment_scores, "MAX_POSTINGS_AT_ONCE", 0)  # as if it were larger still
    monkeypatch.setattr(segment_scores, "MIN_DENSE_ROWS", min_dense_rows)
    monkeypatch.setattr(segment_scores, "MIN_LATE_POSTINGS", 0)
    generator = np.random.default_rng(7)
    rows = [
        sorted(set(generator.zipf(1.3, 30).clip(1, 400).tolist())) + [500 + n % 97] * (1 + n % 3) for n in range(9000)
    ]
    dead = set(range(0, 9000, 50))
    queries = [
        [QueryTerm(t, 1.0) for t in some] for some in ([1, 2, 3, 520, 40], [1, 2], [520, 1], [399, 398, 1, 2, 3, 4])
    ]
    queries += [
        [
            QueryTerm(520, 1.0, group=0),
            QueryTerm(9, 0.7, group=0),
            QueryTerm(6, 1.0, group=1),
            QueryTerm(7, 0.5, group=1),
        ],
        [
            QueryTerm(399, 0.5, group=0),
            QueryTerm(8, 1.0, group=0),
            QueryTerm(2, 0.1),
            QueryTerm(10, 0.7, group=1),
            QueryTerm(4, 1.0),
        ],
        [
            QueryTerm(40, 1.0),
            QueryTerm(4, 0.7, group=2),
            QueryTerm(5, 0.7, group=2),
            QueryTerm(6, 0.3, group=2),
            QueryTerm(1, 0.6),
        ],
    ]
    for state, gone in ((snapshot(rows, [], set()), set()), (snapshot(rows, [], dead), dead)):
        for query in queries:
            found = state.rank(query, 10, k1=1.2, b=0.75)
            expected = sorted(plain(rows, gone, query, 1.2, 0.75).values(), reverse=True)[:10]
            assert found.scores == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("min_dense_rows", [0, 10**9])
def test_a_row_that_is_behind_until_the_last_word_is_not_pruned(
    monkeypatch: pytest.MonkeyPatch, min_dense_rows: int
) -> None:
    monkeypatch.setattr(segment_scores, "MAX_POSTINGS_AT_ONCE", 0)
    monkeypatch.setattr(segment_scores, "MIN_DENSE_ROWS", min_dense_rows)
    monkeypatch.setattr(segment_scores, "MIN_LATE_POSTINGS", 0)
    for seed in range(40):
        numbers = random.Random(seed)
        rows = [
            [
                word
                for word, share in ((1, 0.4), (2, 0.8), (3, 0.7), (9, 1.0))
                if numbers.random() < share
                for _ in range(numbers.choice((1, 30)))
            ]
            for _ in range(80)
        ]
        query = [QueryTerm(1, 1.0), QueryTerm(2, numbers.uniform(0.5, 3)), QueryTerm(3, numbers.uniform(0.5, 2))]
        for k in (1, 3):
            agree(rows, [], set(), query, k, 1.2, 0.0)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(ROWS, st.sets(st.integers(0, 39), max_size=10), QUERY, CONSTANTS)
def test_no_row_scores_more_than_is_possible(
    rows: list[list[int]], dead: set[int], query: list[QueryTerm], constants: tuple[float, float]
) -> None:
    k1, b = constants
    state = snapshot(rows, [], dead)
    found = state.rank(query, len(rows), k1=k1, b=b)
    # Scores are single precision, and with k1 0 the best row reaches what is possible.
    assert max(found.scores, default=0.0) <= state.max_score(query, k1=k1) * (1 + 1e-6)


def test_grams_do_not_raise_what_is_possible_by_words() -> None:
    state = snapshot([[1, 2], [1], [3]], [], set())
    asked = [QueryTerm(2, 0.7, group=0), QueryTerm(1, 1.0, group=0), QueryTerm(3, 0.5)]
    possible = state.max_score(asked, k1=1.2)
    assert state.max_score([*asked, QueryTerm(2**63 + 5, 0.25, is_gram=True)], k1=1.2) == possible
    # The words of a group are as rare as the most frequent one, and the one that weighs most counts.
    assert possible == pytest.approx(2.2 * (1.0 * idf(3, 2) + 0.5 * idf(3, 1)))


def test_a_spelling_that_no_row_has_makes_nothing_possible_if_a_row_has_another() -> None:
    state = snapshot([[1, 2], [1], [3]], [], set())
    translated = [QueryTerm(9, 1.0, group=0), QueryTerm(3, 0.7, group=0)]
    assert state.max_score(translated, k1=1.2) == pytest.approx(2.2 * 0.7 * idf(3, 0.7))
    unknown = [QueryTerm(9, 1.0, group=0), QueryTerm(8, 0.7, group=0)]
    assert state.max_score(unknown, k1=1.2) == pytest.approx(2.2 * idf(3, 0))


def test_a_term_that_is_in_every_row_still_counts() -> None:
    state = snapshot([[1], [1], [1, 2]], [], set())
    found = state.rank([QueryTerm(1, 1.0)], 5, k1=1.2, b=0.75)
    assert len(found.rows) == 3
    assert all(score > 0 for score in found.scores)


def test_a_filter_narrows_the_answer_but_not_the_statistics() -> None:
    state = snapshot([[1, 2], [1], [2], [1, 1]], [], set())
    query = [QueryTerm(1, 1.0), QueryTerm(2, 1.0)]
    narrow = state.rank(query, 5, k1=1.2, b=0.75, where=(1, 3))
    wide = state.rank(query, 5, k1=1.2, b=0.75)
    assert sorted(state.chunk_ids(narrow.rows)) == [1, 3]
    assert set(zip(*narrow, strict=True)) <= set(zip(*wide, strict=True))


@given(st.lists(st.lists(st.integers(0, 2**63 - 1), max_size=8), max_size=6))
def test_packed_terms_come_back(chunks: list[list[int]]) -> None:
    back = [dict(zip(keys.tolist(), counts.tolist(), strict=True)) for keys, counts in unpack_terms(pack_terms(chunks))]
    assert back == [dict(Counter(chunk)) for chunk in chunks]
    for index, chunk in enumerate(chunks):
        keys, counts = unpack_chunk_terms(pack_terms(chunks), index)
        assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == dict(Counter(chunk))


@settings(max_examples=25)
@given(ROWS, st.lists(st.integers(0, 40), max_size=2), QUERY)
def test_the_terms_of_one_row_are_those_of_the_row_among_others(
    rows: list[list[int]], cuts: list[int], query: list[QueryTerm]
) -> None:
    state, terms = snapshot(rows, cuts, set()), tuple(query)
    expected = [[term.key in row for term in terms] for row in rows]
    assert state.matches(terms, state.rows()) == expected
    assert [state.matches(terms, [row])[0] for row in state.rows()] == expected
    state.rank(terms, 5, k1=1.2, b=0.75)  # what it looked up is used again
    assert [state.matches(terms, [row])[0] for row in state.rows()] == expected


@pytest.mark.parametrize("allowed_share", [1, 2, 5])
def test_lists_are_added_one_by_one_or_at_once_and_to_some_or_all_rows_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, allowed_share: int
) -> None:
    numbers = random.Random(3)
    words = ["検索", "設定", "server", "search", "京都", "障害", "データベース", "評価"]
    texts = [" ".join(numbers.choices(words, range(1, 9), k=numbers.randrange(1, 9))) for _ in range(600)]
    # Every seventh text has n-grams only, by which it is not found.
    keys = [analyzer.term_keys(text) if number % 7 else [] for number, text in enumerate(texts)]
    rows = [
        StoredChunk(number, number, number, text, *unpack_terms(pack_terms([keys[number]]))[0], None)
        for number, text in enumerate(texts)
    ]
    state = EmbeddedView([SegmentView(segment.build(rows, 0, {}))], 1)
    where = None if allowed_share == 1 else tuple(range(0, 600, allowed_share))
    for query in (*words, "検索の設定", "京都のデータベースの障害", "search server の評価と検索", "評価する server"):
        terms = analyse_query(query).terms
        answers = []
        for postings_at_once, min_dense_rows, late_postings in ((0, 10**9, 0), (0, 0, 10**9), (0, 0, 0), (10**9, 0, 0)):
            monkeypatch.setattr(segment_scores, "MAX_POSTINGS_AT_ONCE", postings_at_once)
            monkeypatch.setattr(segment_scores, "MIN_DENSE_ROWS", min_dense_rows)
            monkeypatch.setattr(segment_scores, "MIN_LATE_POSTINGS", late_postings)
            answers.append([state.rank(terms, k, k1=1.2, b=0.75, where=where) for k in (1, 10, 100, 600)])
        assert answers[0] == answers[1] == answers[2] == answers[3]
        assert len(answers[0][-1].rows) > 0


def test_rows_found_by_n_grams_alone_are_the_same_list_by_list(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["温泉旅館の料理", "旅館の予約", "料理の本", "温泉の旅", "検索の設定"]
    no_terms = unpack_terms(pack_terms([[]]))[0]
    rows = [StoredChunk(number, number, number, text, *no_terms, None) for number, text in enumerate(texts)]
    state = EmbeddedView([SegmentView(segment.build(rows, 0, {}))], 1)
    grams = [QueryTerm(gram.key, 1.0, is_gram=True) for gram in ngrams.query_grams("温泉旅館の旅")]
    at_once = state.rank_grams(grams, 5, min_share=0.3)
    assert at_once.rows[0] == 0
    assert sorted(at_once.rows) == [0, 1, 3]
    monkeypatch.setattr(bm25, "MAX_POSTINGS_AT_ONCE", 0)
    assert state.rank_grams(grams, 5, min_share=0.3) == at_once
