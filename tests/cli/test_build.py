"""What `bunko build`, `bunko tags` and `bunko recent` print and remember, and the kinds that `bunko tool add` knows."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.text.dates import resolve_date
from tests.conftest import Run

LONG_AGO = 1_700_000_000
MEMOS = """\
* Meeting Notes 2024-01-15
  Tags: meeting, work

  We agreed on the budget.

* 京都の旅 [旅行] 令和6年2月3日
  寺の庭を巡った。
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    write(folder / "memo.txt", MEMOS)
    write(folder / "log.jsonl", '{"title": "Release", "date": "2024-03-01", "tags": ["work"], "text": "Version 2."}\n')
    write(folder / "note.md", "---\ntitle: 設計\ndate: 2024-04-01\n---\n# 方針\n\n検索の設計。\n")
    return folder


def write(path: Path, text: str, *, after: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (LONG_AGO + after, LONG_AGO + after))


def test_a_build_says_what_was_added_modified_deleted_and_left_alone(run: Run, notes: Path, tmp_path: Path) -> None:
    build = ("build", "--input", notes, "--output", tmp_path / "lib", "--with-embeddings", "--incremental")
    ran = run(*build)
    assert ran.code == 0
    assert ran.out.splitlines() == ["Added: 4", "Modified: 0", "Deleted: 0", "Unchanged: 0", "Embeddings needed: 4"]
    write(notes / "memo.txt", MEMOS.replace("budget", "schedule"), after=10)
    (notes / "note.md").unlink()
    ran = run(*build)
    assert ran.out.splitlines() == ["Added: 0", "Modified: 1", "Deleted: 1", "Unchanged: 2", "Embeddings needed: 1"]
    assert run(*build, "--json").json()["unchanged"] == 3


def test_what_was_built_is_found_and_follows_its_files(run: Run, notes: Path, tmp_path: Path) -> None:
    library = ("--library", tmp_path / "lib")
    run("build", "-i", notes / "memo.txt", *library)
    found = run("search", "寺の庭", "--tag", "旅行", "--since", "令和6年1月", *library, "--json").json()["results"]
    assert isinstance(found, list)
    assert [hit["citation"] for hit in found] == ["memo.txt#2024-02-03-京都の旅:L7"]
    write(notes / "memo.txt", f"{MEMOS}\n* 奈良 2024-05-05\n  鹿がいた。\n", after=10)
    assert "鹿がいた" in run("search", "鹿", *library).out
    tools = run("tool", "ls", "--all", "--format", "json", *library).out
    assert '"kind": "memos"' in tools


def test_memos_without_vectors_are_found_by_words_until_they_have_some(run: Run, notes: Path, tmp_path: Path) -> None:
    library = ("--library", tmp_path / "lib")
    ran = run("build", "-i", notes, *library, "--skip-embeddings")
    assert "Embeddings needed: 0" in ran.out
    found = run("search", "京都", *library, "--mode", "hybrid", "--json")
    assert (found.code, found.json()["mode"]) == (0, "bm25")
    assert "without vectors" in found.err
    ran = run("search", "京都", *library, "--mode", "semantic")
    assert ran.code == 4
    assert f"bunko build --input {notes}" in ran.err
    assert run("build", "-i", notes, *library, "--skip-embeddings").out.splitlines()[3] == "Unchanged: 4"
    assert "Embeddings needed: 4" in run("build", "-i", notes, *library, "--with-embeddings").out
    assert run("search", "京都", *library, "--mode", "semantic").code == 0
    assert run("build", "-i", notes, *library).out.splitlines()[3] == "Unchanged: 4"


