"""Names and descriptions are shown on one line, without invisible characters, at a limited length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bunko.text.labels import clean_label


def test_a_plain_label_stays_as_it_is() -> None:
    for label in ("API のメモ (2024)", "がぎぐ", "naïve 😀", ""):
        assert clean_label(label, 40) == label


def test_line_breaks_become_spaces_and_invisible_characters_vanish() -> None:
    assert clean_label(" a\r\n\u2028b\x0b\x85c\t d ", 40) == "a b c d"
    assert clean_label("p\u202eq\u200b\u2069\ufeff\u00ad\x1b\x00\U000e0061\ufe0f\u034fr", 40) == "pqr"


def test_a_long_label_is_cut_visibly() -> None:
    assert clean_label("abc def", 5) == "abc…"
    assert clean_label("abcde", 5) == "abcde"


@given(st.text(), st.integers(1, 50))
def test_a_clean_label_is_stable(text: str, limit: int) -> None:
    label = clean_label(text, limit)
    assert len(label) <= limit
    assert clean_label(label, limit) == label
