"""Passages cut into pages that fit a budget, and the cursor that leads from one to the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import QueryError
from bunko.search.paging import Cursor, PageItem, build_page, check_cursor, parse_cursor, truncate_to_budget
from bunko.search.passages import Passage, PassageLabel
from bunko.text.labels import remove_hidden_chars
from bunko.text.token_count import estimate_tokens
from bunko.types import Chunk, Hit

FRAME = 50
SENTENCE = "索引は小さいほど速い。"


def passage(text: str, number: int = 0) -> Passage:
    chunk = Chunk(number, 0, len(text), 1, 1, text)
    hit = Hit("documents", f"{number}.md", "", "", (), "0" * 64, chunk, 1.0)
    return Passage(hit, 0, len(text), 1, 1, text, "0" * 12, PassageLabel(number, "", ()))


def decode_cursor(text: str, request_key: str) -> Cursor:
    cursor, digest = parse_cursor(text)
    check_cursor(digest, request_key)
    return cursor


def walk(passages: list[Passage], budget: int) -> list[list[PageItem]]:
    """Follow the cursor to the end, as a client carries it."""
    pages = []
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        cursor = decode_cursor(cursor.encode("question"), "question")
        pieces, cursor = build_page(
            passages, cursor, token_budget=budget, tokens_per_passage=None, overhead_tokens=lambda _: FRAME
        )
        pages.append(pieces)
        assert len(pages) < 10_000
    return pages


@given(
    st.lists(st.text(st.sampled_from("寺の。\n a.!?\u200b\u202e旅"), max_size=600), max_size=6),
    st.integers(min_value=100, max_value=400),
)
def test_the_pages_together_hold_every_passage_once_and_in_order(texts: list[str], budget: int) -> None:
    passages = [passage(text, number) for number, text in enumerate(texts)]
    got = dict.fromkeys(range(len(texts)), "")
    order = []
    for pieces in walk(passages, budget):
        for piece in pieces:
            got[piece.passage.hit.chunk.index] += piece.text
            order.append(piece.passage.hit.chunk.index)
    assert got == {number: remove_hidden_chars(text) for number, text in enumerate(texts)}
    assert order == sorted(order)


@given(st.lists(st.text(max_size=600), min_size=1, max_size=6), st.integers(min_value=100, max_value=400))
def test_a_page_never_costs_more_than_its_budget(texts: list[str], budget: int) -> None:
    for pieces in walk([passage(text, number) for number, text in enumerate(texts)], budget):
        assert pieces
        assert sum(FRAME + estimate_tokens(piece.text) for piece in pieces) <= budget + 2


def test_a_piece_says_whether_it_begins_and_ends_where_its_passage_does() -> None:
    pages = walk([passage(SENTENCE * 100)], 300)
    assert len(pages) > 2
    assert [(piece.has_start, piece.has_end) for pieces in pages for piece in pieces] == [
        (True, False),
        *[(False, False)] * (len(pages) - 2),
        (False, True),
    ]


def test_a_passage_that_hardly_begins_is_left_to_the_next_page() -> None:
    text = SENTENCE * 20
    first, second = walk([passage(text, 0), passage(text, 1)], 2 * FRAME + estimate_tokens(text) + 5)
    assert [piece.passage.hit.uri for piece in first] == ["0.md"]
    assert second[0].has_start
    assert second[0].passage.hit.uri == "1.md"


def test_with_a_limit_each_passage_is_only_begun_and_the_rest_is_not_asked_for() -> None:
    passages = [passage(SENTENCE * 100, number) for number in range(3)]
    pieces, rest = build_page(
        passages, Cursor(), token_budget=8000, tokens_per_passage=100, overhead_tokens=lambda _: FRAME
    )
    assert rest is None
    assert [piece.has_end for piece in pieces] == [False, False, False]
    assert all(0 < estimate_tokens(piece.text) <= 100 for piece in pieces)


def test_a_cut_is_made_after_a_sentence() -> None:
    assert truncate_to_budget(SENTENCE * 100, 200).endswith("。")
    assert truncate_to_budget("A sentence here. " * 100, 100).endswith(".")


def test_a_text_without_sentences_is_cut_where_the_budget_ends() -> None:
    assert 0 < len(truncate_to_budget("寺" * 1000, 100)) < 100


@given(st.text(), st.integers(min_value=1, max_value=100))
def test_what_fits_is_the_beginning_of_the_text_and_fits(text: str, budget: int) -> None:
    short = truncate_to_budget(text, budget)
    assert text.startswith(short)
    assert bool(short) == bool(text)
    assert estimate_tokens(short) <= max(budget, estimate_tokens(text[:1]))


@given(*[st.integers(min_value=0, max_value=1000)] * 3, st.integers(min_value=0), st.text())
def test_a_cursor_comes_back_as_it_was_written(a: int, b: int, c: int, generation: int, question: str) -> None:
    cursor = Cursor(a, b, c, generation)
    assert decode_cursor(cursor.encode(question), question) == cursor


def test_a_cursor_of_another_question_is_refused_with_what_to_do() -> None:
    with pytest.raises(QueryError, match="another request") as caught:
        decode_cursor(Cursor(5).encode("京都"), "奈良")
    assert "leave the cursor out" in caught.value.hint


@pytest.mark.parametrize(
    "garbage",
    [
        "x",
        "京都",
        "!!!!",
        "0123abcd",
        "0123abcd.1.2.3",
        "0123abcd.1.2.3.4.5",
        "0123abcd.1.2.3.four",
        "0123abcd.-1.0.0.0",
        "0123abcd.1.2.3.１",
        "0123abcd." + "9" * 5000 + ".0.0.0",
        "." * 50_000,
    ],
)
def test_a_garbled_cursor_is_refused_with_what_to_do(garbage: str) -> None:
    with pytest.raises(QueryError, match="The cursor is invalid") as caught:
        decode_cursor(garbage, "京都")
    assert "Leave it out" in caught.value.hint


@given(st.text())
def test_no_text_at_all_makes_reading_a_cursor_fail_otherwise(text: str) -> None:
    with pytest.raises(QueryError):
        decode_cursor(text, "京都")


def test_a_cursor_that_was_tampered_with_leads_nowhere_bad() -> None:
    digest = Cursor().encode("q").partition(".")[0]
    for numbers in ("-1.0.0.0", "0.-1.0.0", "0.0.-1.0", "1001.0.0.0"):
        with pytest.raises(QueryError):
            decode_cursor(f"{digest}.{numbers}", "q")
    far = decode_cursor(f"{digest}.0.{10**20}.{10**20}.0", "q")
    assert build_page(
        [passage(SENTENCE)], far, token_budget=500, tokens_per_passage=None, overhead_tokens=lambda _: FRAME
    ) == ([], None)
