"""`bunko get` prints a document or a part of it: exactly the text in a pipe, with a title in a pager at a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import ESCAPE, at_a_terminal, subprocess_environment
from tests.conftest import Run

GUIDE = "guide/setup.md"


def test_a_pipe_gets_exactly_the_text(run: Run, notes: Path) -> None:
    assert run("get", GUIDE, "--docs-dir", notes).out == (notes / GUIDE).read_text(encoding="utf-8")
    (notes / "raw.txt").write_text("a \x1b[31mred\x1b[0m line\n\n\tdone", encoding="utf-8")
    assert run("get", "raw.txt", "--docs-dir", notes).out == "a \x1b[31mred\x1b[0m line\n\n\tdone\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (f"{GUIDE}:L10",),
        (f"{GUIDE}:10",),
        (GUIDE, "--lines", "10"),
        (f"{GUIDE}#インストール手順", "--lines", "10-10"),
        ("setup:L10",),
        ("bunko://documents/guide/setup.md", "--lines", "L10"),
    ],
)
def test_lines_are_named_as_a_search_prints_them_and_as_editors_do(
    arguments: tuple[str, ...], run: Run, notes: Path
) -> None:
    ran = run("get", *arguments, "--docs-dir", notes)
    assert (ran.out, ran.err) == ("環境構築の方法を説明します。まず Python を入れます。\n", "")


def test_what_a_search_cites_can_be_read(run: Run, notes: Path) -> None:
    citation = run("search", "京都の寺", "-k", "1", "--docs-dir", notes).out.split()[1]
    assert "秋の京都で寺の庭を巡り" in run("get", citation, "--docs-dir", notes).out


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ((GUIDE, "--section", "インストール手順"), "## インストール手順", "環境構築の方法"),
        ((f"{GUIDE}#インストール手順",), "## インストール手順", "環境構築の方法"),
        (("[[setup#インストール手順]]",), "## インストール手順", "環境構築の方法"),
        ((f"{GUIDE}:8", "--around", "2"), "# 環境構築", "環境構築の方法"),
    ],
)
def test_a_section_or_the_lines_around_are_printed(
    arguments: tuple[str, ...], first: str, last: str, run: Run, notes: Path
) -> None:
    lines = run("get", *arguments, "--docs-dir", notes).out.splitlines()
    assert lines[0] == first
    assert lines[-1].startswith(last)


def test_a_path_on_this_machine_is_found_wherever_the_command_runs(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absolute = run("get", f"{notes / GUIDE}:L8", "--docs-dir", notes)
    monkeypatch.chdir(notes / "guide")
    assert absolute.out == run("get", "./setup.md:8", "--docs-dir", notes).out == "## インストール手順\n"
    (notes / "guide" / "temple.md").write_text("# 山の寺\n\n山の上。\n", encoding="utf-8")
    # As a search cites it, before the file of that name in this folder.
    assert "京都" in run("get", "temple.md", "--docs-dir", notes).out
    assert "山の上" in run("get", "./temple.md", "--docs-dir", notes).out
    for folder in ("guide", "old"):
        (notes / folder).mkdir(exist_ok=True)
        (notes / folder / "plan.md").write_text(f"# {folder}\n\ntext\n", encoding="utf-8")
    # Two documents end so, and one of them is in this folder.
    assert run("get", "plan.md:1", "--docs-dir", notes).out == "# guide\n"


def test_the_outline_lists_headings_with_their_lines(run: Run, notes: Path) -> None:
    assert run("get", GUIDE, "--outline", "--docs-dir", notes).out == "6\t# 環境構築\n8\t## インストール手順\n"
    outline = run("get", GUIDE, "--outline", "--json", "--docs-dir", notes).json()
    assert outline["headings"] == [
        {"heading": "環境構築", "level": 1, "line": 6},
        {"heading": "インストール手順", "level": 2, "line": 8},
    ]
    assert "has no headings" in run("get", "notes.txt", "--outline", "--docs-dir", notes).err


def test_json_has_the_text_and_where_it_is(run: Run, notes: Path) -> None:
    reading = run("get", f"{GUIDE}:L8-L10", "--json", "--docs-dir", notes).json()
    assert {name: reading[name] for name in ("tool", "file_path", "citation", "title", "date", "tags")} == {
        "tool": "documents",
        "file_path": GUIDE,
        "citation": f"{GUIDE}:L8-L10",
        "title": "環境構築の手引き",
        "date": "2024-01-15",
        "tags": ["環境", "python"],
    }
    assert str(reading["text"]).startswith("## インストール手順\n")
    assert reading["absolute_path"] == str(notes / GUIDE)
    assert (reading["line_start"], reading["line_end"], reading["total_lines"]) == (8, 10, 10)


def test_an_unknown_document_suggests_one_and_a_file_that_is_not_indexed_is_named(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    ran = run("get", "guide/setpu.md", "--docs-dir", notes)
    assert (ran.code, ran.out) == (6, "")
    assert "Did you mean 'guide/setup.md'?" in ran.err
    (tmp_path / "other.md").write_text("# other\n", encoding="utf-8")
    ran = run("get", tmp_path / "other.md", "--docs-dir", notes)
    assert ran.code == 6
    assert f"{tmp_path / 'other.md'} is not indexed" in ran.err
    assert run("get", GUIDE, "--lines", "3", "--section", "x", "--docs-dir", notes).code == 2


def test_a_path_in_two_tools_says_which_one_is_shown(run: Run, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text(f"# {name}\n\ntext of {name}\n", encoding="utf-8")
        run("tool", "add", "-n", name, "-d", name, "-s", tmp_path / name)
        run("import", "-n", name)
    ran = run("get", "README.md")
    assert ran.out.startswith("# first")
    assert "second" in ran.err
    assert "-n" in ran.err
    ran = run("get", "README.md", "-n", "second")
    assert (ran.out, ran.err) == ("# second\n\ntext of second\n", "")


@pytest.mark.slow
def test_a_terminal_gets_a_title_and_the_pager_that_is_set(notes: Path, tmp_path: Path) -> None:
    environment = subprocess_environment(tmp_path, TERM="xterm-256color", PAGER="sed s/^/|/")
    written = at_a_terminal("get", f"{GUIDE}:L8-L10", "--docs-dir", notes, env=environment)
    lines = [line.strip() for line in written.splitlines()]
    assert lines[0].startswith("|")
    assert "環境構築の手引き" in lines[0]
    assert f"{GUIDE}:L8-L10 of 10 lines" in lines[0]
    assert "2024-01-15 #環境 #python" in lines[0]
    assert "|## インストール手順" in lines


@pytest.mark.slow
def test_a_document_cannot_steer_the_terminal_through_the_pager(notes: Path, tmp_path: Path) -> None:
    (notes / "evil.md").write_text("# \x1b]0;owned\x07\n\n\x1b[2J\x9b31m text\n", encoding="utf-8")
    environment = subprocess_environment(tmp_path, TERM="xterm-256color", PAGER="cat", NO_COLOR="1")
    written = at_a_terminal("get", "evil.md", "--docs-dir", notes, env=environment)
    assert "text" in written
    assert not {ESCAPE, "\x9b", "\x07"} & set(written)


def test_a_file_that_two_tools_have_is_one_document(
    run: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNKO_LIBRARY", str(tmp_path / "library"))
    run("add", notes)
    run("add", notes / "guide")
    text = (notes / GUIDE).read_text(encoding="utf-8")
    ran = run("get", "setup")
    assert (ran.out, ran.err) == (text, "")
    (notes / "old").mkdir()
    (notes / "old" / "setup.md").write_text("# Old\n", encoding="utf-8")
    ran = run("get", "setup")
    assert ran.code == 6
    assert "names several documents" in ran.err
