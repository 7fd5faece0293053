"""What people see of a result at a terminal: where it is, what leads there, and the part that matches."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.interfaces.result_fields import link
from bunko.types import Chunk, Hit
from tests.cli.pictures import Screen, Terminal, check_picture
from tests.conftest import Run
from tests.readers.zip_files import fixture

SAMPLES = Path(__file__).parents[2] / "examples" / "library"
MEMOS = """2024-01-15  田村

\t* 予算の見直し [会議][予算]:
\t来年度の予算を見直した。サーバーの費用が一割増える見込み。次の会議で見積もりを出す。

2024-02-03  Smith

\t* Budget review [budget]:
\tThe budget for the new servers was approved by the board. We buy three of them in spring.
"""


def links(screen: Screen) -> list[str]:
    return re.findall(r"\x1b\]8;[^;]*;([^\x1b]+)\x1b\\", screen.written)


def without_scores(screen: Screen) -> Screen:
    # Their last digits differ from processor to processor.
    return replace(screen, rows=[re.sub(r"\b0\.\d{3}\b", "0.000", row) for row in screen.rows])


def blocks(screen: Screen) -> list[list[str]]:
    """Return the rows of each result, without the line at the end."""
    return [block.split("\n") for block in "\n".join(screen.rows).split("\n\n")[:-1]]


@pytest.fixture
def memos(tmp_path: Path, run: Run) -> Path:
    """The folder of a library with the memos."""
    (tmp_path / "memo.txt").write_text(MEMOS, encoding="utf-8")
    assert run("build", "-i", tmp_path / "memo.txt", "--library", tmp_path / "library").code == 0
    return tmp_path / "library"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("name", "query"), [("ja", "社員旅行はいつどこへ行きますか"), ("en", "How do I roll back a release?")]
)
def test_results_look_like_their_picture(terminal: Terminal, tmp_path: Path, name: str, query: str, width: int) -> None:
    screen = terminal("search", query, "--docs-dir", SAMPLES, "--data-dir", tmp_path / "index", "-k", "3", width=width)
    check_picture(f"search-{name}-{width}", without_scores(screen))


@pytest.mark.parametrize("width", [80, 120])
def test_memos_look_like_their_picture(terminal: Terminal, memos: Path, width: int) -> None:
    screen = terminal("search", "予算 budget", "--library", memos, width=width)
    check_picture(f"search-memos-{width}", without_scores(screen))


def test_a_result_opens_its_file(terminal: Terminal, docs: Path) -> None:
    (docs / "京都 1.md").write_text("# 京都\n\n秋の京都で寺の庭を巡った日の記録です。\n", encoding="utf-8")
    assert links(terminal("search", "京都", "--docs-dir", docs, width=80)) == [(docs / "京都 1.md").as_uri()]


def test_a_web_page_opens_its_address_and_an_address_cannot_steer_the_terminal() -> None:
    def found(uri: str) -> Hit:
        return Hit("web", uri, "", "", (), "", Chunk(0, 0, 2, 1, 1, "京都"), 0.5)

    assert link(found("https://example.com/a_(b)?q=1&r=%20#c"), {}) == "https://example.com/a_(b)?q=1&r=%20#c"
    assert link(found("https://example.com/京\x1b\\\x07 x"), {}) == "https://example.com/%E4%BA%AC%1B%5C%07%20x"
    assert link(found("javascript:alert(1)"), {}) == ""


def test_a_memo_shows_its_title_date_and_tags_and_opens_its_file(terminal: Terminal, run: Run, memos: Path) -> None:
    screen = terminal("search", "予算", "--library", memos, "-k", "1", width=80)
    assert screen.rows[0] == " 1  予算の見直し   2024-01-15   #会議 #予算   田村"
    assert screen.rows[1].startswith("    memo.txt#2024-01-15-予算の見直し:L4   0.")
    assert set(links(screen)) == {(memos.parent / "memo.txt").as_uri()}
    assert "\n予算の見直し  2024-01-15  #会議 #予算  田村\n" in run("search", "予算", "--library", memos, "-k", "1").out


def test_words_that_match_are_highlighted_as_they_stand_in_the_text(terminal: Terminal, docs: Path) -> None:
    (docs / "a.md").write_text("# 旅\n\n鴨川沿いを走った。The servers were restarted.\n", encoding="utf-8")
    assert "\x1b[1;31m走った\x1b[0m。" in terminal("search", "走る", "--docs-dir", docs, width=80).written
    assert "\x1b[1;31mrestarted\x1b[0m." in terminal("search", "restart", "--docs-dir", docs, width=80).written


@pytest.mark.parametrize(
    "text", ["# 京都\n\n## 二日目\n\n朝の六時に起きた。\n", "京都\n====\n\n二日目\n------\n\n朝の六時に起きた。\n"]
)
def test_a_heading_is_shown_once(terminal: Terminal, run: Run, docs: Path, text: str) -> None:
    (docs / "a.md").write_text(text, encoding="utf-8")
    shown = terminal("search", "六時", "--docs-dir", docs, width=80).rows
    assert shown[1:3] == ["    京都 › 二日目", "    朝の六時に起きた。"]
    assert run("search", "六時", "--docs-dir", docs).out.splitlines()[1:] == ["京都 > 二日目", "朝の六時に起きた。"]


@pytest.mark.parametrize(
    ("file", "query", "location"),
    [("slides.pptx", "price list", "slides.pptx:slide3"), ("prices.xlsx", "佐藤", "prices.xlsx:仕入れ!B8:C10")],
)
def test_a_result_names_its_slide_or_cell(
    terminal: Terminal, run: Run, docs: Path, file: str, query: str, location: str
) -> None:
    (docs / file).write_bytes(fixture(file))
    screen = terminal("search", query, "--docs-dir", docs, "-k", "1", width=80)
    assert screen.rows[0].startswith(f" 1  {location}   0.")
    assert not any("Slide 3" in row or "A1:B" in row for row in screen.rows)
    assert run("search", query, "--docs-dir", docs, "-k", "1").out.startswith(f"[1] {location}  score=")


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("lines", [1, 2, 3, 8])
def test_a_result_takes_no_more_rows_than_asked_for(terminal: Terminal, docs: Path, lines: int, width: int) -> None:
    filler = "寺の庭を巡った日の記録です。" * 60
    (docs / "long.md").write_text(f"# 京都への旅\n\n{filler}鴨川で鯨を見た。{filler}\n", encoding="utf-8")
    (docs / "short.md").write_text("# 鯨\n\n鯨を見た。\n", encoding="utf-8")
    screen = terminal("search", "鯨", "--docs-dir", docs, "--lines", str(lines), "--explain", width=width)
    shown = blocks(screen)
    assert len(shown) == 2
    assert max(map(len, shown)) <= lines
    cut = next(block for block in shown if "long.md" in block[0])
    assert cut[-1].endswith("…")


def test_the_part_that_matches_is_shown_and_marked_as_a_part(terminal: Terminal, docs: Path) -> None:
    filler = "寺の庭を巡った日の記録です。" * 40
    (docs / "long.md").write_text(f"# 京都への旅\n\n{filler}鴨川で鯨を見た。{filler}\n", encoding="utf-8")
    [rows] = blocks(terminal("search", "鯨", "--docs-dir", docs, width=80))
    assert len(rows) == 6
    assert any("鯨を見た" in row for row in rows)
    assert rows[2].startswith("  … ")
    assert rows[-1].endswith("…")


def test_a_text_of_an_extent_that_was_asked_for_is_shown_whole(terminal: Terminal, docs: Path) -> None:
    (docs / "a.md").write_text("# 京都\n\n" + "\n".join(f"{number}. 寺の庭" for number in range(40)), encoding="utf-8")
    asked = ("search", "寺", "--docs-dir", docs, "--extract", "full")
    assert any("39. 寺の庭" in row for row in terminal(*asked, width=80).rows)
    assert len(blocks(terminal(*asked, "--lines", "4", width=80))[0]) == 4


def test_results_that_were_folded_are_counted_in_a_row_of_their_document(
    terminal: Terminal, run: Run, docs: Path
) -> None:
    sections = "".join(f"## {number}日目\n\n{'京都の寺の庭を巡った日の記録です。' * 5}\n\n" for number in range(1, 5))
    (docs / "a.md").write_text(f"# 旅\n\n{sections}", encoding="utf-8")
    for name in ("b", "c", "d"):
        (docs / f"{name}.md").write_text(f"# {name}\n\n京都の寺。\n", encoding="utf-8")
    asked = ("search", "京都の寺の庭", "--docs-dir", docs)
    for lines in (3, 6):
        shown = blocks(terminal(*asked, "--lines", str(lines), width=80))
        assert sum("    2 more in this document" in block for block in shown) == 1
        assert max(map(len, shown)) <= lines
    assert "\n(2 more in this document)\n" in run(*asked).out


def test_a_result_that_is_only_a_heading_is_complete(terminal: Terminal, docs: Path) -> None:
    (docs / "a.md").write_text("# 京都の寺\n", encoding="utf-8")
    [rows] = blocks(terminal("search", "京都", "--docs-dir", docs, width=80))
    assert rows[1:] == ["    京都の寺"]


def test_a_memo_without_a_title_shows_its_date_and_tags(terminal: Terminal, run: Run, tmp_path: Path) -> None:
    memo = '{"date": "2024-03-01", "tags": ["寺"], "text": "京都の寺の庭を巡った。"}\n'
    (tmp_path / "log.jsonl").write_text(memo, encoding="utf-8")
    run("build", "-i", tmp_path / "log.jsonl", "--library", tmp_path / "library")
    screen = terminal("search", "京都", "--library", tmp_path / "library", width=80)
    assert re.fullmatch(r" 1  log\.jsonl#2024-03-01-\S+:L1   0\.\d{3}   2024-03-01   #寺", screen.rows[0])
    assert screen.rows[1] == "    京都の寺の庭を巡った。"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_explanation_is_a_small_table_in_a_picture(
    terminal: Terminal, notes: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_DISPLAY_LANGUAGE", language)
    screen = terminal("search", "環境構築の方法", "--docs-dir", notes, "-k", "1", "--explain", width=80)
    check_picture(f"explain-{language}-80", screen)
