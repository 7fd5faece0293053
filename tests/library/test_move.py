"""A library moves to another file as a whole, or not at all."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import BunkoError, LibraryBusy, LibraryDamaged, LibraryError, LibraryMoved, SettingsError
from bunko.library.library import Library
from bunko.library.moving.move import COPY_STEP, VERIFY_STEP, Mover, MoveResult
from bunko.library.open import open_library
from bunko.library.opening.load_settings import load_library_settings
from bunko.library.opening.paths import locate_library
from bunko.runtime.observer import Observer
from bunko.types import Tool
from tests.library.full_library import answers, digests, make_library, place


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with rows in every table."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    make_library(tmp_path / "library", tmp_path / "docs")
    return tmp_path / "library"


def open_folder(folder: Path, **environ: str) -> Library:
    return open_library(place(folder), environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"} | environ)


def mover(library: Library, folder: Path) -> Mover:
    return Mover(library, place(folder), load_library_settings(place(folder), environ={}))


def move(folder: Path, to: str, observer: Observer | None = None) -> MoveResult:
    with open_folder(folder) as library:
        return mover(library, folder).move(to, observer=observer or Observer())


class Killed(BaseException):
    """Ends a move as Ctrl-C does."""


@pytest.fixture
def kill_while_copying() -> Observer:
    def kill(step: str, done: int, total: int) -> None:
        if step == COPY_STEP and done > 0.4 * total:
            raise Killed

    return Observer(on_step=kill)


def test_everything_is_the_same_after_a_move(folder: Path, tmp_path: Path) -> None:
    with open_folder(folder) as library:
        before, found = digests(library.store), answers(library)
        values, usage = library.store.rows.values(), library.store.vectors.usage()
        ids, library_id = library.store.rows.last_ids(), library.store.id
        result = mover(library, folder).move(f"sqlite:{tmp_path / 'new' / 'moved.db'}")
    assert result.comparison.searches == 5
    assert result.comparison.languages == {"ja", "en"}
    assert result.comparison.recall == 1.0
    with open_folder(folder) as library:
        assert library.store.location == str(tmp_path / "new" / "moved.db")
        assert digests(library.store) == before
        assert answers(library) == found
        notes = library.resolve_tool("notes")
        # The index file is a new one.
        assert library.store.rows.values() == values | {
            f"derived {notes.id}": library.store.changes.index_file(notes.id)
        }
        assert (library.store.rows.last_ids(), library.store.id) == (ids, library_id)
        assert library.store.vectors.usage() == usage
        assert library.store.tools.put(Tool("next")).id == ids["tools"] + 1
        assert library.store.check() == ""


def test_a_search_after_the_move_does_not_build_an_index(folder: Path, tmp_path: Path) -> None:
    move(folder, f"sqlite:{tmp_path / 'moved.db'}")
    with open_folder(folder) as library:
        notes = library.resolve_tool("notes")
        (file,) = library.paths.index_folder.glob("*.segment")
        assert library.paths.index_folder == tmp_path / "moved.db.d"
        with library.store.read_transaction():
            (view,) = library.index_view([notes.id]).views  # type: ignore[attr-defined]
        assert view.segment.stamp["nonce"] == library.store.changes.index_file(notes.id)
        assert view.segment.stamp["generation"] == int(file.stem.rpartition("-")[2]) == library.store.generation()
    assert not list((folder / "index").glob("moving-*"))


def test_the_way_back_is_the_same_command(folder: Path, tmp_path: Path) -> None:
    result = move(folder, f"sqlite:{tmp_path / 'moved.db'}")
    (tmp_path / "docs" / "new.md").write_text("# 新しい文書\n\n引っ越しの後に書かれた。\n", encoding="utf-8")
    (tmp_path / "docs" / "setup.md").unlink()
    with open_folder(folder) as library:
        library.import_("notes")
        expected, found = digests(library.store), answers(library)
    back = move(folder, result.plan.way_back)
    assert back.plan.content == "former"
    with open_folder(folder) as library:
        assert library.store.location == str(folder / "library.db")
        assert library.paths.index_folder == folder / "index"
        assert (digests(library.store), answers(library)) == (expected, found)
        assert library.search("引っ越し").hits[0].uri == "new.md"


@pytest.mark.parametrize("changed", [False, True])
def test_an_interrupted_move_switches_nothing_and_the_next_one_continues(
    folder: Path, tmp_path: Path, kill_while_copying: Observer, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    monkeypatch.setattr("bunko.stores.sql.rows.PAGE_ROWS", 3)
    to = f"sqlite:{tmp_path / 'moved.db'}"
    with pytest.raises(Killed):
        move(folder, to, kill_while_copying)
    assert not (folder / "bunko.toml").exists()
    with pytest.raises(LibraryError, match="unfinished copy"):
        open_library(locate_library(database=tmp_path / "moved.db", environ={}), environ={})
    with open_folder(folder) as library:
        if changed:  # documents, tools and caches, between the two runs
            (tmp_path / "docs" / "京都.md").write_text("# 京都\n\n書き直した。\n", encoding="utf-8")
            library.import_("notes")
            library.rename_tool("pages", "web-pages")
            library.store.cache.clear_searches()
        expected = digests(library.store)
        assert mover(library, folder).plan(to).content == "unfinished"
    move(folder, to)
    with open_folder(folder) as library:
        assert library.store.location == str(tmp_path / "moved.db")
        assert digests(library.store) == expected


def test_a_place_that_holds_something_else_is_refused_and_not_changed(folder: Path, tmp_path: Path) -> None:
    make_library(tmp_path / "other", tmp_path / "docs")
    (tmp_path / "text.db").write_text("not a database, and long enough to be looked at " * 20)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as connection:
        connection.execute("CREATE TABLE mine (a)")
    for name, kind in (("other/library.db", LibraryError), ("text.db", LibraryDamaged), ("foreign.db", LibraryDamaged)):
        content = (tmp_path / name).read_bytes()
        with pytest.raises(kind):
            move(folder, f"sqlite:{tmp_path / name}")
        assert (tmp_path / name).read_bytes() == content
    with pytest.raises(LibraryError, match="already"):
        move(folder, f"sqlite:{folder / 'library.db'}")
    with pytest.raises(SettingsError, match="is a folder"):
        move(folder, f"sqlite:{tmp_path}")
    assert not (folder / "bunko.toml").exists()


def test_an_empty_file_and_an_empty_library_are_places_for_a_library(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert move(folder, f"sqlite:{tmp_path / 'empty.db'}").plan.content == "empty"
    stores.build("sqlite", tmp_path / "new.db").close()
    assert move(folder, f"sqlite:{tmp_path / 'new.db'}").plan.content == "empty"


def test_a_process_that_has_the_old_library_open_searches_it_with_a_notice_and_cannot_write(
    folder: Path, tmp_path: Path
) -> None:
    with open_folder(folder) as server:
        found = answers(server)
        move(folder, f"sqlite:{tmp_path / 'moved.db'}")
        assert answers(server) == found
        (notice,) = [text for text in server.search("京都の寺").notices if "moved" in text]
        assert notice.startswith(f"This library has moved to {tmp_path / 'moved.db'}")
        (tmp_path / "docs" / "late.md").write_text("# Late\n\nNobody must write this to the old library.\n")
        assert not [hit for hit in server.search("Late").hits if hit.uri == "late.md"]
        for write in (lambda: server.import_("notes"), lambda: server.store.tools.put(Tool("late"))):
            with pytest.raises(LibraryMoved, match="has moved to"):
                write()
        server.log_search("京都")  # it may be lost
    (tmp_path / "empty.toml").touch()
    with pytest.raises(LibraryMoved, match="has moved to"):
        open_library(place(folder), environ={}, config=tmp_path / "empty.toml")
    with open_folder(folder) as library:
        library.import_("notes")
        assert library.search("Late").hits[0].uri == "late.md"


def test_a_move_waits_for_nobody_who_crawls_and_writers_wait_for_it(folder: Path, tmp_path: Path) -> None:
    with open_folder(folder) as library:
        lock = library.store.lock("web")
        assert lock.acquire(0)
        with pytest.raises(LibraryBusy, match="collecting pages"):
            mover(library, folder).move(f"sqlite:{tmp_path / 'moved.db'}")
        lock.release()
        seen: list[bool] = []

        def try_to_write(step: str, done: int, total: int) -> None:
            if not seen:
                seen.append(library.store.lock().acquire(0))

        mover(library, folder).move(f"sqlite:{tmp_path / 'moved.db'}", observer=Observer(on_step=try_to_write))
    assert seen == [False]


def test_what_is_written_without_a_lock_during_the_move_is_not_lost(folder: Path, tmp_path: Path) -> None:
    """A description is edited and a search is logged while documents are copied."""
    edited = threading.Event()

    def edit(step: str, done: int, total: int) -> None:
        if step == VERIFY_STEP and not edited.is_set():
            edited.set()
            with open_folder(folder) as other:
                tool = other.resolve_tool("notes")
                other.maintenance.set_search_settings("notes", {"k1": 1.5})
                other.store.cache.log_search("一度だけ", tool.name, "2026-02-02T00:00:00", limit=10)

    move(folder, f"sqlite:{tmp_path / 'moved.db'}", Observer(on_step=edit))
    with open_folder(folder) as library:
        assert library.resolve_tool("notes").options.search == {"k1": 1.5}
        assert "一度だけ" in [search.query for search in library.searches.log.all()]


def test_a_copy_that_differs_is_not_switched_to(folder: Path, tmp_path: Path) -> None:
    def damage(step: str, done: int, total: int) -> None:
        if step == COPY_STEP and done == total:
            with closing(sqlite3.connect(tmp_path / "moved.db")) as connection, connection:
                connection.execute("UPDATE chunks SET heading = 'forged' WHERE id = (SELECT max(id) FROM chunks)")
                connection.execute("DELETE FROM vectors WHERE key = 'pinned' OR key = CAST('pinned' AS BLOB)")

    with pytest.raises(LibraryError, match=r"chunks of notes \((\d+) and \1 rows\), vectors") as raised:
        move(folder, f"sqlite:{tmp_path / 'moved.db'}", Observer(on_step=damage))
    assert "Nothing was switched" in raised.value.hint
    with open_folder(folder) as library:
        assert library.store.location == str(folder / "library.db")
    move(folder, f"sqlite:{tmp_path / 'moved.db'}")


def test_ranks_that_differ_are_not_switched_to(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bunko.library.moving import sample_searches

    original, calls = sample_searches.search_sample, []

    def change_second(*arguments):  # type: ignore[no-untyped-def]
        calls.append(1)
        words, nearest, fused = original(*arguments)
        return words, nearest, [(chunk, score + 0.001 * (len(calls) % 2)) for chunk, score in fused]

    monkeypatch.setattr(sample_searches, "search_sample", change_second)
    with pytest.raises(LibraryError, match="ranks differently"):
        move(folder, f"sqlite:{tmp_path / 'moved.db'}")
    with open_folder(folder) as library:
        assert library.store.location == str(folder / "library.db")


def test_rankings_are_equal_to_four_decimals_and_close_scores_may_change_places() -> None:
    from bunko.library.moving.sample_searches import are_equal

    assert are_equal([(1, 0.5), (2, 0.4)], [(1, 0.50004), (2, 0.4)])
    assert are_equal([(1, 0.5), (2, 0.49999)], [(2, 0.5), (1, 0.49999)])
    assert are_equal([(1, 0.5), (2, 0.3)], [(1, 0.5), (3, 0.3)])  # both score the same, and one had to go
    assert not are_equal([(1, 0.5), (2, 0.4)], [(1, 0.5), (2, 0.39)])
    assert not are_equal([(1, 0.5), (2, 0.4)], [(2, 0.5), (1, 0.4)])
    assert not are_equal([(1, 0.5)], [(1, 0.5), (2, 0.4)])


def test_settings_that_cannot_be_written_leave_the_library_where_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    to = f"sqlite:{tmp_path / 'moved.db'}"
    with monkeypatch.context() as patch:
        patch.setattr("bunko.library.moving.settings_file.replace_text", fail)
        with pytest.raises(BunkoError, match="No space left"):
            move(folder, to)
    with open_folder(folder) as library:
        assert (library.store.location, library.store.moved_to()) == (str(folder / "library.db"), "")
        assert mover(library, folder).plan(to).content == "unfinished"
    move(folder, to)


def test_a_library_in_memory_cannot_move(folder: Path) -> None:
    with (
        open_folder(folder, BUNKO_STORAGE_KIND="memory") as library,
        pytest.raises(SettingsError, match="in memory"),
    ):
        mover(library, folder).plan("sqlite:x.db")
