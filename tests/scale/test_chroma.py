"""A library whose vectors are in Chroma, in files and on a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko.errors import IndexFailure
from bunko.indexes.chroma.client import ChromaClient, ChunkRecord, CollectionInfo
from bunko.indexes.chroma.local import ChromaFiles
from bunko.indexes.chroma.server import ChromaServer
from bunko.indexes.options import ChromaOptions
from bunko.library.library import Library
from tests.conftest import Opener
from tests.scale.engines import Server, chroma_server, require_chroma

pytestmark = pytest.mark.scale

FAILPOINTS = (
    "index.announced", "index.created", "index.opened", "index.removed", "index.written", "index.noted",
    "index.stamped", "store.committed",
)  # fmt: skip
FILE_FAILPOINTS = ("index.opened", "index.noted")  # only where Chroma's files are ours


@pytest.fixture(autouse=True)
def _chroma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_chroma()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with chroma_server(tmp_path / "server") as started:
        yield started


class Place:
    """Where a library keeps its vectors: its settings, and a client that looks at the same data."""

    def __init__(self, environ: dict[str, str], connect: Callable[[], ChromaClient]) -> None:
        self.environ, self._connect = {"BUNKO_INDEX_KIND": "chroma", **environ}, connect
        self.opened: list[ChromaClient] = []

    def collection(self, library: Library) -> tuple[ChromaClient, CollectionInfo]:
        client = self._connect()
        self.opened.append(client)
        [tool] = library.tools()
        name = "documents" if "CHROMADB_URL" not in self.environ else f"documents-{library.store.id[:8]}-{tool.id}"
        collection = client.find(name)
        assert collection is not None
        return client, collection


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with chroma_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(params=["files", "server"])
def place(request: pytest.FixtureRequest, docs: Path) -> Iterator[Place]:
    if request.param == "files":
        made = Place({}, lambda: ChromaFiles(files_folder(docs)))
    else:
        made = server_place(request.getfixturevalue("shared_server"))
    yield made
    for client in made.opened:
        client.close()


def files_folder(docs: Path) -> Path:
    """Return where Chroma's files are: not in a folder of documents, which may come from somebody else."""
    assert not list(docs.rglob("chroma*"))
    [folder] = (docs.parent / "data" / "bunko" / "indexes").iterdir()
    return folder / "chroma"


def server_place(server: Server, **names: str) -> Place:
    url = f"http://127.0.0.1:{server.port}"
    return Place({"CHROMADB_URL": url}, lambda: ChromaServer(ChromaOptions(url=url, **names)))  # type: ignore[arg-type]


def put(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text, encoding="utf-8")


def fill(docs: Path, count: int = 12) -> None:
    for number in range(count):
        put(
            docs,
            f"note{number}.md",
            f"# Note {number}\n京都の寺を{number}番目に歩く\n\n## Details\nNumber {number} of the garden",
        )


def stored_pairs(library: Library) -> set[tuple[int, int]]:
    [tool] = library.tools()
    chunks = library.store.changes.chunks_since(tool.id, 0)
    return {(chunk.document_id, chunk.chunk_id) for chunk in chunks if chunk.vector is not None}


def assert_in_step(library: Library, place: Place) -> None:
    """The collection has exactly the chunks of the library, and answers."""
    client, collection = place.collection(library)
    assert client.pairs(collection, at_most=100_000) == stored_pairs(library)
    client.close()
    [item] = library.index.status()
    assert (item.state.pending, item.state.problem, item.state.rows) == (0, "", len(stored_pairs(library)))
    for query in ("京都の寺", "number 3 of the garden"):
        assert library.search(query, mode="semantic", refresh=False).notices == []


def test_the_collection_has_the_ids_metadata_texts_and_settings_that_were_asked_for(
    docs: Path, open_docs: Opener, place: Place
) -> None:
    fill(docs, 2)
    settings = {"HNSW_SPACE": "l2", "HNSW_CONSTRUCTION_EF": "77", "HNSW_SEARCH_EF": "33", "HNSW_M": "9"}
    with open_docs(**place.environ, **{f"BUNKO_CHROMADB_{name}": value for name, value in settings.items()}) as library:
        library.reindex()
        client, collection = place.collection(library)
        assert {name: collection.hnsw[name] for name in ("space", "ef_construction", "ef_search", "max_neighbors")} == {
            "space": "l2", "ef_construction": 77, "ef_search": 33, "max_neighbors": 9,
        }  # fmt: skip
        assert collection.dimension == 256
        assert library.search("京都の寺を1番目", mode="semantic").hits[0].uri == "note1.md"
    if isinstance(client, ChromaFiles):
        records = client._get("documents").get(include=["metadatas", "documents", "embeddings"])
        by_id = dict(zip(records["ids"], zip(records["metadatas"], records["documents"], strict=True), strict=True))
        metadata, text = by_id["note1.md::chunk_0"]
        assert {name: metadata[name] for name in ("file_path", "chunk_index", "title")} == {
            "file_path": "note1.md", "chunk_index": 0, "title": "Note 1",
        }  # fmt: skip
        assert metadata["heading"] == "# Note 1"
        assert "京都の寺を1番目に歩く" in text
    client.close()


