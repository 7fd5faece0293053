"""A process that searches again and again: a folder in which nothing happens is not listed again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bunko.errors import SourceError
from bunko.ingest import watched
from bunko.library.library import Library
from bunko.protocols import Look
from bunko.sources.events import FolderEvents
from bunko.sources.folder import Folder
from bunko.sources.walk import ignore_folder
from tests.conftest import Opener
from tests.library.test_library import TEXT, put
from tests.library.test_looks import found

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked for events")


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Collect the folders that are listed."""
    roots: list[Path] = []
    look = Folder.look

    def note(self: Folder, on_folder: Callable[[str], None] = ignore_folder) -> Look:
        roots.append(self.root)
        return look(self, on_folder)

    monkeypatch.setattr(Folder, "look", note)
    return roots


def watching(docs: Path, open_docs: Opener) -> Library:
    """Open a library that has searched often enough to watch its folder."""
    put(docs, "a.md", "京都の寺")
    put(docs, "sub/b.md", "奈良の鹿")
    library = open_docs()
    for _ in range(3):
        assert found(library, "京都") == ["a.md"]
    return library


def test_a_folder_in_which_nothing_happens_is_not_listed_again(
    docs: Path, open_docs: Opener, listed: list[Path]
) -> None:
    library = watching(docs, open_docs)
    listed.clear()
    for _ in range(3):
        assert found(library, "京都") == ["a.md"]
    assert listed == []


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edited file": lambda docs: put(docs, "a.md", "京都の庭", age=50),
    "an edited file in a folder": lambda docs: put(docs, "sub/b.md", "京都の庭", age=50),
    "a new file": lambda docs: put(docs, "new.md", "庭"),
    "a new file in a new folder": lambda docs: put(docs, "x/y/new.md", "庭"),
    "a folder that is moved here": lambda docs: (docs.parent / "away").rename(docs / "x"),
    "a renamed file": lambda docs: (docs / "sub" / "b.md").rename(docs / "庭.md"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_found_by_the_next_search(docs: Path, open_docs: Opener, change: str) -> None:
    library = watching(docs, open_docs)
    assert found(library, "庭") == []
    put(docs.parent, "away/new.md", "庭")
    CHANGES[change](docs)
    assert len(found(library, "庭")) == 1
    put(docs, "x/y/later.md", "庭")
    assert len(found(library, "庭")) == 2


def test_a_folder_above_that_is_renamed_is_noticed(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    library = watching(docs, open_docs)
    docs.rename(tmp_path / "elsewhere")
    (docs / ".rag-index").mkdir(parents=True)
    assert "missing or empty" not in library.search("京都").notices
    put(docs, "c.md", "京都の川")
    put(docs, "d.md", "京都の山")
    assert {"c.md", "d.md"} <= set(found(library, "京都"))


def test_other_rules_for_files_are_noticed(docs: Path, open_docs: Opener) -> None:
    library = watching(docs, open_docs)
    (docs / ".gitignore").write_text("sub/\n")
    assert found(library, "奈良") == []
    (docs / ".gitignore").unlink()
    assert found(library, "奈良") == ["sub/b.md"]


def test_a_folder_is_listed_again_after_a_while_because_some_changes_have_no_event(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = watching(docs, open_docs)
    os.link(docs / "a.md", tmp_path / "link.md")
    assert found(library, "京都") == ["a.md"]
    monkeypatch.setattr(watched, "RECHECK_SECONDS", 0.0)
    (tmp_path / "link.md").write_text(TEXT.format("京都の庭"), encoding="utf-8")
    assert found(library, "庭") == ["a.md"]


def test_a_folder_without_events_is_listed_before_each_search(
    docs: Path, open_docs: Opener, listed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: FolderEvents, folder: str, owner: int) -> None:
        raise SourceError("The system limit for watched folders is reached")

    monkeypatch.setattr(FolderEvents, "watch", refuse)
    library = watching(docs, open_docs)
    listed.clear()
    put(docs, "c.md", "京都の川")
    assert found(library, "京都") == ["a.md", "c.md"]
    assert found(library, "京都") == ["a.md", "c.md"]
    assert len(listed) >= 2


def test_a_network_drive_is_listed_before_each_search(
    docs: Path, open_docs: Opener, listed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "remote_file_system", lambda folder: "nfs4")
    library = watching(docs, open_docs)
    listed.clear()
    assert found(library, "京都") == ["a.md"]
    assert listed == [docs]


def test_the_doctor_says_why_a_folder_is_listed_before_each_search(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = watching(docs, open_docs)
    assert not any("listed" in finding.message for finding in library.maintenance.diagnose())
    monkeypatch.setattr(watched, "remote_file_system", lambda folder: "nfs4")
    [finding] = [one for one in library.maintenance.diagnose() if "listed" in one.message]
    assert finding.state == "ok"
    assert finding.message.endswith("is listed before each search: nfs4 has no file events")
