"""A text broken into rows fits the terminal and loses nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.interfaces.cli.terminal.tables import best_window, cell_width, join_paragraphs, wrap_rows
from bunko.text.snippets import TermMatch

TEXTS = st.text(alphabet="ab 京都、。「」ー\n\u3000é👍(-)", max_size=200)


def rows_of(text: str, width: int) -> list[str]:
    return [text[row.start : row.end] for row in wrap_rows(text, width)]


@given(TEXTS, st.integers(2, 30))
def test_no_row_is_wider_than_the_terminal_and_no_character_is_lost(text: str, width: int) -> None:
    rows = rows_of(text, width)
    assert all(cell_width(row) <= width for row in rows)
    assert all(row.strip() for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("The server keeps the index.", 12, ["The server", "keeps the", "index."]),
        ("京都の寺を巡る。", 6, ["京都の", "寺を巡", "る。"]),  # no row begins with a full stop
        ("彼は「京都」へ", 6, ["彼は", "「京", "都」へ"]),  # and none ends with an opening bracket
        ("環境を Python で構築", 12, ["環境を", "Python で構", "築"]),
        ("first\n\n\nsecond", 20, ["first", "second"]),
        ("    indented code", 30, ["    indented code"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
    ],
)
def test_rows_break_where_people_would_break_them(text: str, width: int, rows: list[str]) -> None:
    assert rows_of(text, width) == rows


def test_hard_wrapped_paragraphs_are_joined_and_lists_tables_and_code_are_not() -> None:
    line = "The database schema is never changed in the same release as the code"
    assert join_paragraphs(f"{line}\nthat needs it.") == f"{line} that needs it."
    assert join_paragraphs(f"{'京都' * 20}の\n寺") == f"{'京都' * 20}の寺"
    for text in (f"{line}.\nthat", f"{line}\n- that", f"{line}\n\nthat", f"| {line} |\n| that |", "short\nthat",
                 f"```\n{line}\nthat\n```", f"    {line}\nthat", f"# {line}\nthat"):  # fmt: skip
        assert join_paragraphs(text) == text


def test_the_rows_shown_are_those_with_the_matches() -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    rows = wrap_rows(text, 20)
    position = text.index("line 12")
    match = TermMatch(position, position + 7, "line")
    assert best_window(rows, [match], {}, 4) == 11  # one row before the match
    assert best_window(rows, [match], {}, 1) == 12
    assert best_window(rows, [], {}, 4) == 0
    assert best_window(rows, [TermMatch(0, 4, "line")], {}, 4) == 0
    assert best_window(rows, [match], {}, 40) == 0


def test_two_words_together_count_more_than_one_word_often() -> None:
    text = "budget\nbudget budget budget\nnothing\nbudget server\nnothing"
    rows = wrap_rows(text, 40)
    matches = [TermMatch(word.start(), word.end(), word[0]) for word in re.finditer("budget|server", text)]
    assert best_window(rows, matches, {}, 1) == 3
