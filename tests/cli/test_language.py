"""Commands speak the language that `display.language` names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from bunko.interfaces.cli import language
from bunko.interfaces.cli.help_formatter import cell_count, wrap_cells
from bunko.interfaces.cli.language import read_catalogue, set_language, translate
from tests.conftest import Run

CATALOGUE = dict(read_catalogue())


@pytest.fixture(autouse=True)
def japanese() -> Iterator[None]:
    set_language("ja")
    yield
    set_language(None)


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A small catalogue in place of the real one."""
    small = {
        "Nothing was found": "見つかりませんでした",
        "{} documents": "{0} 件の文書",
        "Added {} to {}.": "{1} に {0} を追加しました。",
        "Added {}.": "{0} を追加しました。",
    }
    monkeypatch.setattr(language, "read_catalogue", lambda: iter(small.items()))
    language._catalogue.cache_clear()
    yield
    language._catalogue.cache_clear()


@pytest.mark.usefixtures("entries")
@pytest.mark.parametrize(
    ("english", "expected"),
    [
        ("Nothing was found", "見つかりませんでした"),
        ("  Nothing was found\n", "  見つかりませんでした\n"),
        ("3 documents", "3 件の文書"),
        ("Added 3 documents to notes.", "notes に 3 件の文書 を追加しました。"),
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


def test_a_translation_has_the_values_of_its_message_and_nothing_else_in_braces() -> None:
    for english, translation in CATALOGUE.items():
        used = {name for _, name, _, _ in Formatter().parse(translation) if name is not None}
        assert used <= {str(number) for number in range(english.count("{}"))}, english
        assert translation.strip(), english
        assert re.search("[ぁ-んァ-ヶ一-龠]", translation), english


def test_two_messages_of_the_catalogue_are_not_taken_for_each_other() -> None:
    for english, translation in CATALOGUE.items():
        values = [f"値{number}" for number in range(english.count("{}"))]
        assert translate(english.replace("{}", "{{}}").replace("{{}}", "{}").format(*values)) == translation.format(
            *values
        ), english


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
