"""Where the files of a library are, and which folder they belong to."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bunko.errors import LibraryError, LibraryMismatch, SettingsError, SourceError
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.stores.sql import facts
from bunko.types.records import Filter
from tests.conftest import Opener
from tests.library.test_library import counts, put


def test_one_data_folder_serves_one_folder(docs: Path, tmp_path: Path, open_docs: Opener) -> None:
    other = tmp_path / "other"
    other.mkdir()
    open_library(locate_library(docs_dir=docs, data_dir=tmp_path / "data", environ={}), environ={}).close()
    with pytest.raises(LibraryMismatch, match="was built from"):
        open_library(locate_library(docs_dir=other, data_dir=tmp_path / "data", environ={}), environ={})


def test_a_folder_that_moved_takes_its_index_along(docs: Path, tmp_path: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    library = open_docs()
    library.reindex()
    library.close()
    docs.rename(tmp_path / "elsewhere")
    moved = open_library(locate_library(docs_dir=tmp_path / "elsewhere", environ={}), environ={})
    assert moved.reindex().unchanged == 1
    assert moved.search("京都").hits
    moved.close()


def test_the_index_itself_is_never_imported_wherever_it_lies(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    home = locate_library(docs_dir=docs, data_dir=docs / "my index", environ={})
    library = open_library(home, environ={})
    library.reindex()
    put(docs, "my index/notes.md", "京都")
    assert counts(library) == (0, 0, 0, 0, 1)
    library.close()


def test_flags_that_contradict_each_other_are_refused(docs: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--data-dir"):
        locate_library(docs_dir=docs, library=tmp_path, environ={})
    with pytest.raises(SettingsError, match="cannot be used together"):
        locate_library(library=tmp_path, database=tmp_path / "x.db", environ={})
    with pytest.raises(SettingsError, match="requires --docs-dir"):
        locate_library(data_dir=tmp_path, environ={})
    with pytest.raises(SourceError, match="no folder"):
        locate_library(docs_dir=tmp_path / "nowhere", environ={})


def test_a_file_that_a_flag_names_is_not_exchanged_for_a_server_that_the_environment_names(tmp_path: Path) -> None:
    environ = {"BUNKO_STORAGE_URL": "postgresql://me@127.0.0.1:9/team"}
    paths = locate_library(database=tmp_path / "own.db", environ=environ)
    with pytest.raises(
        SettingsError, match=r"--database names a file, but storage.kind is postgres \(.*BUNKO_STORAGE_URL\)"
    ) as raised:
        open_library(paths, environ=environ)
    assert "BUNKO_STORAGE_KIND=sqlite" in raised.value.hint
    with open_library(paths, environ=environ | {"BUNKO_STORAGE_KIND": "sqlite"}) as library:
        assert library.store.kind == "sqlite"
    # The settings beside the file are its own: a library that has moved is named as before.
    (tmp_path / "bunko.toml").write_text('[storage]\nurl = "mysql://db.example/team"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="not a URL of PostgreSQL"):
        open_library(paths, environ={})


def test_a_library_can_be_one_file_with_its_derived_files_beside_it(tmp_path: Path) -> None:
    home = locate_library(database=tmp_path / "my.sqlite", environ={})
    assert (home.database, home.index_folder) == (tmp_path / "my.sqlite", tmp_path / "my.sqlite.d")
    assert locate_library(environ={"BUNKO_LIBRARY": str(tmp_path / "lib")}).database == tmp_path / "lib" / "library.db"


def test_derived_files_lie_where_the_setting_says(docs: Path, tmp_path: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    open_docs(BM25_PERSIST_DIR=str(tmp_path / "derived")).reindex()
    assert list((tmp_path / "derived").glob("*.segment"))


def test_the_index_beside_documents_is_not_for_git_or_for_others(docs: Path, open_docs: Opener) -> None:
    open_docs()
    assert (docs / ".rag-index" / ".gitignore").read_text() == "*\n"
    assert (docs / ".rag-index").stat().st_mode & 0o077 == 0


def test_a_library_that_was_moved_away_is_not_created_anew(tmp_path: Path, docs: Path) -> None:
    put(docs, "a.md", "京都")
    home = tmp_path / "library"
    with open_library(locate_library(docs_dir=docs, data_dir=home, environ={}), environ={}) as library:
        home.rename(tmp_path / "away")
        with pytest.raises(LibraryError, match="does not exist any more"):
            library.reindex()
        assert not home.exists()
        (tmp_path / "away").rename(home)
        assert library.reindex().added == 1


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_index_files_may_be_read_by_those_who_may_read_the_library(
    mode: int, docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "MIN_SAVED_DOCUMENTS", 1)
    put(docs, "a.md", "京都")
    library = open_docs()
    library.paths.database.chmod(mode)
    library.reindex()
    assert library.search("京都", where=Filter(path="*.md")).hits
    for number in range(9):
        put(docs, f"more {number}.md", f"奈良 {number}")
    library.reindex()
    library.maps.build(library.tools())
    suffixes = {".segment", ".facts", ".arrays"}
    files = [path for path in library.paths.database.parent.rglob("*") if path.suffix in suffixes]
    assert {path.suffix for path in files} == suffixes
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {mode}
