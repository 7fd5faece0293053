"""A folder that several tools read is announced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.tool_options import ToolOptions
from tests.conftest import Run

TEXT = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n"
BOTH = "Its documents are in both tools; a search over all tools shows each once."


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with a folder in it."""
    for name in ("notes/a.md", "notes/work/b.md", "notes/data/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    return tmp_path / "notes"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as opened:
        yield opened


def test_a_folder_inside_that_of_another_tool_is_announced_with_what_follows(library: Library, notes: Path) -> None:
    library.add(notes, name="all notes")
    [notice] = library.maintenance.overlap_notices(library.add(notes / "work", name="work"))
    command = f"bunko tool update -n 'all notes' --exclude /work/ --library {library.paths.folder}"
    assert notice == (
        f"{notes / 'work'} is inside {notes}, the folder of all notes. {BOTH} To read it as work only: {command}"
    )


def test_a_folder_around_that_of_another_tool_is_announced(library: Library, notes: Path) -> None:
    library.add(notes / "work", name="work")
    [notice] = library.maintenance.overlap_notices(library.add(notes, name="all"))
    assert notice.startswith(
        f"{notes} contains {notes / 'work'}, the folder of work. The documents of work are in both"
    )
    assert (
        f"To leave it out of all: bunko tool update -n all --exclude /work/ --library {library.paths.folder}" in notice
    )


def test_the_same_folder_is_announced(library: Library, notes: Path) -> None:
    library.add(notes, name="all")
    [notice] = library.maintenance.overlap_notices(library.add(notes, name="again"))
    assert notice == f"all reads {notes} too. {BOTH}"


def test_two_documents_of_one_folder_are_not_announced_and_a_shared_one_is(library: Library, notes: Path) -> None:
    (notes / "e.md").write_text(TEXT, encoding="utf-8")
    for name, include in (("a", ["/a.md"]), ("e", ["/e.md"]), ("both", ["/a.md", "/e.md"])):
        options = ToolOptions(include=tuple(include), exclude=("/*/",))
        library.tools.add(name, "x", notes, options=options)
    a, both, e = library.tools()
    assert library.maintenance.overlap_notices(e) == [f"both reads {notes} too. {BOTH}"]
    found = [notice.partition(";")[0] for notice in library.maintenance.overlap_notices(both)]
    assert found == [f"{name} reads {notes} too. 1 of its documents is in both tools" for name in ("a", "e")]
    assert library.maintenance.overlap_notices(library.add(notes / "work", name="work")) == []
    assert len(library.maintenance.overlap_notices(a)) == 1


def test_the_command_keeps_what_the_other_tool_leaves_out_already(library: Library, notes: Path) -> None:
    library.add(notes, name="all")
    library.tools.update("all", exclude=["drafts/"])
    [notice] = library.maintenance.overlap_notices(library.add(notes / "work", name="work"))
    assert "--exclude drafts/ --exclude /work/" in notice


def test_a_folder_that_the_other_tool_does_not_read_is_not_announced(library: Library, notes: Path) -> None:
    library.add(notes, name="all")
    library.tools.update("all", exclude=["/work/"])
    assert library.maintenance.overlap_notices(library.add(notes / "work", name="work")) == []
    assert (
        library.maintenance.overlap_notices(library.add(notes / "data", name="data")) == []
    )  # by scanner.exclude_dirs
    (notes / ".gitignore").write_text("private/\n", encoding="utf-8")
    (notes / "private").mkdir()
    (notes / "private" / "d.md").write_text(TEXT, encoding="utf-8")
    library.import_("all")
    assert library.maintenance.overlap_notices(library.add(notes / "private", name="private")) == []


def test_folders_side_by_side_and_tools_that_nobody_searches_are_not_announced(library: Library, notes: Path) -> None:
    library.add(notes, name="all")
    library.tools.set_active("all", active=False)
    (notes.parent / "notes2").mkdir()
    for source in (notes / "work", notes.parent / "notes2"):
        assert library.maintenance.overlap_notices(library.add(source, name=source.name)) == []


def test_memos_inside_a_folder_of_documents_are_announced(library: Library, notes: Path) -> None:
    (notes / "log.md").write_text("## 2024-01-15 会議\n\n予算を決めた。\n", encoding="utf-8")
    (notes / "ChangeLog").write_text("* [2024-01-15] 会議\n予算を決めた。\n", encoding="utf-8")
    library.add(notes, name="all")
    [notice] = library.maintenance.overlap_notices(library.add(notes / "log.md", name="log", kind="memos"))
    assert notice.startswith(
        f"{notes / 'log.md'} is inside {notes}, the folder of all. Its documents are in both tools."
    )
    assert "--exclude /log.md " in notice
    assert library.maintenance.overlap_notices(library.add(notes / "ChangeLog", name="changes", kind="memos")) == []


def test_one_verb_announces_it_too(run: Run, notes: Path, tmp_path: Path) -> None:
    flags = ("--library", tmp_path / "library")
    run("add", notes, *flags)
    added = run("add", notes / "work", *flags)
    assert f"{notes / 'work'} is inside {notes}, the folder of notes. {BOTH}" in added.err


def test_adding_and_moving_a_tool_on_the_command_line_announces_it(run: Run, notes: Path, tmp_path: Path) -> None:
    flags = ("--library", tmp_path / "library")
    run("tool", "add", "-n", "all", "-d", "All notes", "-s", notes, *flags)
    added = run("tool", "add", "-n", "work", "-d", "Notes of work", "-s", notes / "work", *flags)
    assert added.out.startswith("Added work: 1 file to import.")
    assert f"{notes / 'work'} is inside {notes}" in added.err
    moved = run("tool", "update", "-n", "work", "-s", notes, *flags, "--json")
    assert [notice.split(". ")[0] for notice in json.loads(moved.out)["notices"]] == [f"all reads {notes} too"]
