"""What is wrong with a command line is said in the user's language."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

import pytest

from tests.conftest import Run

_FILE = files("bunko.messages").joinpath("japanese", "help.toml")
CATALOGUE: dict[str, str] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["Usage errors"]
# Command lines with what is wrong with them.
ERRORS = {
    "serch 京都": "コマンド 'serch' はありません。'search' の間違いではありませんか？",
    "xyzzy": "コマンド 'xyzzy' はありません。",
    "tool able": "コマンド 'able' はありません。次のどれかの間違いではありませんか: 'disable', 'enable'",
    "tool lss": "コマンド 'lss' はありません。'ls' の間違いではありませんか？",
    "search": "引数 'QUERY...' を指定してください。",
    "completion": "引数 '{bash|zsh|fish}' を次から選んで指定してください:\n\tbash,\n\tzsh,\n\tfish",
    "tool delete": "引数 'NAME' を指定してください。",
    "tool add -n notes -d about": "オプション '--source' / '-s' を指定してください。",
    "search 京都 --xyzzy": "オプション '--xyzzy' はありません。",
    "search 京都 --sumary": "オプション '--sumary' はありません。'--summary' の間違いではありませんか？",
    "search 京都 --rewrit": (
        "オプション '--rewrit' はありません。次のどれかの間違いではありませんか: '--no-rewrite', '--rewrite', '--set'"
    ),
    "search 京都 --mode": "オプション '--mode' には値が必要です。",
    "search 京都 --json=1": "オプション '--json' に値は指定できません。",
    "status 京都": "余分な引数があります: 京都",
    "status 京都 奈良": "余分な引数があります: 京都 奈良",
    "search 京都 -k many": "'--top-k' / '-k' の値が正しくありません: 'many' は整数ではありません。",
    "search 京都 -k 0": "'--top-k' / '-k' の値が正しくありません: 0 は範囲 1<=x<=1000 の外です。",
    "search 京都 --mode x": (
        "'--mode' の値が正しくありません: 'x' は指定できません。指定できる値は 'bm25', 'semantic', 'hybrid' です。"
    ),
    "search 京都 --min-score x": "'--min-score' の値が正しくありません: 'x' は数値ではありません。",
    "watch --poll x": "'--poll' の値が正しくありません: 'x' は数値ではありません。",
    "help search top": "search にサブコマンドはありません",
}
# Errors for which click does not know the command.
WITHOUT_USAGE = {"search 京都 --mode", "search 京都 --json=1"}


@pytest.mark.parametrize("line", ERRORS)
def test_a_usage_error_is_in_japanese(line: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")
    ran = run(*line.split())
    assert ran.code == 2
    if line in WITHOUT_USAGE:
        assert ran.err == f"エラー: {ERRORS[line]}\n"
        return
    usage, hint, empty, message = ran.err.rstrip("\n").split("\n", 3)
    command = re.match(r"使い方: (bunko[a-z ]*)", usage)
    assert command is not None
    assert hint == f"使い方は '{command[1].strip()} --help' で表示できます。"
    assert empty == ""
    assert message == f"エラー: {ERRORS[line]}"


def test_a_group_without_a_command_shows_its_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")
    assert run("token").err == run("token", "--help").out


def test_every_translation_of_a_usage_error_is_used() -> None:
    shown = [message for error in ERRORS.values() for message in (error, *error.split(": ", 1))]
    shown += ["使い方は 'bunko --help' で表示できます。"]
    patterns = [re.sub(r"\\\{\d:s\\\}", ".+", re.escape(japanese)) for japanese in CATALOGUE.values()]
    assert [pattern for pattern in patterns if not any(re.fullmatch(pattern, text, re.S) for text in shown)] == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("search 京都 -k 0", "Invalid value for '--top-k' / '-k': 0 is not in the range 1<=x<=1000."),
        ("search 京都 --xyzzy", "No such option '--xyzzy'."),
        ("search 京都 --sumary", "No such option '--sumary'. Did you mean '--summary'?"),
        ("tool able", "No such command 'able'. (Did you mean one of: 'disable', 'enable'?)"),
        ("tool delete", "Missing argument 'NAME'."),
    ],
)
def test_a_usage_error_in_english_has_our_words(line: str, message: str, run: Run) -> None:
    ran = run(*line.split())
    assert ran.code == 2
    usage, hint, empty, error = ran.err.rstrip("\n").split("\n")
    command = re.match(r"Usage: (bunko [a-z]+(?: [a-z]+)?)", usage)
    assert command is not None
    assert hint == f"Try '{command[1]} --help' for help."
    assert (empty, error) == ("", f"Error: {message}")


def test_an_escape_sequence_on_the_command_line_does_not_reach_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")
    assert "\x1b" not in run("status", "\x1b[31m").err
