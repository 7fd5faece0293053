"""A word that a line end cuts is one word; lines that belong apart stay apart."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.text import analyzer
from bunko.text.line_joins import join_lines, line_gaps
from bunko.text.nouns import nouns, plain_text
from bunko.text.snippets import SnippetTerms, find_matches
from tests.text.words import spellings


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("社内のネットワー\nクを設定する。", "社内のネットワークを設定する。"),
        ("社内のネットワー\r\nクを設定する。", "社内のネットワークを設定する。"),
        ("社内のﾈｯﾄﾜｰ\nｸを設定する。", "社内のﾈｯﾄﾜｰｸを設定する。"),
        ("\t* src/a.c: 再描画\n\t  問題に対処。", "\t* src/a.c: 再描画問題に対処。"),
        ("- 迷惑メー\n  ルの振り分け\n- 次の項目", "- 迷惑メールの振り分け\n- 次の項目"),
        ("> 社内のネットワー\n> クの設定", "> 社内のネットワークの設定"),
        ("一行目の文\n二行目の文\n三行目の文", "一行目の文二行目の文三行目の文"),
    ],
)
def test_lines_are_joined_between_japanese_characters(text: str, joined: str) -> None:
    assert join_lines(text) == joined


@pytest.mark.parametrize(
    "text",
    [
        "段落の終わり\n\n次の段落",
        "段落の終わり\n　字下げした段落",
        "文の終わり。\n次の文",
        "改行する  \n詩のような行",
        "# 見出し\n本文",
        "本文\n# 見出し",
        "題名\n===\n本文",
        "- 項目\n- 次の項目",
        "・項目\n・次の項目",
        "一、はじめに\n二、おわりに",
        "次の各号\nイ　第一の場合\nロ　第二の場合",
        "次の点\nア）一つ目\nイ）二つ目",
        "りんご | 高い\nみかん | 安い",
        "| 高い |\n| 安い |",
        "りんご\t高い\nみかん\t安い",
        "りんご  高い\nみかん  安い",
        "```\n一行目\n二行目\n```",
        "~~~\n一行目\n二行目",
        "> 引用した文\n返事の文",
        "English\n日本語",
        "日本語\nEnglish",
        "見出し\n-----\n本文",
        "試験を始める\n決定：\n開発費を増やす",
    ],
)
def test_lines_that_belong_apart_stay_apart(text: str) -> None:
    assert join_lines(text) == text


def test_lines_around_code_are_joined() -> None:
    text = "例を見\nる。\n```\n一行目\n二行目\n```\n次の例\nも見る。"
    assert join_lines(text) == "例を見る。\n```\n一行目\n二行目\n```\n次の例も見る。"


def test_a_word_cut_by_a_line_end_is_a_term() -> None:
    assert "ネットワーク" in spellings("社内のネットワー\n\t  クを設定する。")
    assert spellings("社内のネットワー\nク") == spellings("社内のネットワーク")
    assert analyzer.term_keys("社内のネットワー\nク") == analyzer.term_keys("社内のネットワーク")
    assert "ネットワーク設定" in [noun.text for noun in nouns(plain_text("社内のネットワー\nク設定を変える。"))]


def test_a_match_covers_a_word_with_the_line_end_inside_of_it_and_none_after_it() -> None:
    text = "社内のネットワー\n\t  クを設定\n\t  方法に従って変える。"
    terms = SnippetTerms({"ネットワーク": 1.0, "設定": 1.0, "方法": 1.0})
    assert [text[match.start : match.end] for match in find_matches(text, terms)] == [
        "ネットワー\n\t  ク",
        "設定",
        "方法",
    ]


def test_a_match_is_found_in_text_that_is_normalised_and_joined() -> None:
    text = "ＡＰＩのﾈｯﾄﾜｰ\n  ｸを①設定\nする"
    matches = find_matches(text, SnippetTerms({"ネットワーク": 1.0, "設定": 1.0, "api": 1.0}))
    assert [text[match.start : match.end] for match in matches] == ["ＡＰＩ", "ﾈｯﾄﾜｰ\n  ｸ", "設定"]


LINES = st.lists(
    st.sampled_from(
        ["日本", "ネットワー", "ク", "。", "\n", "\r\n", "  ", "\t", "　", "> ", "- ", "# ", "|", "```", "a", "一、"]
    ),
    max_size=40,
).map("".join)


@given(text=LINES)
def test_only_line_ends_and_blanks_are_removed(text: str) -> None:
    joined = join_lines(text)
    gaps = line_gaps(text)
    assert all(text[start:end].strip(" \t\r\n>") == "" and text[start:end].count("\n") == 1 for start, end in gaps)
    assert len(joined) == len(text) - sum(end - start for start, end in gaps)
    assert all(before[1] <= after[0] for before, after in pairwise(gaps))


@given(text=LINES)
def test_a_match_is_the_word_that_the_analyzer_saw(text: str) -> None:
    for match in find_matches(text, SnippetTerms({"ネットワーク": 1.0, "日本": 1.0})):
        assert join_lines(text[match.start : match.end]) in ("ネットワーク", "日本")