def test_a_search_without_a_library_names_the_one_that_was_built_last(run: Run, notes: Path, tmp_path: Path) -> None:
    built = tmp_path / "my memos"
    assert run("build", "--input", notes, "--output", built).code == 0
    lost = run("search", "予算 budget")
    assert lost.code == 10
    command = f"bunko search '予算 budget' --library '{built}'"
    assert f"There is no library at {tmp_path / 'XDG_DATA_HOME' / 'bunko'}" in lost.err
    assert command.replace("'予算 budget'", "QUERY") in lost.err
    assert run("init").code == 0
    empty = run("search", "予算 budget")
    assert empty.code == 1
    assert f"{tmp_path / 'XDG_DATA_HOME' / 'bunko'} was searched, and it is empty" in empty.err
    assert command in empty.err
    asked = run("ask", "予算 budget")
    assert (asked.code, command in asked.err) == (1, True)
    assert "Meeting Notes" in run(*shlex.split(command)[1:]).out
    assert "was searched" not in run("search", "京都", "--library", built).err
    shutil.rmtree(built)
    gone = run("search", "budget")
    assert "was searched, and it is empty" in gone.err
    assert str(built) not in gone.err


def test_a_library_may_be_named_as_an_index(run: Run, notes: Path, tmp_path: Path) -> None:
    assert run("build", "--input", notes, "--index-dir", tmp_path / "lib").code == 0
    for option in (("--index-dir", tmp_path / "lib"), (f"--index-dir={tmp_path / 'lib'}",)):
        found = run("search", "京都の旅", *option)
        assert (found.code, "京都の旅" in found.out) == (0, True)
    assert "--index-dir" not in run("search", "--help").out


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"OPENROUTER_API_KEY": "sk-x"}, "To use openrouter, set EMBEDDING_PROVIDER=openrouter"),
        ({"GEMINI_API_KEY": "sk-x"}, "To use gemini, set EMBEDDING_PROVIDER=gemini"),
        (
            {"OPENROUTER_API_KEY": "sk-x", "GEMINI_API_KEY": "sk-x"},
            "To use gemini or openrouter, set EMBEDDING_PROVIDER=gemini or EMBEDDING_PROVIDER=openrouter",
        ),
        ({}, ""),
        ({"OPENROUTER_API_KEY": "sk-x", "EMBEDDING_PROVIDER": "static"}, ""),
    ],
)
def test_with_embeddings_says_which_model_was_used_if_there_is_a_key_for_another(
    environ: dict[str, str], sentence: str, run: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    built = run("build", "--input", notes, "--output", tmp_path / "lib", "--with-embeddings")
    assert built.code == 0
    if not sentence:
        assert built.err == ""
        return
    [line] = built.err.splitlines()
    assert line.startswith("The vectors of memos come from the bundled model (static). ")
    assert f"{sentence} and run: bunko reembed -n memos --library {tmp_path / 'lib'}" in line
    assert "sk-x" not in line
    assert run("build", "--input", notes, "--output", tmp_path / "lib").err == ""


def test_a_forced_build_makes_everything_anew(run: Run, notes: Path, tmp_path: Path) -> None:
    (notes / "bad.jsonl").write_text("{oops\n", encoding="utf-8")
    build = ("build", "-i", notes, "-o", tmp_path / "lib")
    run(*build)
    ran = run(*build, "--force")
    assert ran.out.splitlines() == ["Added: 0", "Modified: 4", "Deleted: 0", "Unchanged: 0", "Embeddings needed: 0"]
    assert "bad.jsonl#L1: line 1 is not JSON" in ran.err


@pytest.mark.parametrize(
    "options",
    [("--with-embeddings", "--skip-embeddings"), ("--incremental", "--force"), ("--output", "a", "--library", "b")],
)
def test_options_that_contradict_each_other_are_refused(run: Run, notes: Path, options: tuple[str, ...]) -> None:
    ran = run("build", "-i", notes, *options)
    assert ran.code == 2
    assert "cannot be used together" in ran.err


def test_a_place_that_is_not_there_and_a_tool_that_is_a_folder_are_refused(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    library = ("--library", tmp_path / "lib")
    ran = run("build", "-i", tmp_path / "nowhere", *library)
    assert (ran.code, "no file or folder" in ran.err) == (3, True)
    run("tool", "add", "-n", "memos", "-d", "documents", "-s", notes, *library)
    ran = run("build", "-i", notes, *library)
    assert (ran.code, "--output" in ran.err) == (2, True)


def test_tags_are_counted_and_the_newest_memos_listed(run: Run, notes: Path, tmp_path: Path) -> None:
    library = ("--library", tmp_path / "lib")
    run("build", "-i", notes, *library)
    assert run("tags", *library).out.splitlines() == ["work\t2", "meeting\t1", "旅行\t1"]
    assert '"tag": "work"' in run("tags", "-n", "memos", *library, "--json").out
    assert run("recent", "--limit", "3", *library).out.splitlines() == [
        "2024-04-01\t設計\t\tnote.md",
        "2024-03-01\tRelease\twork\tlog.jsonl#2024-03-01-Release:L1",
        "2024-02-03\t京都の旅\t旅行\tmemo.txt#2024-02-03-京都の旅:L6-L7",
    ]
    assert '"beginning": "Version 2."' in run("recent", "-n", "memos", *library, "--json").out
    assert run("tags", "-n", "nothing", *library).code == 6
    assert run("recent", "--library", tmp_path / "none").code == 10


def test_what_a_memo_says_does_not_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "n.jsonl", '{"title": "a\\u001b[2Jb", "tags": ["x\\u001b]0;y"], "text": "z"}\n')
    run("build", "-i", tmp_path / "n.jsonl", "-o", tmp_path / "lib")
    shown = run("recent", "--library", tmp_path / "lib").out + run("tags", "--library", tmp_path / "lib").out
    assert "\x1b" not in shown
    assert "[2Jb" in shown


def test_a_tool_may_be_of_memos_or_json_lines_or_of_web_pages_which_have_no_place(
    run: Run, notes: Path, tmp_path: Path
) -> None:
    library = ("--library", tmp_path / "lib")
    ran = run("tool", "add", "-n", "diary", "-d", "Days", "-s", notes / "memo.txt", "--kind", "memos", *library)
    assert (ran.code, "2 entries to import" in ran.out) == (0, True)
    ran = run("tool", "add", "-n", "log", "-d", "Log", "-s", notes, "--kind", "jsonl", *library, "--json")
    assert (ran.json()["kind"], ran.json()["files"]) == ("jsonl", 1)
    assert run("import", "--all", *library).out.startswith("3 added")
    ran = run("tool", "add", "-n", "site", "-d", "Pages", "-s", notes, "--kind", "web", *library)
    assert (ran.code, "has no folder or file" in ran.err) == (2, True)
    ran = run("tool", "add", "-n", "site", "-d", "Pages", "--kind", "web", *library)
    assert (ran.code, "bunko web add URL -n site" in ran.out) == (0, True)
    assert run("tool", "add", "-n", "none", "-d", "Nothing", *library).code == 2
    ran = run("tool", "add", "-n", "one", "-d", "One", "-s", notes / "memo.txt", *library)
    assert (ran.code, "memo.txt is a file, not a folder" in ran.err) == (3, True)
    assert run("status", "-n", "diary", *library).code == 0
    (notes / "memo.txt").write_bytes(b"")
    assert "empty" in run("status", *library).out


def test_dates_are_told_in_the_time_zone_of_the_settings(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        '{"title": "A", "date": "2024-01-15T23:30:00+00:00", "text": "庭の話。"}',
        '{"title": "B", "date": "2024-01-15", "text": "庭の話。"}',
    ]
    write(tmp_path / "log.jsonl", "\n".join(rows))
    library = ("--library", tmp_path / "lib", "--json")
    run("build", "-i", tmp_path / "log.jsonl", "--skip-embeddings", *library)

    def found(*options: str) -> list[str]:
        results = run("search", "庭", *options, *library).json()["results"]
        assert isinstance(results, list)
        return sorted(hit["title"] for hit in results)

    monkeypatch.setenv("BUNKO_SEARCH_TIMEZONE", "Asia/Tokyo")
    assert found("--since", "2024-01-16") == ["A"]
    assert found("--until", "2024-01-15") == ["B"]
    assert found("--since", "2024-01-15T23:00:00Z") == ["A"]
    monkeypatch.setenv("BUNKO_SEARCH_TIMEZONE", "America/New_York")
    assert found("--since", "2024-01-16") == []
    assert found("--since", "2024-01-15", "--until", "2024-01-15T18:30") == ["A", "B"]
    monkeypatch.setenv("BUNKO_SEARCH_TIMEZONE", "Mars/Olympus")
    ran = run("search", "庭", *library)
    assert "search.timezone" in ran.out + ran.err
    assert ran.code != 0


def test_today_is_the_day_it_is_in_the_time_zone_of_the_settings(tmp_path: Path) -> None:
    days = set()
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):  # where it is never the same day
        environ = {"BUNKO_SEARCH_TIMEZONE": zone}
        with open_library(locate_library(library=tmp_path / "lib", environ=environ), environ=environ) as library:
            days.add(resolve_date("today", library.local_time()))
            assert resolve_date("今日", library.local_time()) == library.local_time().date().isoformat()
            assert resolve_date("1d", library.local_time()) == resolve_date("yesterday", library.local_time())
    assert len(days) == 2


