"""`bunko ls` lists documents: a path per line for other programs, and lines that fit a terminal for people."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

from bunko.interfaces.cli.terminal.tables import cell_width
from tests.cli.processes import ESCAPE, at_a_terminal, subprocess_environment
from tests.conftest import Run
from tests.readers.zip_files import workbook

_STYLE = re.compile(r"\x1b\[[\d;]*m")


def lines_at_a_terminal(*arguments: str | Path, tmp_path: Path, columns: int) -> list[str]:
    environment = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS=str(columns))
    return _STYLE.sub("", at_a_terminal("ls", *arguments, env=environment)).splitlines()


def test_a_pipe_gets_one_path_per_line_which_other_commands_take(run: Run, notes: Path) -> None:
    listed = run("ls", "--sort", "name", "--docs-dir", notes)
    assert (listed.out.splitlines(), listed.err) == (["guide/setup.md", "notes.txt", "temple.md"], "")
    for path in listed.out.splitlines():
        assert run("get", path, "--docs-dir", notes).out == (notes / path).read_text(encoding="utf-8")
    assert run("ls", "--docs-dir", notes).out.splitlines()[-1] == "guide/setup.md", "the oldest is the last"


def test_a_week_that_was_named_ends_on_its_sunday(run: Run, docs: Path) -> None:
    monday = date.today() - timedelta(days=date.today().weekday())
    for days in (-8, -7, -1, 0):
        (docs / f"{days}.md").write_text(f"---\ndate: {monday + timedelta(days)}\n---\n日記\n", encoding="utf-8")
    listed = run("ls", "--since", "先週", "--until", "last week", "--sort", "name", "--docs-dir", docs)
    assert listed.out.splitlines() == ["-1.md", "-7.md"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("*.md",), ["guide/setup.md", "temple.md"]),
        (("guide/**",), ["guide/setup.md"]),
        (("guide/",), ["guide/setup.md"]),
        (("guide",), ["guide/setup.md"]),
        (("temple.md",), ["temple.md"]),
        (("--tag", "#旅行"), ["temple.md"]),
        (("--tag", "環境", "--tag", "python"), ["guide/setup.md"]),
        (("--until", "2024-01"), ["guide/setup.md"]),
        (("--since", "1w", "*.md"), ["temple.md"]),
        (("-n", "documents", "--limit", "1", "--sort", "name"), ["guide/setup.md"]),
    ],
)
def test_documents_are_chosen_by_path_tag_and_date(
    arguments: tuple[str, ...], expected: list[str], run: Run, notes: Path
) -> None:
    assert run("ls", "--sort", "name", *arguments, "--docs-dir", notes).out.splitlines() == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["notes.txt", "temple.md", "guide/setup.md"]),
        (("--tag", "#旅行"), ["temple.md"]),
        (("--tag", "環境", "--tag", "python"), ["guide/setup.md"]),
        (("--since", "1w", "--tag", "旅行"), ["temple.md"]),
        (("--until", "2024-01"), ["guide/setup.md"]),
        (("--tag", "旅行", "--until", "2024-01"), []),
    ],
)
def test_the_newest_documents_are_chosen_by_tag_and_date_too(
    arguments: tuple[str, ...], expected: list[str], run: Run, notes: Path
) -> None:
    recent = run("recent", *arguments, "--json", "--docs-dir", notes)
    assert [document["file_path"] for document in json.loads(recent.out)] == expected
    assert recent.err == ("" if expected else "No documents match.\n")


def test_no_row_of_a_table_is_shown_as_a_title(run: Run, docs: Path) -> None:
    (docs / "table.md").write_text("| 品名 | 単価 |\n|---|---|\n| りんご | 120 |\n", encoding="utf-8")
    (docs / "memo.txt").write_text("----\n買い物のメモ。\n| a |\n牛乳。\n", encoding="utf-8")
    (docs / "prices.xlsx").write_bytes(workbook('<row r="1"><c><v>1</v></c><c><v>2</v></c></row>'))
    rows = [line.split("\t") for line in run("recent", "--docs-dir", docs).out.splitlines()]
    assert {row[-1]: row[1] for row in rows} == {
        "table.md": "table.md", "memo.txt": "買い物のメモ。 牛乳。", "prices.xlsx": "Data",
    }  # fmt: skip


def test_a_folder_of_this_machine_is_listed(run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notes / "guide")
    for folder in (".", str(notes / "guide"), "../guide/"):
        assert run("ls", folder, "--docs-dir", notes).out == "guide/setup.md\n"
    assert len(run("ls", "..", "--docs-dir", notes).out.splitlines()) == 3
    assert run("ls", "../*/*.md", "--docs-dir", notes).out == "guide/setup.md\n"
    (notes / ".old [2]").mkdir()
    (notes / ".old [2]" / "a.md").write_text("# a\n\ntext\n", encoding="utf-8")
    assert run("ls", notes / ".old [2]", "--docs-dir", notes).out == ".old [2]/a.md\n"
    assert run("ls", ".old*/", "--docs-dir", notes).out == ".old [2]/a.md\n"
    ran = run("ls", notes.parent, "--docs-dir", notes)
    assert ran.code == 6
    assert "in the folder of no tool" in ran.err


def test_nothing_to_list_says_so(run: Run, notes: Path) -> None:
    ran = run("ls", "*.pdf", "--docs-dir", notes)
    assert (ran.code, ran.out, ran.err) == (0, "", "No documents match.\n")
    assert run("ls", "*.pdf", "--json", "--docs-dir", notes).json() == {"documents": [], "total": 0}


def test_a_list_that_is_cut_says_how_many_more_there_are(run: Run, notes: Path) -> None:
    ran = run("ls", "--limit", "1", "--docs-dir", notes)
    assert len(ran.out.splitlines()) == 1
    assert ran.err == "1 of 3 documents. Show more with --limit.\n"


def test_names_with_line_breaks_stay_one_record(run: Run, docs: Path) -> None:
    (docs / "two\nlines.md").write_text("# a\n\ntext\n", encoding="utf-8")
    (docs / "one line.md").write_text("# b\n\ntext\n", encoding="utf-8")
    assert run("ls", "--sort", "name", "--docs-dir", docs).out == "one line.md\ntwo\\nlines.md\n"
    assert run("ls", "--sort", "name", "-0", "--docs-dir", docs).out == "one line.md\0two\nlines.md\0"


def test_long_and_json_have_what_is_known(run: Run, notes: Path) -> None:
    line = run("ls", "guide", "--long", "--docs-dir", notes).out
    assert line == "2024-01-15\tguide/setup.md\t環境構築の手引き\t環境, python\tdocuments\n"
    listed = run("ls", "guide", "--json", "--docs-dir", notes).json()
    assert listed == {
        "documents": [
            {
                "tool": "documents",
                "file_path": "guide/setup.md",
                "absolute_path": str(notes / "guide" / "setup.md"),
                "title": "環境構築の手引き",
                "date": "2024-01-15",
                "tags": ["環境", "python"],
                "media_type": "text/markdown",
                "bytes": (notes / "guide" / "setup.md").stat().st_size,
                "uri": "bunko://documents/guide/setup.md",
            }
        ],
        "total": 1,
    }


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_gets_lines_that_fit_and_whole_paths(columns: int, notes: Path, tmp_path: Path) -> None:
    long_path = "guide/" + "とても長い名前の" * 3 + "手引き.md"
    (notes / long_path).write_text(
        "---\ndate: 2023-05-06T10:00:00\ntags: [一, 二, 三]\n---\n# " + "長い題名" * 30 + "\n\n本文。\n",
        encoding="utf-8",
    )
    lines = lines_at_a_terminal("--docs-dir", notes, tmp_path=tmp_path, columns=columns)
    assert all(cell_width(line) <= columns for line in lines), lines
    (long_line,) = [line for line in lines if long_path in line]
    assert long_line.startswith("2023-05-06  ")
    (setup,) = [line for line in lines if "guide/setup.md" in line]
    assert re.match(r"2024-01-15  guide/setup\.md +環境構築の手引き  #環境 #python$", setup)
    (title,) = [line for line in lines if "長い題名" in line]
    starts = {cell_width(line[: line.index(text)]) for line, text in ((setup, "環境構築の"), (title, "長い題名"))}
    assert len(starts) == 1, "the titles stand in one column, whatever the length of the paths"
    assert lines[-1] == "4 documents"


@pytest.mark.slow
def test_a_path_longer_than_a_terminal_is_not_cut(notes: Path, tmp_path: Path) -> None:
    path = "guide/" + "x" * 100 + ".md"
    (notes / path).write_text("# title\n\ntext\n", encoding="utf-8")
    lines = lines_at_a_terminal("--docs-dir", notes, tmp_path=tmp_path, columns=80)
    assert any(path in line for line in lines), "the terminal wraps it, so that it can be copied"


@pytest.mark.slow
def test_a_terminal_gets_fifty_and_how_many_more_there_are(docs: Path, tmp_path: Path) -> None:
    for number in range(60):
        (docs / f"{number}.md").write_text(f"# {number}\n\ntext\n", encoding="utf-8")
    lines = lines_at_a_terminal("--docs-dir", docs, tmp_path=tmp_path, columns=80)
    assert len(lines) == 51
    assert lines[-1] == "50 of 60 documents. Show more with --limit."


@pytest.mark.slow
def test_several_tools_are_named_at_a_terminal(run: Run, notes: Path, tmp_path: Path) -> None:
    run(
        "tool",
        "add",
        "-n",
        "travel",
        "-d",
        "travel",
        "-s",
        notes,
        "--include",
        "temple.md",
        "--library",
        tmp_path / "l",
    )
    run("tool", "add", "-n", "guides", "-d", "guides", "-s", notes / "guide", "--library", tmp_path / "l")
    environment = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="80")
    environment.pop("NO_COLOR", None)
    written = at_a_terminal("ls", "--library", tmp_path / "l", env=environment)
    assert f"{ESCAPE}[" in written
    assert re.search(r"temple\.md.*travel", written)
    assert re.search(r"setup\.md.*guides", written)
