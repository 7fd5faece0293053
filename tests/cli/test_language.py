"""Commands speak the language that `display.language` names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from bunko import messages as language
from bunko.interfaces.cli.help_formatter import cell_count, wrap_cells
from bunko.messages import read_catalogue, set_language, translate, translate_reason
from tests.conftest import Run

CATALOGUE = dict(read_catalogue())


@pytest.fixture(autouse=True)
def japanese() -> None:
    set_language("ja")


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A small catalogue in place of the real one."""
    small = {
        "Nothing was found": "見つかりませんでした",
        "{n} documents": "文書 {0} 件",
        "{n} chunks": "チャンク {0} 個",
        "Added {} to {}.": "{1} に {0:t} を追加しました。",
        "Added {}.": "{0} を追加しました。",
        "Search it with: {}": "検索するには: {0}",
        "There is no folder {}": "フォルダーがありません: {0}",
        "It has {}": "中身は {0:list} です",
        "{n} .{w}": ".{1} {0} 件",
        "{} did not work: {w} {t}": "{0} に失敗: {1} は{2:t}",
        "{} did not work: {}": "{0} に失敗: {1:t}",
        "is empty": "空です",
        "it is new": "新しいものです",
    }
    monkeypatch.setattr(language, "read_catalogue", lambda: iter(small.items()))
    language.load_catalogue.cache_clear()
    yield
    language.load_catalogue.cache_clear()


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    ("english", "expected"),
    [
        ("Nothing was found", "見つかりませんでした"),
        ("  Nothing was found\n", "  見つかりませんでした\n"),
        ("3 documents", "文書 3 件"),
        ("my documents", "my documents"),
        ("1,200 documents, 3 chunks", "文書 1,200 件、チャンク 3 個"),
        ("3 documents, and more", "3 documents, and more"),
        ("Added 3 documents to notes.", "notes に 文書 3 件 を追加しました。"),
        ("Added 3 documents.", "3 documents を追加しました。"),
        ("Added a. Search it with: bunko search x", "a を追加しました。検索するには: bunko search x"),
        ("There is no folder a\nb", "フォルダーがありません: a\nb"),
        ("There is no folder ./a. Search it with: b", "フォルダーがありません: ./a。検索するには: b"),
        ("Search it with: bunko search .", "検索するには: bunko search ."),
        ("It has a, b and c", "中身は a、b、c です"),
        ("A did not work: b is empty", "A に失敗: b は空です"),
        ("A did not work: it is new", "A に失敗: 新しいものです"),
        ("3 .md", ".md 3 件"),
        ("3 .md and more", "3 .md and more"),
        ("Added {0} to {x}.", "{x} に {0} を追加しました。"),
        ("Added notes.", "notes を追加しました。"),
        ("Nothing was found\nSomething else", "見つかりませんでした\nSomething else"),
        ("Something else", "Something else"),
        ("", ""),
    ],
)
def test_a_message_is_found_by_the_text_around_its_values(english: str, expected: str) -> None:
    assert translate(english) == expected
    set_language("en")
    assert translate(english) == english


PLACEHOLDER = re.compile(r"\{[nwt]?\}")
SAMPLES = {"{n}": "3{}", "{t}": "is empty", "{w}": "値{}", "{}": "値{}"}


def test_a_translation_has_the_values_of_its_message_and_nothing_else_in_braces() -> None:
    for english, translation in CATALOGUE.items():
        fields = [(name, form) for _, name, form, _ in Formatter().parse(translation) if name is not None]
        assert {name for name, _ in fields} <= {str(number) for number in range(len(PLACEHOLDER.findall(english)))}
        assert {form for _, form in fields} <= {"", "s", "t", "list", "words"}, english
        assert re.search("[ぁ-んァ-ヶ一-龠]", translation), english


def test_a_message_has_one_translation() -> None:
    assert len(CATALOGUE) == len(list(read_catalogue()))


