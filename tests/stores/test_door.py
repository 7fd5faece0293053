"""Open stores through their one door."""

from __future__ import annotations

import gc
import sqlite3
import stat
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import LibraryDamaged, LibraryError, SettingsError, UnknownName
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library, paths_for_folder
from bunko.library.tools.names import tool_names
from bunko.settings import load_settings
from bunko.types import Tool
from bunko.types.records import DatabaseServer

NOTE = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。"
IN_MEMORY = {"BUNKO_STORAGE_KIND": "memory"}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_unknown_kind_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no store called 'oracle'") as raised:
        open_library(paths_for_folder(tmp_path / "library"), environ={"BUNKO_STORAGE_KIND": "oracle"})
    assert raised.value.hint == "Set storage.kind to one of: sqlite, postgres, memory."
    assert not (tmp_path / "library").exists()


def test_the_default_of_the_setting_is_a_kind_of_store() -> None:
    assert load_settings(environ={}).settings.storage.kind in stores.KINDS


def test_a_server_is_chosen_by_its_url_alone_and_needs_one(tmp_path: Path) -> None:
    loaded = load_settings(environ={"BUNKO_STORAGE_URL": "postgresql://me@db.example/team"})
    assert loaded.settings.storage.kind == "postgres"
    assert loaded.origins["storage.kind"] == "storage.url of environment BUNKO_STORAGE_URL"
    both = load_settings(environ={"BUNKO_STORAGE_URL": "postgresql://db.example/team", "BUNKO_STORAGE_KIND": "sqlite"})
    assert both.settings.storage.kind == "sqlite"
    with pytest.raises(SettingsError, match=r"storage\.url is not set"):
        open_library(paths_for_folder(tmp_path / "library"), environ={"BUNKO_STORAGE_KIND": "postgres"})
    assert not (tmp_path / "library").exists()


def test_a_server_without_its_package_is_an_error_that_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.stores.postgres.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="psycopg") as raised:
        stores.build("postgres", tmp_path / "library.db", DatabaseServer("postgresql://db.example/team"))
    assert 'pip install "bunko[postgres]"' in raised.value.hint


def test_a_library_in_memory_is_imported_searched_and_leaves_no_file(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(NOTE, encoding="utf-8")
    before = names_in(tmp_path)
    with open_library(locate_library(docs_dir=docs, environ={}), environ=IN_MEMORY) as library:
        assert library.reindex().added == 1
        assert [hit.uri for hit in library.search("紅葉").hits] == ["a.md"]
        assert (library.status().location, library.status().bytes) == ("memory", 0)
    assert (names_in(tmp_path), names_in(docs)) == (before, ["a.md"])


def test_the_folder_of_a_library_in_memory_goes_with_its_store() -> None:
    for is_closed in (True, False):
        store = stores.build("memory", Path())
        folder = store.address.location.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        if is_closed:
            store.close()
        del store
        gc.collect()
        assert not folder.exists()


def test_errors_of_a_library_in_memory_do_not_name_its_folder() -> None:
    store = stores.build("memory", Path())
    folder = str(store.address.location.parent)
    connection = sqlite3.connect(store.address.location)
    connection.execute("DROP TABLE tools")
    connection.close()
    with pytest.raises(LibraryDamaged, match="memory is not a readable library") as damage:
        store.tools.all()
    store.close()
    with pytest.raises(LibraryError, match="memory is closed") as closed:
        store.generation()
    for error in (damage.value, closed.value):
        assert folder not in error.message + error.hint
        assert "Delete memory" not in error.hint


def test_a_library_in_memory_is_never_there_before_it_is_opened(tmp_path: Path) -> None:
    paths = paths_for_folder(tmp_path)
    with pytest.raises(LibraryError, match="There is no library"):
        open_library(paths, environ=IN_MEMORY, create=False)
    assert tool_names(paths, environ=IN_MEMORY) == []


def test_a_config_file_among_the_documents_cannot_choose_the_store(tmp_path: Path) -> None:
    (tmp_path / "bunko.toml").write_text('[storage]\nkind = "memory"\n', encoding="utf-8")
    with open_library(locate_library(docs_dir=tmp_path, environ={}), environ={}) as library:
        assert library.store.kind == "sqlite"
        assert any("storage.kind in" in notice for notice in library.notices)


def test_tool_names_are_read_without_opening_a_file(tmp_path: Path) -> None:
    location = tmp_path / "library.db"
    store = stores.build("sqlite", location)
    store.tools.put(Tool("docs"))
    store.close()
    before = names_in(tmp_path)
    assert stores.tool_names("sqlite", location) == ["docs"]
    assert names_in(tmp_path) == before


def test_a_deleted_store_leaves_nothing_behind(tmp_path: Path) -> None:
    location = tmp_path / "new" / "library.db"
    assert stores.missing_paths("sqlite", location) == (location, location.parent)
    store = stores.build("sqlite", location)
    lock = store.lock()
    assert lock.acquire(0)
    lock.release()
    assert {path.name for path in store.files.paths()} >= {"library.db", "library.db-wal", "library.db.lock"}
    assert stores.exists("sqlite", location)
    store.close()
    stores.delete("sqlite", location)
    assert names_in(location.parent) == []
    assert not stores.exists("sqlite", location)


def test_a_store_knows_its_files_and_whether_they_are_still_there(tmp_path: Path) -> None:
    store = stores.build("sqlite", tmp_path / "library.db")
    assert store.files.contain(str(tmp_path.resolve() / "library.db-wal"))
    assert not store.files.contain(str(tmp_path.resolve() / "notes.md"))
    assert store.files.still_exist()
    store.close()
    (tmp_path / "library.db").rename(tmp_path / "moved.db")
    assert not store.files.still_exist()
