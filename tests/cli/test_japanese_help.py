"""The help of every command is in Japanese if `display.language` says so."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import click
import pytest

from bunko.interfaces.cli.commands import help as start
from bunko.interfaces.cli.help_formatter import cell_count, first_sentence, wrap_cells
from bunko.interfaces.cli.main import COMMANDS, GROUPS, bunko
from tests.cli.pictures import Terminal, check_picture
from tests.conftest import Run

FILE = files("bunko.messages").joinpath("japanese", "help.toml")
SECTIONS: dict[str, dict[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
CATALOGUE = {english: japanese for section in SECTIONS.values() for english, japanese in section.items()}
# What click adds to help, and what bunko writes without a command: these have no object to ask.
OTHER_TEXTS = {"Usage:", "Options", "Commands", "required", "default: {}"}
START_PAGE = {
    "Search your own documents in Japanese and English, on your own machine.",
    "`bunko help COMMAND` explains a command, `bunko --help` lists them all.",
    "Your library has {} tool: {}.",
    "Your library has {} tools: {}.",
    *(text for _, text in start.FIRST_STEPS),
}
_CODE = re.compile(r"`[^`]*`|bunko( [a-z-]+)*")
_WORDS = re.compile(r"\b[a-z]{2,} [a-z]{2,} [a-z]{2,}\b")


@pytest.fixture
def japanese(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")


@cache
def contexts() -> list[click.Context]:
    """Return bunko and all commands and subcommands below it."""

    def walk(context: click.Context) -> Iterator[click.Context]:
        yield context
        if isinstance(group := context.command, click.Group):
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                assert command is not None
                yield from walk(click.Context(command, parent=context, info_name=name))

    return list(walk(click.Context(bunko, info_name="bunko", **bunko.context_settings)))


def paths() -> list[str]:
    return [context.command_path for context in contexts()]


def texts_of(context: click.Context) -> Iterator[str]:
    """Yield the texts in the help of a command."""
    yield first_sentence(context.command)
    for paragraph in inspect.cleandoc(context.command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from (line for line in paragraph.splitlines()[1:] if not line.startswith("  "))
        else:
            yield " ".join(paragraph.split())
    for param in context.command.get_params(context):
        if isinstance(param, click.Option) and param.help:
            yield " ".join(param.help.split()).removesuffix(" [required]")


def copied_lines(context: click.Context) -> set[str]:
    """Return the lines in the help of a command that are commands to copy."""
    help_lines = inspect.cleandoc(context.command.help or "").splitlines()
    return {line.strip() for line in help_lines if line.startswith("  ")}


@pytest.mark.parametrize("context", contexts(), ids=paths())
def test_every_text_of_a_commands_help_has_a_translation(context: click.Context) -> None:
    missing = [text for text in texts_of(context) if text not in CATALOGUE]
    assert missing == [], f"Add them to {FILE.name}, in the section of the command."


def test_the_list_of_commands_and_the_start_page_have_translations() -> None:
    assert {*COMMANDS.values(), *GROUPS, *OTHER_TEXTS, *START_PAGE} - set(CATALOGUE) == set()


def test_no_translation_of_help_is_unused() -> None:
    used = {*COMMANDS.values(), *GROUPS, *OTHER_TEXTS, *START_PAGE, *SECTIONS["Usage errors"]}
    for context in contexts():
        used |= {*texts_of(context), *copied_lines(context)}
    assert set(CATALOGUE) - used == set()


def test_a_text_is_translated_once_in_the_section_of_its_command() -> None:
    assert sum(map(len, SECTIONS.values())) == len(CATALOGUE)
    assert {name for name in SECTIONS if name.startswith("bunko")} <= set(paths())


@pytest.mark.parametrize("path", paths())
@pytest.mark.usefixtures("japanese")
def test_help_in_japanese_has_no_english_sentence_and_fits_the_terminal(
    path: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run(*path.split()[1:], "--help")
    assert ran.code == 0, ran.err
    rows = ran.out.splitlines()
    assert rows[0].startswith(f"使い方: {path}")
    copied = copied_lines(next(context for context in contexts() if context.command_path == path))
    assert {line for line in copied if line not in CATALOGUE} <= {row.strip() for row in rows}
    written = [row for row in rows if row.strip() not in copied]
    assert [row for row in written if _WORDS.search(_CODE.sub("", row))] == []
    assert [row for row in written if cell_count(row) > 80] == []


def test_translations_are_written_in_one_style() -> None:
    options = {" ".join(param.help.split()).removesuffix(" [required]")
               for context in contexts() for param in context.command.get_params(context)
               if isinstance(param, click.Option) and param.help}  # fmt: skip
    for english, text in CATALOGUE.items():
        assert not re.search("(ライブラリ|フォルダ|サーバ|ブラウザ|エディタ|プロバイダ)(?!ー)", text), text
        assert not re.search(r"Web(?! )|ウエブ|ファイルー", text), text
        assert not re.search(r"[ぁ-んァ-ヶ一-龠]\(|\)[ぁ-んァ-ヶ一-龠]|[ぁ-んァ-ヶ一-龠][,;!?]", text), text
        assert not re.search(r"[ぁ-んァ-ヶ一-龠ー][A-Za-z0-9]|[A-Za-z0-9][ぁ-んァ-ヶ一-龠]", text), text
        if english in options:
            assert not text.removesuffix("]").endswith("。"), text
    assert all(CATALOGUE[text].endswith("。") for text in COMMANDS.values())


@pytest.mark.usefixtures("japanese")
def test_the_start_page_names_the_tools_of_the_library(
    terminal: Terminal, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert terminal("tool", "add", "-n", "diary", "-d", "about", "-s", notes, width=80).code == 0
    rows = terminal(width=80).rows
    assert "ライブラリーのツールは 1 個です: diary" in rows
    assert not any(_WORDS.search(_CODE.sub("", row)) for row in rows if "," not in row)


def test_a_word_longer_than_a_line_is_cut_after_a_bar_and_a_note_is_kept_whole() -> None:
    lines = list(wrap_cells("[OPTIONS] {claude-code|claude-desktop|codex|cursor}", 30))
    assert lines == ["[OPTIONS]", "{claude-code|claude-desktop|", "codex|cursor}"]
    assert "".join(wrap_cells("a" * 50 + "あ" * 30, 20)) == "a" * 50 + "あ" * 30
    assert list(wrap_cells("件数 [端末では 50] [x>=1]", 14)) == ["件数", "[端末では 50]", "[x>=1]"]
    assert max(cell_count(line) for line in wrap_cells("x" * 50 + "あ" * 30, 21)) <= 21


def test_the_list_of_subcommands_has_whole_sentences(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = " ".join(run("tool", "--help").out.partition("Commands:")[2].split())
    assert "Check that assistants can tell the active tools apart by their descriptions." in listed
    assert "..." not in listed


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("name", "arguments"), [("start", []), ("help-bunko", ["--help"]), ("help-search", ["search", "--help"])]
)
def test_help_is_as_in_its_picture(
    name: str, arguments: list[str], width: int, language: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", language)
    screen = terminal(*arguments, width=width)
    assert screen.code == 0
    assert screen.written.count("\n") == len(screen.rows)  # no line is longer than the terminal
    check_picture(f"{name}-{language}-{width}", screen)
