"""A library moves between files and PostgreSQL, and its index between Chroma, Milvus and the embedded one."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bunko.errors import BunkoError, IndexFailure, LibraryBusy, LibraryError, LibraryMoved, LibraryUnreachable
from bunko.library.library import Library
from bunko.library.moving.index_switch import IndexSwitch, IndexSwitcher
from bunko.library.moving.move import Mover, MoveResult
from bunko.library.open import open_library
from bunko.library.opening.load_settings import load_library_settings
from bunko.runtime.observer import Observer
from bunko.stores.postgres import database as databases
from bunko.types import Tool
from tests.library.full_library import answers, digests, make_library, place
from tests.scale.engines import chroma_server, require_chroma, require_milvus
from tests.scale.postgres_server import PASSWORD, PostgresServer
from tests.slow import corpus

pytestmark = pytest.mark.scale


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with rows in every table, in a file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    make_library(tmp_path / "library", tmp_path / "docs")
    return tmp_path / "library"


@pytest.fixture
def server_url(postgres: PostgresServer) -> str:
    """The place of a library that does not exist yet, in a schema of its own."""
    server = postgres.new_library()
    return f"{server.url}&schema={server.schema}"


def open_folder(folder: Path) -> Library:
    return open_library(place(folder), environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"})


def mover(library: Library, folder: Path) -> Mover:
    return Mover(library, place(folder), load_library_settings(place(folder), environ={}))


def move(folder: Path, to: str, observer: Observer | None = None) -> MoveResult:
    with open_folder(folder) as library:
        return mover(library, folder).move(to, observer=observer or Observer())


def use(folder: Path, engine: str) -> IndexSwitch:
    with open_folder(folder) as library:
        loaded = load_library_settings(place(folder), environ={})
        return IndexSwitcher(library, place(folder), loaded).use(engine)


def test_a_library_goes_to_a_server_to_another_schema_and_back_with_everything_it_has(
    folder: Path, postgres: PostgresServer, server_url: str, tmp_path: Path
) -> None:
    with open_folder(folder) as library:
        before, found, library_id = digests(library.store), answers(library), library.store.id
        segments = {path.name for path in (folder / "index").iterdir()}
    second = postgres.new_library()
    places = [server_url, f"{second.url}&schema={second.schema}", f"sqlite:{tmp_path / 'back.db'}"]
    for number, to in enumerate(places):
        result = move(folder, to)
        assert result.rows == sum(digest.rows for digest in before.values())
        with open_folder(folder) as library:
            assert library.store.kind == ("sqlite" if to.startswith("sqlite") else "postgres")
            assert digests(library.store) == before
            assert (answers(library), library.store.id) == (found, library_id)
            assert all(library.store.tools.is_local(tool.id) for tool in library.tools())
            assert library.store.check() == ""
            if number < 2:  # in the same folder, the index files stay valid and are not built again
                assert {path.name for path in (folder / "index").iterdir()} == segments
                notes = library.resolve_tool("notes")
                assert library.store.changes.index_file(notes.id)
    (tmp_path / "docs" / "new.md").write_text("# 新しい文書\n\n引っ越しの後に書かれた。\n", encoding="utf-8")
    with open_folder(folder) as library:
        library.import_("notes")
        assert library.search("引っ越し").hits[0].uri == "new.md"
        expected = digests(library.store)
    assert move(folder, server_url).plan.content == "former"
    with open_folder(folder) as library:
        assert digests(library.store) == expected
        # Ids go on where they were.
        assert library.store.tools.put(Tool("next")).id == library.store.rows.last_ids()["tools"]
        assert library.import_("notes").unchanged == 5


def test_another_machine_with_the_old_schema_is_told_where_the_library_is(
    folder: Path, postgres: PostgresServer, server_url: str, tmp_path: Path
) -> None:
    move(folder, server_url)
    other = tmp_path / "other machine"
    other.mkdir()
    (other / "bunko.toml").write_bytes((folder / "bunko.toml").read_bytes())
    target = postgres.new_library()
    with open_folder(other) as machine:
        notes = machine.resolve_tool("notes")
        assert not machine.store.tools.is_local(notes.id)  # it belongs to the machine that moved it
        move(folder, f"{target.url}&schema={target.schema}")
        assert machine.search("京都の寺", refresh=False).hits
        with pytest.raises(LibraryMoved, match=f"schema {target.schema}"):
            machine.store.tools.put(Tool("late"))
    with pytest.raises(LibraryMoved, match=f"schema {target.schema}"):
        open_folder(other)


def test_a_writer_that_waits_is_told_which_process_moves_the_library(
    folder: Path, server_url: str, tmp_path: Path
) -> None:
    move(folder, server_url)
    messages: list[str] = []

    def write(step: str, done: int, total: int) -> None:
        if not messages:
            with open_folder(folder) as other:
                lock = other.store.lock(tools=["notes"])
                messages.append("" if lock.acquire(0) else lock.holder())

    move(folder, f"sqlite:{tmp_path / 'back.db'}", Observer(on_step=write))
    assert messages[0].startswith("Process ")


def test_a_schema_with_something_else_is_refused_and_not_changed(folder: Path, postgres: PostgresServer) -> None:
    foreign = postgres.new_library()
    postgres.execute(f"CREATE SCHEMA {foreign.schema}; CREATE TABLE {foreign.schema}.mine (a int)")
    with pytest.raises(LibraryError, match="tables that bunko did not create"):
        move(folder, f"{foreign.url}&schema={foreign.schema}")
    query = (
        f"SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '{foreign.schema}'"
    )
    assert postgres.execute(query) == [("mine",)]
    other = postgres.new_library()
    environ = {"BUNKO_STORAGE_URL": other.url, "BUNKO_STORAGE_SCHEMA": other.schema}
    with open_library(place(folder.parent / "somebody"), environ=environ) as library:
        library.store.tools.put(Tool("theirs"))
        before = library.store.rows.values()
        with pytest.raises(LibraryError, match="holds another library"):
            move(folder, f"{other.url}&schema={other.schema}")
        assert library.store.rows.values() == before
    with open_folder(folder) as library:
        assert library.store.kind == "sqlite"


def test_a_wrong_password_and_one_in_the_url_are_one_sentence_without_it(
    folder: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(LibraryError, match="password authentication failed"):
        move(folder, postgres.tcp_url())
    secret = postgres.tcp_url().replace("postgres@", f"postgres:{PASSWORD}@")
    with pytest.raises(BunkoError, match="contains a password") as raised:
        move(folder, secret)
    assert PASSWORD not in str(raised.value)
    assert not (folder / "bunko.toml").exists()


def test_a_server_that_goes_away_switches_nothing_and_the_next_run_continues(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "IMPORT_RETRY_SECONDS", 1.0)
    monkeypatch.setattr("bunko.stores.sql.rows.PAGE_ROWS", 3)
    postgres = PostgresServer()
    try:
        server = postgres.new_library()
        to = f"{server.url}&schema={server.schema}"
        stopped = threading.Event()

        def stop(step: str, done: int, total: int) -> None:
            if done > total // 2 and not stopped.is_set():
                stopped.set()
                postgres.kill()

        with pytest.raises(LibraryUnreachable):
            move(folder, to, Observer(on_step=stop))
        assert not (folder / "bunko.toml").exists()
        with open_folder(folder) as library:
            assert library.store.moved_to() == ""
            expected = digests(library.store)
        postgres.start()
        assert move(folder, to).plan.content == "unfinished"
        with open_folder(folder) as library:
            assert (library.store.kind, digests(library.store)) == ("postgres", expected)
    finally:
        postgres.remove()


@pytest.mark.parametrize("failpoint", ["store.commit", "store.committed"])
def test_a_move_killed_at_any_commit_loses_nothing_and_the_next_one_finishes(
    folder: Path, tmp_path: Path, postgres: PostgresServer, failpoint: str
) -> None:
    with open_folder(folder) as library:
        expected = digests(library.store)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    for visit in (1, 9, *range(17, 40)):  # the last ones are those around the switch
        server = postgres.new_library()
        to = f"{server.url}&schema={server.schema}"
        killed = corpus.run("move", "--to", to, "--library", folder, BUNKO_FAILPOINT=f"{failpoint}:{visit}", **environ)
        settings = folder / "bunko.toml"
        if killed.returncode == 0 or (settings.exists() and server.schema in settings.read_text()):
            break
        finished = corpus.run("move", "--to", to, "--library", folder, **environ)
        assert finished.returncode == 0, finished.stderr
        back = corpus.run("move", "--to", f"sqlite:{folder / 'library.db'}", "--library", folder, **environ)
        assert back.returncode == 0, back.stderr
        with open_folder(folder) as library:
            assert digests(library.store) == expected
    with open_folder(folder) as library:  # the last one was killed after it had switched, or not at all
        assert library.store.kind == "postgres"
        assert digests(library.store) == expected
    assert visit > 9


def test_an_index_goes_to_chroma_to_milvus_and_back_and_finds_the_same(folder: Path, tmp_path: Path) -> None:
    require_chroma()
    require_milvus()
    with open_folder(folder) as library:
        found = answers(library)
        vectors = digests(library.store)["vectors", 0]
    for engine in ("chroma", f"chroma:{tmp_path / 'chroma files'}", f"milvus:{tmp_path / 'milvus.db'}", "embedded"):
        switch = use(folder, engine)
        assert (switch.new, switch.comparison.searches, switch.comparison.recall) == (engine, 5, 1.0)
        with open_folder(folder) as library:
            assert library.index.kind == engine.partition(":")[0]
            assert answers(library) == found
            assert digests(library.store)["vectors", 0] == vectors
    with open_folder(folder) as library:
        switcher = IndexSwitcher(library, place(folder), load_library_settings(place(folder), environ={}))
        assert switcher.drop(f"milvus:{tmp_path / 'milvus.db'}") == ["notes", "pages"]
        assert switcher.drop("chroma") == ["notes", "pages"]
        assert answers(library) == found


def test_the_copy_in_milvus_stays_valid_when_the_library_moves(folder: Path, tmp_path: Path, server_url: str) -> None:
    require_milvus()
    use(folder, f"milvus:{tmp_path / 'milvus.db'}")
    with open_folder(folder) as library:
        found = answers(library)
    move(folder, server_url)
    with open_folder(folder) as library:
        assert (library.store.kind, library.index.kind) == ("postgres", "milvus")
        assert [item.state.pending for item in library.index.status("notes")] == [0]
        assert answers(library) == found


def test_a_chroma_server_is_used_left_when_it_is_gone_and_refused_when_it_is_away(folder: Path, tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as server:
        engine = f"chroma:http://127.0.0.1:{server.port}"
        assert use(folder, engine).comparison.recall == 1.0
        server.kill()
        switch = use(folder, "embedded")  # whoever leaves an engine that is gone must not need it
        assert switch.comparison.searches == 0
        assert "did not answer" in switch.notices[0]
        text = (folder / "bunko.toml").read_text()
        with pytest.raises(IndexFailure, match="is away"):
            use(folder, engine)
        assert (folder / "bunko.toml").read_text() == text


def test_a_collection_that_something_else_made_is_refused_and_nothing_is_changed(folder: Path, tmp_path: Path) -> None:
    require_chroma()
    with open_folder(folder) as library:
        name = f"documents-{library.resolve_tool('notes').id}"
    theirs = (
        "import chromadb; client = chromadb.PersistentClient({!r}); collection = client.get_or_create_collection({!r});"
    )
    script = theirs.format(str(tmp_path / "theirs"), name)
    add = [sys.executable, "-c", f"{script} collection.add(ids=['1'], embeddings=[[1.0, 2.0]])"]
    subprocess.run(add, check=True, capture_output=True)
    with pytest.raises(IndexFailure, match="made by another program"):
        use(folder, f"chroma:{tmp_path / 'theirs'}")
    count = subprocess.run(
        [sys.executable, "-c", f"{script} print(collection.count())"], check=True, capture_output=True
    )
    assert count.stdout.strip() == b"1"
    assert not (folder / "bunko.toml").exists()


def test_an_import_in_progress_is_waited_for(folder: Path, server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bunko.library.moving.move.LOCK_WAIT_SECONDS", 0.0)
    with open_folder(folder) as library:
        lock = library.store.lock(tools=["notes"])
        assert lock.acquire(0)
        with pytest.raises(LibraryBusy, match="is writing to this library"):
            move(folder, server_url)
        lock.release()
