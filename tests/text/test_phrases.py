"""Exact phrases in texts."""

from __future__ import annotations

import pytest

from bunko.text.phrases import fold_text, has_phrase


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Form validation checks input.", "form validation"),
        ("It explains FORM\n  VALIDATION.", "form validation"),
        ("ＡＰＩ の設計", "api の設計"),
        ("ｻｰﾊﾞｰの再起動", "サーバー"),
        ("ネットワー\nクの設定", "ネットワーク"),
        ("これはAPIです", "api"),
        ("a re-render of the page", "re-render"),
        ("git commit --amend rewrites it", "--amend"),
        ("compile with -Wall first", "-Wall"),
        ("the max_chunk_chars setting", "chunk"),
        ("東京都の話", "京都"),
        ("C++ and C#", "c++"),
    ],
)
def test_a_phrase_is_found_whatever_its_width_case_and_line_ends(text: str, phrase: str) -> None:
    assert has_phrase(fold_text(text), phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("the form and its validation", "form validation"),
        ("a category of texts", "cat"),
        ("concatenate", "cat"),
        ("reform validation", "form validation"),
        ("version 1.23", "1.2"),
        ("café", "cafe"),
        ("走った", "走る"),
    ],
)
def test_other_words_and_parts_of_words_are_not_the_phrase(text: str, phrase: str) -> None:
    assert not has_phrase(fold_text(text), phrase)
