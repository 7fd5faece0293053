"""No page makes the HTML reader fail or run for long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunko.chunkers import build
from bunko.readers import html
from tests.readers.html_pages import SENTENCE, text


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 100_000 + SENTENCE,
        "<ul><li>" * 50_000 + SENTENCE,
        "<table><tr><td>" * 30_000 + SENTENCE,
        f"<p {' '.join(f'a{n}=1' for n in range(60_000))}>{SENTENCE}</p>",
        "<p " + " ".join(f'a{n}=">"' for n in range(60_000)) + f">{SENTENCE}</p>",
        "".join(f"<p><b a={n}>" for n in range(20_000)) + SENTENCE,
        "".join(f"<p><i a={n}>x</b></p>" for n in range(20_000)) + SENTENCE,
        "<a x='>' " * 30_000 + f"><p>{SENTENCE}</p>",
        "- " * 200_000 + f"<p>{SENTENCE}</p>",
        f"<p>{SENTENCE}</p>" + "<!--" * 100_000,
        f"<table>{'<tr><td colspan=999 rowspan=9999>x' * 5000}</table><p>{SENTENCE}</p>",
    ],
    ids="divs lists tables attributes quoted unclosed crossed open-tag dashes comments spans".split(),
)
def test_pages_made_to_be_expensive_are_read_like_any_other(body: str) -> None:
    # Some of these take many seconds, others gigabytes, where a parser is left to itself.
    assert SENTENCE in text(body)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(["", "utf-8", "shift_jis", "iso-2022-jp", "utf-16", "x", "\0"]))
def test_no_bytes_make_the_reader_fail(data: bytes, charset: str) -> None:
    read = html.read(data, charset=charset, url="https://a.example/")
    read.text.text.encode()
    build().chunks(read.text)


TAGS = "p div table tr td th ul li pre code h1 a b ruby rt br main article script header form dl dd blockquote".split()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + ["<td colspan=3 rowspan=2>"]
            ),
            st.text(max_size=8),
        ),
        max_size=40,
    )
)
def test_no_order_of_tags_makes_the_reader_fail(parts: list[str]) -> None:
    html.read("".join(parts).encode(errors="replace"))


def test_lists_and_quotes_in_each_other_do_not_make_a_page_a_multiple_of_itself() -> None:
    for opening in ("<blockquote>", "<ul><li>", "<dl><dd>"):
        deep = opening * 150 + "<p>短い</p>" * 200
        assert len(text(deep)) < 5 * len(deep)
