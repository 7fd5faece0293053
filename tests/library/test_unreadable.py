"""What cannot be read now keeps its indexed text, in a rebuild too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Opener, Run
from tests.library.test_library import put


def refuse_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let listing a folder fail, also for a user whom permissions do not bind."""
    scandir = os.scandir

    def refusing(path: str | Path) -> object:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)


@pytest.mark.parametrize("settings", [{}, {"EMBEDDING_PROVIDER": "hashing", "BUNKO_CHUNKER_MAX_CHUNK_CHARS": "500"}])
def test_a_rebuild_keeps_what_is_in_a_folder_that_cannot_be_listed(
    settings: dict[str, str], docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    put(docs, "locked/c.md", "奈良の話")
    put(docs, "gone.md", "大阪の話")
    open_docs().reindex()
    (docs / "gone.md").unlink()
    refuse_folder(monkeypatch, "locked")
    library = open_docs(**settings)
    report = library.reindex(rebuild=True)
    assert (report.updated, report.deleted) == (2, 1)
    assert ["locked/c.md" in notice for notice in report.notices if "could not be read" in notice] == [True]
    answer = library.search("奈良")
    assert answer.hits[0].uri == "locked/c.md"
    assert answer.hits[0].vector_distance is not None
    assert "gone.md" not in {hit.uri for hit in library.search("大阪").hits}


def test_memos_are_not_replaced_by_a_source_without_any(tmp_path: Path, run: Run) -> None:
    memos, empty, skipped = tmp_path / "memos", tmp_path / "empty", tmp_path / "skipped"
    for folder in (memos, empty, skipped / "data"):
        folder.mkdir(parents=True)
    (memos / "memo.txt").write_text("* 買い物 2024-03-05\n\t醤油\n", encoding="utf-8")
    (skipped / "data" / "memo.txt").write_text("* 会議 2024-03-06\n\t予算\n", encoding="utf-8")
    assert run("build", "--input", memos).code == 0
    for other in (empty, skipped):
        refused = run("build", "--input", other, "--yes")
        assert refused.code == 3
        assert f"those of {memos} are kept" in refused.err
        found = run("search", "醤油", "-n", "memos")
        assert (found.code, "memo.txt" in found.out) == (0, True)
        assert "missing or empty" not in found.err