def test_tags_of_any_width_and_case_are_one(run: Run, tmp_path: Path) -> None:
    rows = [
        '{"text": "庭", "tags": ["Work", "ＷＯＲＫ"]}',
        '{"text": "庭", "tags": "#work, ﾒﾓ"}',
        '{"text": "庭", "tags": ["メモ"]}',
    ]
    write(tmp_path / "log.jsonl", "\n".join(rows))
    library = ("--library", tmp_path / "lib")
    run("build", "-i", tmp_path / "log.jsonl", "--skip-embeddings", *library)
    assert run("tags", *library).out.splitlines() == ["work\t2", "メモ\t2"]
    printed = run("search", "庭", "--tag", "ｗｏｒｋ", "--mode", "bm25", *library).out
    assert ("[2]" in printed, "[3]" in printed) == (True, False)


def test_a_bad_line_is_reported_with_its_number(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", '{"text": "庭の話。"}\n{"text": \n{"text": "海の話。"}\n')
    ran = run("build", "-i", tmp_path / "log.jsonl", "--skip-embeddings", "--library", tmp_path / "lib")
    assert ran.out.splitlines()[0] == "Added: 2"
    assert "line 2 is not JSON" in ran.err


def test_bad_lines_are_reported_in_their_order(run: Run, tmp_path: Path) -> None:
    lines = ['{"text": "話"}' if at not in (8, 21, 34) else "{" for at in range(1, 40)]
    write(tmp_path / "log.jsonl", "\n".join(lines))
    ran = run("build", "--input", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "lib"))
    assert [line.split(": ")[0].strip() for line in ran.err.splitlines()[1:]] == [
        "log.jsonl#L8", "log.jsonl#L21", "log.jsonl#L34",
    ]  # fmt: skip


def test_where_there_is_nothing_it_is_said_and_no_empty_table_is_drawn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    library = str(tmp_path / "lib")
    ran = run("build", "--input", str(tmp_path / "notes"), "--output", library)
    assert ran.code == 0
    assert "No memos found in" in ran.err
    assert ".jsonl" in ran.err
    for command, said in (("tags", "No tags yet."), ("recent", "bunko build --input")):
        ran = run(command, "--library", library)
        assert (ran.code, ran.out) == (0, "")
        assert said in ran.err
        assert json.loads(run(command, "--library", library, "--json").out) == []
