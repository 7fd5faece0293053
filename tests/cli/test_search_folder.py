"""Inside an indexed folder a search is about that folder, as with git and ripgrep, and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Ran, Run


def paths(ran: Ran) -> set[str]:
    return {Path(line).name for line in ran.out.splitlines()}


def search(run: Run, *arguments: str | Path) -> Ran:
    return run("search", "京都", "--format", "paths", *arguments)


@pytest.fixture
def library(run: Run, tmp_path: Path) -> Path:
    """A folder `notes` with a subfolder and another folder `other`, both tools of the user's library."""
    texts = {"notes/a.md": "寺", "notes/trip/b.md": "宿", "notes/trip [1]/c.md": "庭", "other/d.md": "駅"}
    for name, word in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# 京都\n\n京都の{word}を訪ねた日の記録です。\n", encoding="utf-8")
    for name in ("notes", "other"):
        run("tool", "add", "-n", name, "-d", f"About {name}", "-s", tmp_path / name)
    assert run("import", "--all").code == 0
    return tmp_path


def test_in_the_folder_of_a_tool_that_tool_is_searched(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(library))
    monkeypatch.chdir(library)
    everywhere = search(run)
    assert paths(everywhere) == {"a.md", "b.md", "c.md", "d.md"}
    assert everywhere.err == ""
    monkeypatch.chdir(library / "notes")
    ran = search(run)
    assert paths(ran) == {"a.md", "b.md", "c.md"}
    assert ran.err == "Searching this folder: ~/notes. Search everything with --all.\n"
    assert search(run, "--all") == everywhere
    assert paths(search(run, "-n", "other")) == {"d.md"}
    assert paths(search(run, "--library", library / "XDG_DATA_HOME" / "bunko")) == paths(everywhere)


def test_a_tool_of_single_files_does_not_stand_for_their_folder(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library / "todo.md").write_text("# 京都\n\n京都の切符を買う。\n", encoding="utf-8")
    assert run("add", library / "todo.md").code == 0
    monkeypatch.chdir(library)
    ran = search(run)
    assert paths(ran) == {"a.md", "b.md", "c.md", "d.md", "todo.md"}
    assert ran.err == ""


@pytest.mark.parametrize(("folder", "name"), [("trip", "b.md"), ("trip [1]", "c.md")])
def test_in_a_subfolder_only_its_documents_are_searched(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, folder: str, name: str
) -> None:
    monkeypatch.chdir(library / "notes" / folder)
    ran = search(run)
    assert paths(ran) == {name}
    assert f"notes/{folder}. Search everything" in ran.err
    assert paths(search(run, "--path", "*.md")) == {"a.md", "b.md", "c.md"}


def test_in_a_subfolder_without_documents_the_whole_tool_is_searched(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (library / "notes" / ".hidden").mkdir()
    monkeypatch.chdir(library / "notes" / ".hidden")
    ran = search(run)
    assert paths(ran) == {"a.md", "b.md", "c.md"}
    assert "/notes. Search everything" in ran.err


def test_a_folder_with_its_own_index_is_searched_with_it(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = library / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / "e.md").write_text("# 京都\n\n京都の橋を訪ねた日の記録です。\n", encoding="utf-8")
    (docs / "sub" / "f.md").write_text("# 京都\n\n京都の川を訪ねた日の記録です。\n", encoding="utf-8")
    run("reindex", "--docs-dir", docs)
    monkeypatch.chdir(docs)
    assert paths(search(run)) == {"e.md", "f.md"}
    monkeypatch.chdir(docs / "sub")
    ran = search(run)
    assert paths(ran) == {"f.md"}
    assert "docs/sub. Search everything with --all." in ran.err
    assert paths(search(run, "--all")) == {"a.md", "b.md", "c.md", "d.md"}
    monkeypatch.setenv("BUNKO_LIBRARY", str(library / "XDG_DATA_HOME" / "bunko"))
    assert paths(search(run)) == {"a.md", "b.md", "c.md", "d.md"}


def test_an_index_that_is_a_link_or_somebody_elses_is_not_used(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = library / "docs"
    docs.mkdir()
    (docs / "e.md").write_text("# 京都\n\n京都の橋を訪ねた日の記録です。\n", encoding="utf-8")
    run("reindex", "--docs-dir", docs)
    monkeypatch.chdir(docs)
    assert paths(search(run)) == {"e.md"}
    owner = os.geteuid()
    with monkeypatch.context() as other_user:
        other_user.setattr(os, "geteuid", lambda: owner + 1)
        assert paths(search(run)) == {"a.md", "b.md", "c.md", "d.md"}
    (docs / ".rag-index").rename(library / "elsewhere")
    (docs / ".rag-index").symlink_to(library / "elsewhere")
    assert paths(search(run)) == {"a.md", "b.md", "c.md", "d.md"}


def test_all_and_a_name_cannot_be_used_together(run: Run, library: Path) -> None:
    ran = search(run, "--all", "-n", "notes")
    assert (ran.code, "--all cannot be used with --name." in ran.err) == (2, True)


def test_in_the_folder_of_a_disabled_tool_it_is_said_that_it_is_not_searched(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("tool", "disable", "-n", "notes")
    monkeypatch.chdir(library / "notes" / "trip")
    ran = search(run)
    assert paths(ran) == {"d.md"}
    assert "notes is disabled" in ran.err
    assert "bunko tool enable -n notes" in ran.err
    assert search(run, "--all").err == ""
