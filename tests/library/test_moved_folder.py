"""A folder that was moved, and a tool that is disabled: wherever somebody meets them, the next command is named."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.errors import SourceError, UnknownName
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.conftest import Run
from tests.mcp.mcp_client import call, error_of, structure_of

TEXT = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with the tool 日記, whose folder was moved."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(TEXT, encoding="utf-8")
    paths = locate_library(library=tmp_path / "library", environ={})
    with open_library(paths, environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}) as opened:
        opened.add(tmp_path / "docs", name="日記", description="Diary")
        opened.import_("日記")
        (tmp_path / "docs").rename(tmp_path / "moved")
        yield opened


@pytest.fixture
def command(tmp_path: Path) -> str:
    """The command that tells a tool where its folder is now."""
    return f"bunko tool update -n '日記' -s PATH --library {tmp_path / 'library'}"


def test_a_search_over_a_moved_folder_answers_and_names_the_command(library: Library, command: str) -> None:
    answer = library.search("京都")
    assert answer.hits
    [notice] = answer.notices
    assert notice.endswith(f"results come from the existing index. If it has moved: {command}")


def test_an_assistant_that_searches_or_updates_a_moved_folder_can_tell_the_user_the_command(
    library: Library, command: str
) -> None:
    registry = ToolRegistry(lambda: library)
    [notice] = structure_of(call(registry, "nikki", {"query": "京都"}))["notices"]
    assert command in notice
    assert command in error_of(call(registry, "reindex"))


def test_an_import_of_a_moved_folder_names_the_command(library: Library, command: str, tmp_path: Path) -> None:
    for mode in ("update", "replace"):
        with pytest.raises(SourceError) as caught:
            library.import_tools(["日記"], mode)
        assert command in caught.value.hint
        assert "bunko tool delete -n '日記'" in caught.value.hint
    library.add(tmp_path / "moved", name="new")
    (tmp_path / "moved").rename(tmp_path / "docs2")
    with pytest.raises(SourceError, match="does not exist or cannot be read") as caught:
        library.import_("new")
    assert "bunko tool update -n new -s PATH" in caught.value.hint


def test_the_command_makes_the_tool_follow_its_folder_without_importing_anything_again(
    library: Library, command: str, run: Run, tmp_path: Path
) -> None:
    arguments = shlex.split(command.replace("PATH", str(tmp_path / "moved")))[1:]
    assert run(*arguments).code == 0
    report = library.import_("日記")
    assert (report.unchanged, report.added, report.embedded) == (1, 0, 0)
    assert library.search("京都").notices == []


def test_status_and_doctor_name_the_command(library: Library, command: str, run: Run, tmp_path: Path) -> None:
    flags = ("--library", tmp_path / "library")
    for ran in (run("status", *flags), run("status", "-n", "nikki", *flags), run("doctor", *flags)):
        assert ran.code == 0
        assert f"f it has moved: {command}\n" in ran.out


def test_a_healthy_tool_has_no_such_command(library: Library, run: Run, tmp_path: Path) -> None:
    (tmp_path / "moved").rename(tmp_path / "docs")
    flags = ("--library", tmp_path / "library")
    assert "tool update" not in run("status", *flags).out + run("doctor", *flags).out


def test_the_index_of_a_moved_documents_folder_names_the_flag_instead(tmp_path: Path, run: Run) -> None:
    docs, data = tmp_path / "docs", tmp_path / "data"
    docs.mkdir()
    (docs / "a.md").write_text(TEXT, encoding="utf-8")
    assert run("reindex", "--docs-dir", docs, "--data-dir", data).code == 0
    (docs / "a.md").unlink()
    ran = run("search", "京都", "--docs-dir", docs, "--data-dir", data)
    assert f"If it has moved: bunko reindex --docs-dir PATH --data-dir {data}" in ran.err


def test_a_search_of_a_disabled_tool_answers_and_names_the_command_that_enables_it(
    library: Library, tmp_path: Path
) -> None:
    (tmp_path / "moved").rename(tmp_path / "docs")
    library.tools.set_active("日記", active=False)
    command = f"bunko tool enable -n '日記' --library {tmp_path / 'library'}"
    answer = library.search("京都", tool="nikki")
    assert answer.hits
    assert answer.notices == [
        f"日記 is disabled: assistants and searches over all tools leave it out. To enable it: {command}"
    ]
    answer = library.search("京都")
    assert answer.hits == []
    assert answer.notices == [f"No tool is enabled. To enable 日記: {command}"]


def test_memos_that_are_disabled_are_enabled_rather_than_imported_again(library: Library, tmp_path: Path) -> None:
    (tmp_path / "memo.txt").write_text("* [2024-01-15] 会議\n予算を決めた。\n", encoding="utf-8")
    library.add(tmp_path / "memo.txt", name="memos", kind="memos")
    library.tools.set_active("memos", active=False)
    with pytest.raises(UnknownName) as caught:
        library.tags(kinds=("memos",))
    assert caught.value.hint == f"To enable memos: bunko tool enable -n memos --library {tmp_path / 'library'}"


def test_a_second_first_import_names_both_commands_in_full(library: Library, run: Run, tmp_path: Path) -> None:
    ran = run("import", "-n", "nikki", "--library", tmp_path / "library")
    assert ran.code != 0
    assert "日記 is already imported" in ran.err
    for mode in ("update", "replace"):
        assert f"bunko import -n '日記' --mode {mode} --library {tmp_path / 'library'}" in ran.err
