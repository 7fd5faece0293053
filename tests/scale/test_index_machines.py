"""Machines that share a library on a server, with an index on each of them or with one that they share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko import indexes, stores
from bunko.indexes.chroma.index import ChromaIndex
from bunko.indexes.milvus.index import MilvusIndex
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.options import EngineOptions, MilvusOptions
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.contracts.documents import prepared
from tests.scale import engines
from tests.scale.postgres_server import environment

pytestmark = pytest.mark.scale


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with engines.milvus_server(tmp_path_factory.mktemp("milvus")) as started:
        yield f"http://127.0.0.1:{started.port}"


def open_machine(server: DatabaseServer, folder: Path, kind: str, **more: str) -> Library:
    settings = {"BUNKO_INDEX_KIND": kind, "BUNKO_MILVUS_TIMEOUT": "60", **more}
    return open_library(paths_for_folder(folder), environ=environment(server) | settings)


def put(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(f"# {name}\n\n{text}\n", encoding="utf-8")


def copy_of(library: Library) -> str:
    """Return the id of the copy that a machine searches."""
    index, [tool] = library._index, library.tools()
    if isinstance(index, ChromaIndex):
        collection = index._client.find(index._name(tool.id))
        assert collection is not None
        return collection.stamp.copy
    assert isinstance(index, MilvusIndex)
    copy = index._copies.find(tool.id)
    assert copy is not None
    return copy.stamp.copy


@pytest.mark.parametrize("kind", ["chroma", "milvus"])
def test_machines_with_an_index_of_their_own_leave_each_other_alone(
    server: DatabaseServer, docs: Path, tmp_path: Path, kind: str
) -> None:
    (engines.require_chroma if kind == "chroma" else engines.require_milvus)()
    put(docs, "a.md", "京都の寺と庭")
    put(docs, "b.md", "奈良の鹿せんべい")
    with (
        open_machine(server, tmp_path / "first", kind) as first,
        open_machine(server, tmp_path / "second", kind) as second,
    ):
        first.add(docs, name="docs")
        first.import_("docs")
        second.index.sync("docs")
        copies = copy_of(first), copy_of(second)
        assert copies[0] != copies[1]
        for number, (name, text) in enumerate([("c.md", "大阪の城"), ("a.md", "鎌倉の海"), ("d.md", "宇治の抹茶")]):
            put(docs, name, text)
            importing, other = (first, second) if number % 2 == 0 else (second, first)
            importing.import_("docs")
            assert importing.search(text, refresh=False).hits[0].uri == name
            [item] = other.index.status()
            assert (item.state.problem, item.state.pending > 0) == ("", True)
            if number == 1:
                continue  # one machine misses a change, and then catches up with two
            other.index.sync("docs")
            for library in (first, second):
                assert library.index.status()[0].state.is_current
                assert library.search(text, refresh=False).hits[0].uri == name
        (docs / "b.md").unlink()
        first.import_("docs")
        second.index.sync("docs")
        assert (copy_of(first), copy_of(second)) == copies, "nothing was filled anew"
        for library in (first, second):
            assert library.maintenance.diagnose()[-1].state == "ok"
        answers = [
            [(hit.uri, round(hit.score, 4)) for hit in library.search("城と海と抹茶", refresh=False).hits]
            for library in (first, second)
        ]
        assert answers[0] == answers[1]


def test_a_server_that_machines_know_by_different_names_has_one_copy(
    server: DatabaseServer, docs: Path, tmp_path: Path, milvus: str
) -> None:
    put(docs, "a.md", "京都の寺と庭")
    names = milvus, milvus.replace("127.0.0.1", "localhost")
    with (
        open_machine(server, tmp_path / "first", "milvus", BUNKO_MILVUS_URI=names[0]) as first,
        open_machine(server, tmp_path / "second", "milvus", BUNKO_MILVUS_URI=names[1]) as second,
    ):
        first.add(docs, name="docs")
        first.import_("docs")
        put(docs, "b.md", "奈良の鹿せんべい")
        copy = copy_of(first)
        second.import_("docs")
        assert (copy_of(first), copy_of(second)) == (copy, copy)
        for library in (first, second):
            assert library.index.status()[0].state.is_current
            assert library.search("奈良の鹿", refresh=False).hits[0].uri == "b.md"


@pytest.mark.parametrize("kind", ["chroma", "milvus"])
def test_machines_that_sync_at_once_do_no_harm(
    server: DatabaseServer, docs: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """Over one server: the lock of the tool is on PostgreSQL, for all machines."""
    if kind == "chroma":
        address = {"CHROMADB_URL": request.getfixturevalue("chroma")}
    else:
        address = {"BUNKO_MILVUS_URI": request.getfixturevalue("milvus")}
    for number in range(30):
        put(docs, f"{number}.md", f"京都の寺と庭の{number}番目の話")
    with open_machine(server, tmp_path / "importing", "embedded") as library:
        library.add(docs, name="docs")
        library.import_("docs")
    settings = {"BUNKO_INDEX_KIND": kind, **environment(server), **address}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bunko", "index", action, "--library", str(tmp_path / f"machine{number}")],
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **settings},
            stdout=subprocess.DEVNULL,
        )
        for number, action in enumerate(["sync", "rebuild", "sync", "rebuild"])
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    with open_machine(server, tmp_path / "machine0", kind, **address) as library:
        [item] = library.index.status()
        assert (item.state.is_current, item.state.rows) == (True, library.store.stats.totals(item.tool.id).chunks)
        assert [finding.state for finding in library.maintenance.diagnose()].count("ok") >= 2
        assert library.search("寺の庭", refresh=False).notices == []


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with engines.chroma_server(tmp_path_factory.mktemp("chroma")) as started:
        yield f"http://127.0.0.1:{started.port}"


def test_a_collection_that_another_tool_has_just_begun_to_use_is_not_dropped(
    server: DatabaseServer, milvus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports of different tools run at the same time, and one may empty the collection that the other fills."""
    options = EngineOptions(milvus=MilvusOptions(uri=milvus, timeout=60.0))
    with_store = [stores.build("postgres", tmp_path / str(number) / "library.db", server) for number in range(2)]
    old, new = (with_store[0].tools.put(Tool(name)) for name in ("old", "new"))
    for tool in (old, new):
        with_store[0].documents.write(tool.id, upsert=[prepared("a.md", f"京都の寺 {tool.name}")])
    first, second = (indexes.build("milvus", store, None, options) for store in with_store)
    first.sync(old.id)
    is_empty, may_go_on = threading.Event(), threading.Event()
    drop = MilvusServer.drop

    def drop_later(server: MilvusServer, name: str) -> None:
        """Let the other tool come in between the look at the collection and its end."""
        is_empty.set()
        may_go_on.wait(2)
        drop(server, name)

    monkeypatch.setattr(MilvusServer, "drop", drop_later)
    dropping = threading.Thread(target=first.drop, args=(old.id,))
    dropping.start()
    assert is_empty.wait(30)
    second.sync(new.id)
    may_go_on.set()
    dropping.join(30)
    state = second.state(new.id)
    assert (state.is_current, state.rows) == (True, 1)
    with with_store[1].read_transaction():
        assert second.view([new.id]).size == 1
    for index, store in zip((first, second), with_store, strict=True):
        index.close()
        store.close()
