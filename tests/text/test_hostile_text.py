"""Texts that make careless patterns read the same characters again and again: minutes, for some hundred kilobytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from bunko.chunkers.split import trim_blank_lines
from bunko.chunkers.tables import markdown_tables
from bunko.readers import outline, rst
from bunko.readers.html.tree import sanitize_html
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


@pytest.mark.parametrize(
    ("read", "mark", "end"),
    [
        (lambda text: trim_blank_lines(text, 0, len(text)), "\n", "a"),
        (lambda text: list(markdown_tables("a|\n-|-" + text, 0, len(text))), "\n|", ""),
        (lambda text: list(outline.scan_outline(text)), "- ", "```"),
        (lambda text: list(outline.scan_outline("Title\n" + text)), "-", " x\n---"),
        (lambda text: list(rst.scan_outline(text)), "=", "\n"),
        (lambda text: list(rst.scan_outline("Code::\n" + text)), "\n a", ""),
        (lambda text: sanitize_html("<a " + text), "=a", ">"),
    ],
    ids=["blank lines", "rows", "items", "rule", "adornment", "literal lines", "attributes"],
)
def test_a_repeated_mark_takes_little_memory(read: Callable[[str], object], mark: str, end: str) -> None:
    text = mark * (100_000 // len(mark)) + end
    tracemalloc.start()
    try:
        read(text)
        assert (
            tracemalloc.get_traced_memory()[1] < 1_500_000
        )  # a pattern that repeats a group takes 100 bytes each time
    finally:
        tracemalloc.stop()


def test_a_tag_that_was_cut_is_no_text() -> None:
    assert plain_text('<a href="https://example.com"><img alt="Logo"\n src="').strip() == ""
    assert plain_text("a <b and c") == "a <b and c"