def test_two_messages_of_the_catalogue_are_not_taken_for_each_other() -> None:
    for english, translation in CATALOGUE.items():
        kinds = PLACEHOLDER.findall(english)
        values = [SAMPLES[kind].format(number) for number, kind in enumerate(kinds)]
        parts = PLACEHOLDER.split(english)
        message = parts[0] + "".join(value + part for value, part in zip(values, parts[1:], strict=True))
        shown = [translate(value) if kind == "{t}" else value for value, kind in zip(values, kinds, strict=True)]
        expected = re.sub(r":(?:s|t|list|words)\}", "}", translation).format(*shown)
        assert translate(message) == expected, english


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("is empty; it will be indexed when it has content", "空です。内容が書かれたら取り込まれます"),
        ("a.md is being written\nWait until it is complete and import again.",
         "a.md は書き込み中です。書き終わってから、もう一度取り込んでください。"),
        ("The PDF is encrypted\nSave a copy without a password and import that.",
         "PDF が暗号化されています。パスワードを外して保存したものを取り込んでください。"),
        ("Something else", "Something else"),
    ],
)  # fmt: skip
def test_why_a_document_has_a_problem_is_on_one_line(reason: str, expected: str) -> None:
    assert translate_reason(reason) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "ftp://x is not fetched: it is not http:// or https://",
            "ftp://x は取得しません: http:// でも https:// でもありません",
        ),
        (
            "http://10.0.0.1/ is not fetched: 10.0.0.1 is private",
            "http://10.0.0.1/ は取得しません: 10.0.0.1 はプライベートアドレスです",
        ),
        (
            "There is nothing to index in ~/a: it has no files",
            "~/a に取り込めるものがありません: ファイルがありません",
        ),
        (
            "There is nothing to index in ~/a: b.md is empty; it will be indexed when it has content",
            "~/a に取り込めるものがありません: b.md は空です。内容が書かれたら取り込まれます",
        ),
        (
            "There is nothing to index in ~/a: its files are not read: 2 .zig, 1 .rb and 3 more endings;"
            " the folder data is skipped (scanner.exclude_dirs)",
            "~/a に取り込めるものがありません: 次のファイルは読みません: .zig 2 件、.rb 1 件、ほか 3 種類。"
            "フォルダー data は読み飛ばします（scanner.exclude_dirs）",
        ),
        (
            "search.b is 7.0 (environment BUNKO_SEARCH_B), but it must be a number from 0 to 1",
            "search.b の値 7.0 は使えません（環境変数 BUNKO_SEARCH_B）。指定できる値: 0 から 1 までの数",
        ),
        (
            "a, b were built with a different chunker and embedder and keep it."
            " To use the current settings: bunko reindex --force",
            "a、b は今と違う設定（区切り方、埋め込み）で作られ、そのまま使っています。"
            "今の設定にするには: bunko reindex --force",
        ),
        (
            "notes has documents without vectors, which are found by their words: openai did not answer: Connection"
            " refused. Check that https://api.example is up. A later import or search computes the vectors.",
            "notes にベクトルのない文書があります（単語では見つかります）: openai が応答しませんでした: "
            "接続を拒否されました。https://api.example が動いているかを確認してください。"
            "ベクトルは、後の取り込みか検索のときに作られます。",
        ),
        (
            "The answer is quoted from the documents. ollama:m did not answer: Connection refused."
            " Check that http://localhost:11434/v1 is up.",
            "文書から引用して答えました。ollama:m が応答しませんでした: 接続を拒否されました。"
            "http://localhost:11434/v1 が動いているかを確認してください。",
        ),
    ],
)
def test_messages_in_messages_read_as_one(message: str, expected: str) -> None:
    assert translate(message) == expected


def test_a_name_that_is_a_word_of_the_catalogue_stays_as_it_is() -> None:
    assert translate("Added never.") == "never を追加しました。"
    assert translate("There is no tool called 'active'") == "'active' というツールはありません"


@pytest.mark.parametrize("width", [20, 33, 78])
def test_japanese_lines_fit_and_do_not_begin_with_a_full_stop(width: int) -> None:
    text = "文書を検索します。結果は、一致した箇所の前後（snippet）か、節（section）です。--extract full は全体です。"
    lines = list(wrap_cells(text, width))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_count(line) <= width + 2 for line in lines)
    assert not any(line[0] in "。、）」" for line in lines)
    assert not any(line.endswith(("（", "「")) for line in lines)


def test_the_users_own_config_file_chooses_the_language_of_help(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_language(None)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BUNKO_DISPLAY_LANGUAGE", raising=False)
    assert "オプション" not in run("search", "--help").out
    (tmp_path / "bunko").mkdir()
    (tmp_path / "bunko" / "bunko.toml").write_text('[display]\nlanguage = "ja"\n', encoding="utf-8")
    assert "オプション" in run("search", "--help").out
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "en")
    assert "オプション" not in run("search", "--help").out


@pytest.mark.parametrize(
    ("variables", "is_japanese"),
    [
        ({"LANG": "ja_JP.UTF-8"}, True),
        ({"LANG": "ja"}, True),
        ({"LC_MESSAGES": "ja_JP.UTF-8", "LANG": "en_US.UTF-8"}, True),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "ja_JP.UTF-8"}, False),
        ({"LC_ALL": "C", "LC_MESSAGES": "ja_JP.UTF-8"}, False),
        ({"LC_ALL": "", "LANG": "ja_JP.eucJP"}, True),
        ({"LANG": "jam_JM"}, False),
        ({"LANG": "ja_JP.UTF-8", "BUNKO_DISPLAY_LANGUAGE": "en"}, False),
        ({"LANG": "en_US.UTF-8", "BUNKO_DISPLAY_LANGUAGE": "ja"}, True),
        ({}, False),
    ],
)
def test_commands_speak_the_language_of_the_system_unless_a_setting_chooses_one(
    run: Run, docs: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_japanese: bool
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (docs / "a.md").write_text("京都の寺\n", encoding="utf-8")
    assert ("オプション" in run("search", "--help").out) == is_japanese
    assert ("エラー" in run("get", "b.md", "--docs-dir", docs).err) == is_japanese
    assert ("見つかりません" in run("search", "zzzz", "--docs-dir", docs, "--mode", "bm25").out) == is_japanese


def test_the_users_own_config_file_overrides_the_language_of_the_system(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    (tmp_path / "XDG_CONFIG_HOME" / "bunko").mkdir(parents=True)
    config = tmp_path / "XDG_CONFIG_HOME" / "bunko" / "bunko.toml"
    config.write_text('[display]\nlanguage = "en"\n', encoding="utf-8")
    assert "オプション" not in run("search", "--help").out
    assert "Error" in run("get", "b.md").err