def test_changed_removed_and_moved_documents_are_followed(docs: Path, open_docs: Opener, place: Place) -> None:
    fill(docs)
    with open_docs(**place.environ) as library:
        library.reindex()
        assert_in_step(library, place)
        put(docs, "note3.md", "# Deer\nThe deer of Nara eat crackers")
        (docs / "note4.md").unlink()
        (docs / "note5.md").rename(docs / "moved.md")
        library.reindex()
        assert_in_step(library, place)
        hits = library.search("deer crackers", mode="semantic").hits
        assert hits[0].uri == "note3.md"
        assert not {"note4.md", "note5.md"} & {hit.uri for hit in library.search("京都の寺", top_k=50).hits}


@pytest.mark.parametrize("failpoint", FAILPOINTS)
@pytest.mark.parametrize("when", ["first", "later"])
def test_a_crash_anywhere_is_healed_by_the_next_sync(
    docs: Path, open_docs: Opener, place: Place, failpoint: str, when: str, tmp_path: Path
) -> None:
    fill(docs)
    if when == "later":
        with open_docs(**place.environ) as library:
            library.reindex()
        fill(docs, 5)
        put(docs, "note2.md", "# Deer\nThe deer of Nara")
        (docs / "note7.md").unlink()
    killed = command("reindex", "--docs-dir", str(docs), tmp_path=tmp_path, BUNKO_FAILPOINT=failpoint, **place.environ)
    is_server = "CHROMADB_URL" in place.environ
    is_reached = when == "first" if failpoint == "index.created" else not is_server or failpoint not in FILE_FAILPOINTS
    assert killed.returncode == (-signal.SIGKILL if is_reached else 0), killed.stderr
    with open_docs(**place.environ) as library:
        for query in ("京都の寺", "deer of Nara"):
            assert library.search(query, refresh=False) is not None, "a search answers from what there is"
        library.reindex()
        library.index.sync("documents")
        assert_in_step(library, place)


