"""What commands print in Japanese: pictures, and no English among it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.pictures import Screen, Terminal, check_picture
from tests.cli.test_table_pictures import hide_sizes
from tests.conftest import Run

SAMPLES = Path(__file__).parents[2] / "examples" / "library"
WIDTHS = (80, 120)
# Commands, options, settings, addresses and paths are the same in every language.
_NAMES = re.compile(r"\b(?:bunko|pip|claude) [^。、]*|--[a-z-]+|\S+[./_]\S+|MCP|JSON|Ctrl-C")
_ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")


@pytest.fixture
def japanese(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "ja")


@pytest.mark.usefixtures("fixed_age", "shelf", "japanese")
def test_tables_in_japanese_look_like_their_pictures(terminal: Terminal) -> None:
    for name, command in {
        "status": ("status",),
        "tool-ls": ("tool", "ls", "--all"),
        "tool-check": ("tool", "check"),
        "doctor": ("doctor",),
    }.items():
        for width in WIDTHS:
            check_picture(f"{name}-japanese-{width}", hide_sizes(terminal(*command, width=width)))


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("width", WIDTHS)
def test_results_in_japanese_look_like_their_picture(terminal: Terminal, tmp_path: Path, width: int) -> None:
    shown = [
        terminal("search", "京都の旅", "--docs-dir", SAMPLES, "--data-dir", tmp_path / "index", "-k", "2", width=width),
        terminal("search", "zzzz", "--docs-dir", SAMPLES, "--data-dir", tmp_path / "index", "-k", "2", width=width),
    ]
    rows = [re.sub(r"\b0\.\d{3}\b", "0.000", row) for screen in shown for row in screen.rows]
    check_picture(f"search-japanese-{width}", Screen(0, "", rows))


@pytest.mark.usefixtures("japanese")
@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_and_errors_in_japanese_look_like_their_picture(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "日記"
    folder.mkdir()
    (folder / "京都.md").write_text("# 京都の旅\n\n寺を巡った。\n", encoding="utf-8")
    (folder / "空.md").touch()
    (folder / "画像.txt").write_bytes(b"a\0\0b")
    (folder / "parser.py").write_text("print(1)\n", encoding="utf-8")
    rows = []
    for command in (
        ("add", "日記"),
        ("import", "-n", "日記", "--mode", "update"),
        ("import", "-n", "日記"),
        ("search", "京都", "-n", "レシピ"),
        ("get", "大阪.md"),
        ("web", "add", "http://192.168.0.1/"),
        ("serch", "京都"),
    ):
        screen = terminal(*command, width=width)
        rows += [f"$ bunko {' '.join(command)}", *screen.rows, ""]
    check_picture(f"messages-japanese-{width}", Screen(0, "", rows))


@pytest.mark.slow
@pytest.mark.usefixtures("japanese")
def test_no_english_is_left_in_what_common_commands_say(
    terminal: Terminal, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "日記"
    folder.mkdir()
    (folder / "京都.md").write_text("---\ntags: [旅行]\n---\n# 京都の旅\n\n寺を巡った。\n", encoding="utf-8")
    (folder / "空.md").touch()
    (tmp_path / "ChangeLog").write_text("2024-05-01\n\n* 買い物: 牛乳\n", encoding="utf-8")
    commands = """
        status|add 日記|add ChangeLog -n メモ|status|status -n 日記|search 京都|search 大阪|search 京都 -寺
        search 京都 -n 大阪|search 京都 --since いつか|search 京都 --mode 大阪|get 京都|get 京都 --section 大阪
        get 京都 --lines 90|get 大阪|open 大阪|ls|ls 大阪|recent|tags|doctor|embedders|embedders test 大阪|find
        tool ls --all|tool disable -n メモ|tool enable -n メモ|tool update -n メモ -d 買い物の記録|tool describe -n メモ
        tool rename メモ 買い物|tool check|tool add -n ページ -d 後で読む --kind web|tool add -n 日記 -d 日記 -s 日記
        tool update -n 日記|import -n 日記|import --all|import -n 日記 --mode replace|import|reindex|reembed --all
        build -i ChangeLog|build -i 大阪|web status|web add http://127.0.0.1/|web crawl http://10.0.0.1/
        web status -n 大阪|web delete http://example.com|connect zed|init|init|config show search|config show 大阪
        export -n 日記|import-pack 大阪.bunko|status --library 大阪|tool delete -n 買い物 -y|serve --toolsets 大阪
        watch -n 大阪
    """
    left = []
    for command in filter(None, (part.strip() for line in commands.split("\n") for part in line.split("|"))):
        screen = terminal(*command.split(), width=200)
        rows = [_NAMES.sub("", row) for row in screen.rows if not row.startswith((" ", "使い方"))]
        left += [f"{command}: {row}" for row in rows if _ENGLISH.search(row)]
    assert not left, "\n".join(left)


@pytest.mark.usefixtures("japanese")
def test_no_english_is_left_in_what_a_pipe_gets(run: Run, notes: Path) -> None:
    left = []
    for command in (
        "search 京都の寺 --explain", "search 京都の寺 --explain --mode bm25", "status", "status -n documents",
        "embedders", "models", "doctor", "config show display",
    ):  # fmt: skip
        lines = run(*command.split(), "--docs-dir", notes).out.splitlines()
        ours = [line for line in lines if not line.startswith(("Python 3", "説明: ", "構築時の設定"))]
        left += [f"{command}: {line}" for line in ours if _ENGLISH.search(_NAMES.sub("", line))]
    assert not left, "\n".join(left)
    explained = run("search", "京都の寺", "--docs-dir", notes, "--explain").out
    assert "理由: 検索方法 単語; 一致した語 " in explained


@pytest.mark.usefixtures("japanese")
def test_what_programs_read_is_the_same_in_every_language(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--docs-dir", notes)
    assert run("reindex", *flags).code == 0
    commands = (
        ("status", "--json"), ("search", "京都", "--json"), ("tool", "ls", "--format", "json"), ("doctor", "--json"),
        ("tool", "ls", "--all"), ("recent",), ("ls", "-l"), ("tags",), ("get", "temple.md"), ("search", "京都"),
        ("search", "京都", "-n", "大阪", "--json"), ("embedders", "--json"), ("search", "京都", "--format", "csv"),
    )  # fmt: skip

    def print_all() -> list[str]:
        return [re.sub(r'"(checked_at|last_import)": "[^"]*"', "", run(*command, *flags).out) for command in commands]

    japanese = print_all()
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", "en")
    assert japanese == print_all()
    assert run("search", "京都", "-n", "大阪", *flags).err.startswith("Error: There is no tool called")
