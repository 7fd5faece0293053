"""Texts that make careless patterns read the same characters again and again: minutes, for some hundred kilobytes."""

from __future__ import annotations

import pytest

from bunko.text.nouns import plain_text
from bunko.text.subwords import space_words


@pytest.mark.parametrize("mark", ["<!--", "_", "{%", "](", "<a ", "a.", "www.", "\n```", "&amp", "a@", "token "])
def test_marks_that_are_never_closed_take_no_time_that_grows_with_their_square(mark: str) -> None:
    assert plain_text(f"Quorum queues {mark * (200_000 // len(mark))}").startswith("Quorum queues")


def test_an_address_or_a_comment_is_still_left_out() -> None:
    text = "Ask <!-- not\nme --> or x.y+z@mail.example, (a@b.example) {{ page.title }} {# note #} now <!-- cut"
    assert plain_text(text).split() == ["Ask", "or", ",", "(", ")", "now"]


def test_a_run_of_spaces_is_read_once() -> None:
    assert space_words(" " * 200_000) == " " * 200_000
    assert space_words(f"検索{' ' * 200_000}文 GitHub \n で") == "検索文 GitHubで"
