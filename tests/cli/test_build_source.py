"""Where `bunko build` takes memos from: another folder than before, or standard input."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.cli.processes import subprocess_environment, type_at_a_terminal
from tests.conftest import Ran, Run

FIRST = "* 散歩 2025-01-15\n  川沿いを歩いた。\n"
SECOND = "* 会議 2025-02-03\n  予算の話をした。\n"
RECORD = '{"id": "7", "metadata": {"title": "庭", "date": "2025-03-02", "tags": ["京都"]}, "text": "苔を見た。"}\n'


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name, text in (("first", FIRST), ("second notes", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memo.txt").write_text(text, encoding="utf-8")
    return tmp_path / "first", tmp_path / "second notes"


def titles(tmp_path: Path) -> list[str]:
    with open_library(locate_library(library=tmp_path / "lib", environ={}), environ={}) as library:
        return sorted(document.title for _, document in library.recent_documents(limit=100))


def pipe(monkeypatch: pytest.MonkeyPatch, data: str | bytes) -> None:
    data = data.encode() if isinstance(data, str) else data
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_a_second_folder_is_refused_and_the_way_to_keep_both_is_named(
    run: Run, tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    library = ("--library", tmp_path / "lib")
    run("build", "-i", first, *library)
    ran = run("build", "-i", second, *library)
    assert ran.code == 2
    assert f"The tool 'memos' indexes {first}; {second} would replace its only memo" in ran.err
    assert "--yes" in ran.err
    assert titles(tmp_path) == ["散歩"]
    commands = [line.strip() for line in ran.err.splitlines() if line.strip().startswith("bunko ")]
    assert "bunko tool add --kind memos" in commands[0]
    for command in commands:
        assert run(*shlex.split(command)[1:]).code == 0
    assert titles(tmp_path) == ["会議", "散歩"]


def test_several_inputs_are_all_read_and_updated_together(run: Run, tmp_path: Path, folders: tuple[Path, Path]) -> None:
    first, second = folders
    library = ("--library", tmp_path / "lib")
    built = run("build", "--input", first, "--input", second, *library)
    assert (built.code, built.out.splitlines()[0]) == (0, "Added: 2")
    assert titles(tmp_path) == ["会議", "散歩"]
    assert run("tool", "ls", *library).out.splitlines() == ["memos", "second_notes"]
    (second / "memo.txt").write_text(SECOND + "\n* 庭 2025-03-01\n  苔を見た。\n", encoding="utf-8")
    again = run("build", "-i", second, "-i", first, "-i", f"{first}/", *library, "--json")
    assert (again.code, json.loads(again.out)["added"], json.loads(again.out)["deleted"]) == (0, 1, 0)
    assert titles(tmp_path) == ["会議", "庭", "散歩"]
    assert run("tool", "ls", *library).out.splitlines() == ["memos", "second_notes"]
    found = run("search", "苔", *library, "--mode", "bm25")
    assert (found.code, "苔を見た" in found.out) == (0, True)
    forced = run("build", "-i", first, "-i", second, *library, "--force", "--skip-embeddings")
    assert (forced.code, titles(tmp_path)) == (0, ["会議", "庭", "散歩"])


def test_nothing_is_read_if_one_of_several_inputs_is_missing_or_named_twice(
    run: Run, tmp_path: Path, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = folders
    ran = run("build", "-i", first, "-i", tmp_path / "gone", "--library", tmp_path / "lib")
    assert (ran.code, f"There is no file or folder {tmp_path / 'gone'}" in ran.err) == (3, True)
    assert run("tool", "ls", "--library", tmp_path / "lib").out == ""
    pipe(monkeypatch, FIRST)
    built = run("build", "-i", second, "-i", "-", "--library", tmp_path / "lib")
    assert (built.code, titles(tmp_path)) == (0, ["会議", "散歩"])


def test_another_folder_than_before_is_not_replaced_by_several(
    run: Run, tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    third = tmp_path / "third"
    third.mkdir()
    (third / "memo.txt").write_text("* 買い物 2025-04-01\n  牛乳。\n", encoding="utf-8")
    library = ("--library", tmp_path / "lib")
    run("build", "-i", first, *library)
    refused = run("build", "-i", second, "-i", third, *library)
    assert (refused.code, "would replace its only memo" in refused.err) == (2, True)
    assert titles(tmp_path) == ["散歩"]
    beside = run("build", "-i", first, "-i", second, "-i", third, *library)
    assert (beside.code, titles(tmp_path)) == (0, ["会議", "散歩", "買い物"])


def test_a_second_folder_replaces_the_first_if_that_is_confirmed(
    run: Run, tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    first, second = folders
    library = ("--library", tmp_path / "lib")
    run("build", "-i", first, *library)
    assert run("build", "-i", second, *library, "--yes").out.splitlines()[:3] == [
        "Added: 1",
        "Modified: 0",
        "Deleted: 1",
    ]
    assert titles(tmp_path) == ["会議"]
    assert "Dated memos in second notes" in run("tool", "ls", "--all", *library).out
    assert run("build", "-i", second, *library).out.splitlines()[3] == "Unchanged: 1"


def test_a_tool_that_holds_nothing_takes_another_folder_without_a_question(
    run: Run, tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    (tmp_path / "empty").mkdir()
    library = ("--library", tmp_path / "lib")
    run("build", "-i", tmp_path / "empty", *library)
    assert run("build", "-i", folders[1], *library).code == 0
    assert titles(tmp_path) == ["会議"]


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "expected"), [("y", ["会議"]), ("n", ["散歩"])])
def test_a_terminal_is_asked_before_a_folder_is_replaced(
    run: Run, tmp_path: Path, folders: tuple[Path, Path], answer: str, expected: list[str]
) -> None:
    first, second = folders
    library = ("--library", tmp_path / "lib")
    run("build", "-i", first, *library)
    written = type_at_a_terminal(f"{answer}\n", "build", "-i", second, *library, env=subprocess_environment(tmp_path))
    assert "[y/N]" in written
    assert ("tool add --kind memos" in written) == (answer == "n")
    assert titles(tmp_path) == expected


def build_from_input(run: Run, tmp_path: Path, *options: str) -> Ran:
    return run("build", "--input", "-", "--library", tmp_path / "lib", *options)


@pytest.mark.parametrize(
    ("data", "title", "citation"),
    [
        (RECORD, "庭", "stdin.jsonl#7:L1"),
        (f"# 書き出し\n\n{RECORD}", "庭", "stdin.jsonl#7:L3"),
        (FIRST, "散歩", "stdin.txt#2025-01-15-散歩:L1-L2"),
        ("---\ntitle: 設計\ndate: 2025-04-01\n---\n\n検索の設計。\n", "設計", "stdin.md"),
        ("# 日記\n\n## 2025-04-01 朝\n\n晴れ。\n\n## 2025-03-31 夜\n\n雨。\n", "朝", "stdin.md#2025-04-01-朝:L3-L5"),
        (f"\ufeff{FIRST}".encode("utf-16-le"), "散歩", "stdin.txt#2025-01-15-散歩:L1-L2"),
        (RECORD.encode("cp932"), "庭", "stdin.jsonl#7:L1"),
    ],
)
def test_standard_input_may_have_any_form_of_memos(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str | bytes, title: str, citation: str
) -> None:
    pipe(monkeypatch, data)
    assert build_from_input(run, tmp_path).code == 0
    latest = run("recent", "--library", tmp_path / "lib").out.splitlines()[0].split("\t")
    assert (latest[1], latest[3]) == (title, citation)


def test_standard_input_replaces_what_came_from_it_before(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, FIRST)
    build_from_input(run, tmp_path)
    pipe(monkeypatch, FIRST + SECOND)
    assert build_from_input(run, tmp_path).out.splitlines()[:4] == [
        "Added: 1", "Modified: 0", "Deleted: 0", "Unchanged: 1",
    ]  # fmt: skip
    pipe(monkeypatch, RECORD)
    build_from_input(run, tmp_path)
    assert titles(tmp_path) == ["庭"]
    assert "苔を見た" in run("search", "苔", "--library", tmp_path / "lib").out
    assert run("import", "-n", "memos", "--mode", "replace", "--library", tmp_path / "lib").code == 0
    assert titles(tmp_path) == ["庭"]


@pytest.mark.parametrize("data", ["", "\n  \n"])
def test_empty_input_is_refused_and_removes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    pipe(monkeypatch, FIRST)
    build_from_input(run, tmp_path)
    pipe(monkeypatch, data)
    ran = build_from_input(run, tmp_path)
    assert (ran.code, "Standard input is empty" in ran.err) == (3, True)
    assert titles(tmp_path) == ["散歩"]
    assert sorted(path.name for path in (tmp_path / "lib" / "stdin").iterdir()) == ["stdin.txt"]


def test_standard_input_does_not_replace_a_folder_unless_that_is_confirmed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: tuple[Path, Path]
) -> None:
    run("build", "-i", folders[0], "--library", tmp_path / "lib")
    pipe(monkeypatch, RECORD)
    ran = build_from_input(run, tmp_path)
    assert (ran.code, "--yes" in ran.err) == (2, True)
    assert titles(tmp_path) == ["散歩"]
    pipe(monkeypatch, RECORD)
    assert build_from_input(run, tmp_path, "--yes").code == 0
    assert titles(tmp_path) == ["庭"]


@pytest.mark.slow
def test_a_pipe_into_a_process_of_its_own_is_read_to_its_end(tmp_path: Path) -> None:
    lines = "".join(f'{{"title": "題{at}", "text": "庭の話{at}。"}}\n' for at in range(500))
    done = subprocess.run(
        [sys.executable, "-m", "bunko", "build", "-i", "-", "--skip-embeddings", "--database", str(tmp_path / "l.db")],
        input=lines, capture_output=True, text=True, encoding="utf-8", check=True, env=subprocess_environment(tmp_path),
    )  # fmt: skip
    assert done.stdout.startswith("Added: 500\n")
