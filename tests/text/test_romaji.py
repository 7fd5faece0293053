"""Names in ASCII: Japanese by its reading, in Hepburn without marks for long vowels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.text.romaji import kana_to_romaji, romanize


@pytest.mark.parametrize(
    ("name", "romanized"),
    [
        ("日記", "nikki"),
        ("レシピ", "reshipi"),
        ("旅の記録", "tabi_no_kiroku"),
        ("社内文書", "shanai_bunsho"),
        ("お知らせ", "oshirase"),
        ("手順書", "tejunsho"),
        ("東京の料理", "tokyo_no_ryori"),
        ("API仕様", "API_shiyo"),
        ("2024年の日記", "2024_nen_no_nikki"),
        ("ｶﾀｶﾅ", "katakana"),
        ("Café Zürich", "Cafe Zurich"),
        ("my notes", "my notes"),
    ],
)
def test_a_name_is_read_word_by_word(name: str, romanized: str) -> None:
    assert romanize(name) == romanized


@pytest.mark.parametrize("name", ["Дневник", "노트", "笔记", "📚"])
def test_letters_that_have_no_reading_stay_as_they_are(name: str) -> None:
    assert romanize(name) == name


@pytest.mark.parametrize(
    ("kana", "romaji"),
    [
        ("シャチョー", "shacho"),
        ("ヒャクニチ", "hyakunichi"),
        ("チョット", "chotto"),
        ("マッチャ", "matcha"),
        ("ザッシ", "zasshi"),
        ("ジュース", "jusu"),
        ("フィルム", "firumu"),
        ("パーティー", "pati"),
        ("ウィキ", "wiki"),
        ("チェック", "chekku"),
        ("ヴェール", "veru"),
        ("クォーツ", "kwotsu"),
        ("イェール", "yeru"),
        ("フュージョン", "fyujon"),
        ("ヅツミ", "zutsumi"),
        ("ヲ", "o"),
        ("アッ", "a"),
        ("ャ", "ya"),
        ("ァ", "a"),
    ],
)
def test_kana_are_written_in_hepburn(kana: str, romaji: str) -> None:
    assert kana_to_romaji(kana) == romaji


@given(st.text(st.characters(min_codepoint=0x30A1, max_codepoint=0x30FA), max_size=20))
def test_every_katakana_has_letters(kana: str) -> None:
    assert kana_to_romaji(kana).isascii()
    assert kana_to_romaji(f"カ{kana}").startswith("k")
