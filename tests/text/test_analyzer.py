"""Texts are split into the expected terms."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bunko.text import analyzer
from bunko.text.part_of_speech import parse_run
from tests.text.words import spellings


def shared(a: str, b: str) -> set[str]:
    return set(spellings(a)) & set(spellings(b))


def test_particles_auxiliaries_and_symbols_are_left_out_and_suffixes_are_not() -> None:
    assert spellings("機械学習は統計学の応用です。") == ["機械", "学習", "統計", "学", "応用"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("走る", "昨日は公園を走った"),
        ("ＡＰＩ", "the api reference"),
        ("ｶﾞｲﾄﾞ", "ガイドを読む"),
        ("玉ねぎ", "玉葱を刻む"),
        ("特許", "特許を出願する"),
        ("京都", "京都に行く"),
        ("github", "GitHubActions を使う"),
        ("actions", "GitHubActions を使う"),
        ("DEC-0054", "see DEC-0054 for details"),
        ("DEC0054", "see DEC-0054 for details"),
        ("max_chunk_chars", "maxChunkChars"),
        ("chunk", "max_chunk_chars"),
        ("validating forms", "form validation validates"),
        ("café", "the CAFE is closed"),
        ("サーバ", "サーバーを再起動"),
        ("サーバー", "restart the server"),
        ("server", "サーバーを再起動"),
        ("C++", "modern C++ style"),
    ],
)
def test_a_query_shares_a_term_with_a_text_that_says_the_same_in_another_form(query: str, text: str) -> None:
    assert shared(query, text)


@pytest.mark.parametrize(("query", "text"), [("C++", "C and D"), ("3.14", "314 people"), ("猫", "犬が走る")])
def test_different_things_share_no_term(query: str, text: str) -> None:
    assert not shared(query, text)


def test_the_english_a_loanword_comes_from_is_marked_as_such() -> None:
    assert [(term.spelling, term.role) for term in analyzer.terms("サーバー")] == [
        ("サーバー", ""),
        ("server", "loanword"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("レンダー関数", ["レンダー", "render", "関数"]),
        ("キャッシュを消す", ["キャッシュ", "cach", "消す"]),
        ("ソースコード", ["ソース", "sourc", "コード", "code"]),
        (
            "スケートのリンクではなくリンクを張る",
            ["スケート", "skate", "リンク", "link", "無い", "リンク", "link", "張る"],
        ),
        ("スニペットを貼る", ["スニペット", "snippet", "張る"]),
        ("コードスニペット", ["コード", "code", "スニペット", "snippet"]),
        ("アンインストールする", ["アンインストール", "uninstal", "為る"]),
        ("ペットと暮らす", ["ペット", "pet", "暮らす"]),
    ],
)
def test_a_loanword_is_one_word_with_the_origin_that_translations_have(text: str, expected: list[str]) -> None:
    assert spellings(text) == expected


@pytest.mark.parametrize("text", ["コードスニペットを貼る", "アンインストールした", "トリガとヒープ", "レンダー関数"])
def test_parts_of_speech_and_terms_are_those_of_the_same_words(text: str) -> None:
    assert len(parse_run(text)) == len(analyzer.terms_by_word(text))
    assert "".join(surface for surface, _ in parse_run(text)) == text


def test_a_word_that_only_looks_like_part_of_a_loanword_stays_one() -> None:
    assert "アタッチ" not in spellings("アタッチメントを外す")
    assert "プランナ" not in spellings("お得なプランなので選ぶ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don’t see it", ["dont", "see"]),
        ("won't can't", ["wont", "cant"]),
        ("the user's guide", ["user", "guid"]),
        ("we've let's they'll", ["let"]),
        ("o'clock", ["oclock", "clock"]),
        ("O'Reilly", ["oreilli", "reilli"]),
        ("re-render", ["rerend", "render"]),
        ("pre-commit hooks", ["precommit", "commit", "hook"]),
        ("Re-Use", ["reus", "use"]),
        ("re_match", ["rematch", "re", "match"]),
    ],
)
def test_contractions_and_prefixes_are_no_words_of_their_own(text: str, expected: list[str]) -> None:
    assert spellings(text) == expected


def test_words_that_only_build_a_sentence_are_left_out() -> None:
    assert spellings("What is the difference between them?") == ["differ", "between"]


def test_data_in_one_long_word_stays_one_term() -> None:
    assert len(spellings("aB3" * 40)) == 1


def test_keys_are_stable_across_processes_because_libraries_are_read_by_many() -> None:
    assert analyzer.term_key("検索") == 8078490553370935626
    assert all(0 <= analyzer.term_key(term) < 2**63 for term in ("", "a", "検索"))


@given(st.text())
@example("㌀")
def test_any_text_has_terms_and_each_key_belongs_to_one_of_them(text: str) -> None:
    keys = {"loanword": analyzer.origin_key}
    terms = [term for run in analyzer.runs(text) for term in analyzer.terms(run)]
    assert analyzer.term_keys(text) == [keys.get(term.role, analyzer.term_key)(term.spelling) for term in terms]