def command(*arguments: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bunko", *arguments],
        env={
            **os.environ,
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_DATA_HOME": str(tmp_path / "data"),
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_processes_that_sync_at_once_do_no_harm(docs: Path, open_docs: Opener, place: Place, tmp_path: Path) -> None:
    fill(docs, 40)
    with open_docs() as library:
        library.reindex()  # without Chroma
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), **place.environ}
    arguments = [sys.executable, "-m", "bunko", "index", "sync", "--docs-dir", str(docs)]
    processes = [subprocess.Popen(arguments, env=environ, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with open_docs(**place.environ) as library:
        assert_in_step(library, place)


def test_hits_of_chunks_that_are_gone_are_dropped_and_made_up_for(docs: Path, open_docs: Opener, place: Place) -> None:
    fill(docs)
    with open_docs(**place.environ) as library:
        library.reindex()
        expected = [hit.uri for hit in library.search("京都の寺", mode="semantic", top_k=5).hits]
        [tool] = library.tools()
        [query] = library.embedder_of(tool).embed(["京都の寺"], query=True)  # type: ignore[union-attr]
        client, collection = place.collection(library)
        ghosts = [
            ChunkRecord(f"ghost{number}", np.array(query), {"document_id": 10**6, "chunk_id": 10**6 + number}, "gone")
            for number in range(30)
        ]
        client.upsert(collection, ghosts)
        client.close()
    with open_docs(**place.environ) as library:
        answer = library.search("京都の寺", mode="semantic", top_k=5)
        assert ([hit.uri for hit in answer.hits], answer.notices) == (expected, [])
        findings = [finding.message for finding in library.maintenance.diagnose() if finding.state == "warning"]
        assert any("has other chunks than the library; it was rebuilt" in message for message in findings)
        assert_in_step(library, place)


def test_a_collection_of_another_program_is_left_alone(docs: Path, open_docs: Opener, place: Place) -> None:
    fill(docs, 3)
    with open_docs(**place.environ) as library:
        library.reindex()
        client, collection = place.collection(library)
        client.drop(collection.name)
        made = client.create(collection.name, {"made": "by hand"}, collection.hnsw)
        client.upsert(made, [ChunkRecord("mine", np.ones(3, np.float32), {"a": 1}, "my text")])
    put(docs, "more.md", "# More\nmore about the garden")
    with open_docs(**place.environ) as library:
        report = library.reindex()
        assert f"The collection '{collection.name}' in Chroma" in report.notices[0]
        assert "was made by another program. Choose another name with chromadb.collection_name" in report.notices[0]
        with pytest.raises(IndexFailure):
            library.index.rebuild("documents")
        assert library.search("more about the garden", mode="semantic").hits[0].uri == "more.md"
    again = client.find(collection.name)
    assert again is not None
    assert (again.metadata, client.count(again)) == ({"made": "by hand"}, 1)
    client.close()


def test_a_changed_search_width_applies_at_once_and_a_changed_graph_by_rebuild(
    docs: Path, open_docs: Opener, place: Place
) -> None:
    fill(docs, 3)
    with open_docs(**place.environ) as library:
        library.reindex()
    changed = {"BUNKO_CHROMADB_HNSW_SEARCH_EF": "150", "BUNKO_CHROMADB_HNSW_M": "24"}
    with open_docs(**place.environ, **changed) as library:
        notice = (
            "documents was built with a different chromadb.hnsw_M and keeps it. To use the current settings:"
            f" bunko index rebuild -n documents --docs-dir {docs}"
        )
        assert library.search("京都の寺").notices == [notice]
        assert library.search("京都の寺", mode="bm25").notices == []
        assert library.reindex().notices == [notice]
        item = library.index.sync("documents")
        assert item.state.hint == notice
        assert place.collection(library)[1].hnsw["ef_search"] == 150
        assert place.collection(library)[1].hnsw["max_neighbors"] == 16
        assert library.index.rebuild("documents").state.hint == ""
        assert library.search("京都の寺").notices == library.reindex().notices == []
        assert place.collection(library)[1].hnsw["max_neighbors"] == 24
        assert_in_step(library, place)


def test_a_server_that_dies_and_comes_back_is_brought_up_to_date(docs: Path, open_docs: Opener, server: Server) -> None:
    fill(docs)
    place = server_place(server)
    url = place.environ["CHROMADB_URL"]
    with open_docs(**place.environ) as library:
        library.reindex()
        server.kill()
        put(docs, "deer.md", "# Deer\nThe deer of Nara eat crackers")
        answer = library.search("deer eat crackers", mode="semantic")
        assert answer.hits[0].uri == "deer.md"
        assert any(f"Chroma at {url} is away" in notice for notice in answer.notices)
        server.start()
        library.index.sync("documents")
        assert library.search("deer eat crackers", mode="semantic").notices == []
        assert_in_step(library, place)


def test_a_tenant_and_database_of_ones_own_are_used(docs: Path, open_docs: Opener, shared_server: Server) -> None:
    url = f"http://127.0.0.1:{shared_server.port}"
    fill(docs, 2)
    names = {"CHROMADB_TENANT": "team", "CHROMADB_DATABASE": "shelf"}
    with open_docs(BUNKO_INDEX_KIND="chroma", CHROMADB_URL=url, **names) as library:
        assert "tenant 'team', database 'shelf'" in library.reindex().notices[0]
    for path, body in (("tenants", {"name": "team"}), ("tenants/team/databases", {"name": "shelf"})):
        post(f"{url}/api/v2/{path}", body)
    with open_docs(BUNKO_INDEX_KIND="chroma", CHROMADB_URL=url, **names) as library:
        library.index.sync("documents")
        assert_in_step(library, server_place(shared_server, tenant="team", database="shelf"))


def post(url: str, body: dict[str, Any]) -> None:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        assert response.status == 200


def test_damaged_files_are_one_sentence_and_made_anew_by_rebuild(docs: Path, open_docs: Opener) -> None:
    fill(docs)
    with open_docs(BUNKO_INDEX_KIND="chroma") as library:
        library.reindex()
    folder = files_folder(docs)
    (folder / "chroma.sqlite3").write_bytes(b"not a database" * 1000)
    with open_docs(BUNKO_INDEX_KIND="chroma") as library:
        answer = library.search("京都の寺", mode="semantic")
        assert answer.hits
        [notice] = answer.notices
        assert notice.startswith(f"Chroma cannot use its files in {folder}: ")
        with pytest.raises(IndexFailure, match="Chroma cannot use its files"):
            library.index.sync("documents")


def test_a_folder_of_ones_own_is_used(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    fill(docs, 2)
    with open_docs(BUNKO_INDEX_KIND="chroma", CHROMADB_PERSIST_DIR=str(tmp_path / "chroma_db")) as library:
        library.reindex()
        assert library.search("京都の寺", mode="semantic").notices == []
    assert (tmp_path / "chroma_db" / "chroma.sqlite3").exists()
    assert not (docs.parent / "data").exists()
