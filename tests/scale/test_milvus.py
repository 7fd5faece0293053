"""A library that is searched in Milvus: in a Milvus Lite file, and on a real server over TCP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bunko import indexes, stores
from bunko.errors import IndexFailure
from bunko.indexes.milvus.cards import cards_of
from bunko.indexes.milvus.copies import ToolCopies
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.milvus.statistics import unpack_moments
from bunko.indexes.milvus.writer import StatisticsAccumulator
from bunko.indexes.options import EngineOptions, MilvusOptions
from bunko.library.library import Library
from bunko.types import Tool
from tests.conftest import Opener
from tests.contracts.documents import embed_five
from tests.scale.engines import Server, milvus_server, require_milvus

pytestmark = pytest.mark.scale

FAILPOINTS = (
    "index.deleted", "index.announced", "index.collection", "index.created", "index.written", "index.counted",
    "index.removed", "index.stamped", "store.committed",
)  # fmt: skip
TOPICS = ("京都の寺と庭", "サーバーの移行", "the sorry dog", "tomatoes in the garden", "予算の会議", "鹿せんべい")


@pytest.fixture(autouse=True)
def _milvus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_milvus()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with milvus_server(tmp_path_factory.mktemp("milvus")) as started:
        yield started


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with milvus_server(tmp_path / "server") as started:
        yield started


Environ = dict[str, str]


def settings_of(uri: str) -> Environ:
    return {"BUNKO_INDEX_KIND": "milvus", "BUNKO_MILVUS_URI": uri, "BUNKO_MILVUS_TIMEOUT": "60"}


@pytest.fixture(params=["file", "server"])
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> Environ:
    """Give the settings of a library in a Milvus Lite file, or on a server."""
    if request.param == "file":
        return settings_of(str(tmp_path / "milvus.db"))
    return settings_of(f"http://127.0.0.1:{request.getfixturevalue('shared_server').port}")


def put(docs: Path, name: str, text: str) -> None:
    (docs / name).write_text(text, encoding="utf-8")


def fill(docs: Path, count: int = 8) -> None:
    for number in range(count):
        put(docs, f"note{number}.md", f"# Note {number}\n{TOPICS[number % len(TOPICS)]}、その{number}番目の話")


def raw_ids(library: Library, environ: Environ, use: Callable[[MilvusServer, str], object] | None = None) -> set[int]:
    """Return the ids of the chunks in Milvus, after doing something to their collection if that is asked."""
    [tool] = library.tools()
    server = MilvusServer(MilvusOptions(uri=environ["BUNKO_MILVUS_URI"], timeout=60.0))
    name = f"bunko_{library.store.id[:12]}_cards_{library.store.stats.dimension(tool.id)}"
    if use is not None:
        use(server, name)
    ids = {row["id"] for row in server.query(name, f"tool == {tool.id}", ["id"])}
    server.close()
    return ids


def copy_id(library: Library, environ: Environ) -> str:
    server = MilvusServer(MilvusOptions(uri=environ["BUNKO_MILVUS_URI"], timeout=60.0))
    copy = ToolCopies(server, library.store, "bunko").find(library.tools()[0].id)
    server.close()
    assert copy is not None
    return copy.stamp.copy


def assert_in_step(library: Library, environ: Environ) -> None:
    """The copy has exactly the chunks of the library, and the statistics are those of counting from scratch."""
    [tool] = library.tools()
    store = library.store
    chunks = list(store.changes.chunks_since(tool.id, 0))
    assert raw_ids(library, environ) == {chunk.chunk_id for chunk in chunks}
    accumulator = StatisticsAccumulator()
    accumulator.add(cards_of(chunks, tool.id, 0), store.stats.dimension(tool.id))
    copy = copy_id(library, environ)
    counted, stored = accumulator.statistics(0), store.index_statistics.get(tool.id, copy)
    assert stored is not None
    assert (stored.chunks, stored.terms) == (counted.chunks, counted.terms)
    expected = dict(accumulator.changes())
    assert store.index_statistics.frequencies(tool.id, copy, list(expected)) == expected
    first, second = unpack_moments(stored.vectors), unpack_moments(counted.vectors)
    assert first is not None
    assert second is not None
    assert first.count == second.count
    assert np.allclose(first.products / first.count, second.products / second.count, atol=1e-5)
    [item] = library.index.status()
    assert (item.state.pending, item.state.problem, item.state.rows) == (0, "", len(chunks))
    for mode in ("bm25", "semantic", "hybrid"):
        answer = library.search("京都の寺", mode=mode, refresh=False)
        assert answer.hits
        assert answer.notices == []


def command(*arguments: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    folders = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_DATA_HOME": str(tmp_path / "data")}
    return subprocess.run(
        [sys.executable, "-m", "bunko", *arguments],
        env={**os.environ, **folders, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_changed_removed_and_moved_documents_are_followed(docs: Path, open_docs: Opener, environ: Environ) -> None:
    fill(docs)
    with open_docs(**environ) as library:
        library.reindex()
        assert_in_step(library, environ)
        put(docs, "note3.md", "# Deer\nThe deer of Nara eat crackers")
        (docs / "note4.md").unlink()
        (docs / "note5.md").rename(docs / "moved.md")
        library.reindex()
        assert_in_step(library, environ)
        assert library.search("deer crackers").hits[0].uri == "note3.md"
        library.index.rebuild("documents")
        assert_in_step(library, environ)
        assert library.maintenance.diagnose()[-1].state == "ok"


@pytest.mark.parametrize("when", ["first", "later"])
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_crash_anywhere_is_healed_by_the_next_sync(
    docs: Path, open_docs: Opener, failpoint: str, when: str, tmp_path: Path
) -> None:
    environ = settings_of(str(tmp_path / "milvus.db"))
    fill(docs)
    if when == "later":
        with open_docs(**environ) as library:
            library.reindex()
        put(docs, "note2.md", "# Deer\nThe deer of Nara")
        put(docs, "new.md", "# New\nA note about crackers")
        (docs / "note7.md").unlink()
    killed = command("reindex", "--docs-dir", str(docs), tmp_path=tmp_path, BUNKO_FAILPOINT=failpoint, **environ)
    only_first = {"index.deleted", "index.collection", "index.created"}
    is_reached = when == "first" or failpoint not in only_first
    assert killed.returncode == (-signal.SIGKILL if is_reached else 0), killed.stderr
    with open_docs(**environ) as library:
        if failpoint != "store.committed":
            assert library.search("京都の寺と庭", refresh=False).hits, "a search answers from what there is"
        # What was written before the crash may be removed before the copy is mended.
        (docs / "new.md").unlink(missing_ok=True)
        put(docs, "note1.md", "# Other\nsomething else about deer")
        library.reindex()
        assert_in_step(library, environ)


def test_processes_that_sync_at_once_do_no_harm(
    docs: Path, open_docs: Opener, shared_server: Server, tmp_path: Path
) -> None:
    environ = settings_of(f"http://127.0.0.1:{shared_server.port}")
    fill(docs, 20)
    with open_docs() as library:
        library.reindex()  # into the embedded index
    arguments = [sys.executable, "-m", "bunko", "index", "sync", "--docs-dir", str(docs)]
    whole = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), **environ}
    processes = [subprocess.Popen(arguments, env=whole, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with open_docs(**environ) as library:
        assert_in_step(library, environ)


def test_a_file_that_another_process_has_open_is_one_sentence(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    environ = settings_of(str(tmp_path / "milvus.db"))
    fill(docs, 3)
    with open_docs(**environ) as library:
        library.reindex()
        other = command("search", "京都", "--docs-dir", str(docs), tmp_path=tmp_path, **environ)
        assert other.returncode == 9
        assert "cannot be opened" in other.stderr
        assert "One process can open it at a time; for several, run a server" in other.stderr
        assert "Traceback" not in other.stderr
    after = command("search", "京都", "--docs-dir", str(docs), tmp_path=tmp_path, **environ)
    assert (after.returncode, "note0.md" in after.stdout) == (0, True)


def test_hits_of_chunks_that_are_gone_are_dropped_and_made_up_for(
    docs: Path, open_docs: Opener, environ: Environ
) -> None:
    fill(docs)
    with open_docs(**environ, BUNKO_MILVUS_CANDIDATES="50") as library:
        library.reindex()
        expected = [hit.uri for hit in library.search("京都の寺", mode="semantic", top_k=5).hits]
        [tool] = library.tools()
        [vector] = library.embedder_of(tool).embed(["京都の寺"], query=True)  # type: ignore[union-attr]
        library.close()

    def add_ghosts(server: MilvusServer, name: str) -> None:
        row = {"tool": tool.id, "document_id": 10**6, "path": "", "date": 0, "tags": [], "card": "", "more": []}
        # Not all the same: a graph would have no way from them to the others.
        noise = np.random.default_rng(1).normal(scale=0.02, size=(80, len(vector)))
        rows = [row | {"sparse": {5: 1.0}, "dense": (vector + offset).tolist()} for offset in noise]
        server.upsert(name, [{"id": 10**6 + number, **row} for number, row in enumerate(rows)])

    with open_docs() as library:  # whose own index leaves Milvus alone
        assert len(raw_ids(library, environ, add_ghosts)) > 80
    with open_docs(**environ, BUNKO_MILVUS_CANDIDATES="50") as library:
        answer = library.search("京都の寺", mode="semantic", top_k=5)
        assert ([hit.uri for hit in answer.hits], answer.notices) == (expected, [])
        warnings = [finding.message for finding in library.maintenance.diagnose() if finding.state == "warning"]
        assert any(message.startswith("The copy in Milvus has") for message in warnings)
        library.close()
    with open_docs(**environ) as library:
        assert_in_step(library, environ)


def test_a_copy_that_another_process_made_anew_is_followed(docs: Path, open_docs: Opener, environ: Environ) -> None:
    fill(docs)
    with open_docs(**environ) as server, open_docs(**environ) as other:
        server.reindex()
        expected = [(hit.uri, hit.score) for hit in other.search("予算の会議", mode="bm25").hits]
        assert server.search("京都の寺", mode="bm25").hits
        other.index.rebuild("documents")
        assert [(hit.uri, hit.score) for hit in server.search("予算の会議", mode="bm25").hits] == expected


def test_a_collection_of_another_program_is_left_alone(docs: Path, open_docs: Opener, environ: Environ) -> None:
    fill(docs, 3)
    with open_docs() as library:
        library.reindex()
        name = f"bunko_{library.store.id[:12]}_cards_256"
    server = MilvusServer(MilvusOptions(uri=environ["BUNKO_MILVUS_URI"], timeout=60.0))
    server._connect().create_collection(name, dimension=256)
    with open_docs(**environ) as library:
        with pytest.raises(IndexFailure, match=f"The collection '{name}' in Milvus at .* was made by something else"):
            library.index.sync("documents")
        with pytest.raises(IndexFailure):
            library.index.rebuild("documents")
        answer = library.search("京都の寺")
        assert answer.hits, "the local index still answers"
    assert server.collections().count(name) == 1
    server.drop(name)
    server.close()


def test_vectors_of_another_dimension_get_a_collection_of_their_own(environ: Environ, tmp_path: Path) -> None:
    store = stores.build("sqlite", tmp_path / "library.db")
    tool = store.tools.put(Tool("documents"))
    options = EngineOptions(milvus=MilvusOptions(uri=environ["BUNKO_MILVUS_URI"], timeout=60.0))
    index = indexes.build("milvus", store, tmp_path / "index", options)
    for size in (32, 16):
        vectors = embed_five(store, tool, size)
        index.sync(tool.id)
        assert (index.state(tool.id).rows, index.state(tool.id).is_current) == (5, True)
        with store.read_transaction():
            view = index.view([tool.id])
        for vector in vectors:
            assert view.nearest(vector, 1).ranking.scores[0] == pytest.approx(1)
    index.close()
    server = MilvusServer(options.milvus)
    assert [name for name in server.collections() if store.id[:12] in name] == [f"bunko_{store.id[:12]}_cards_16"]
    server.close()
    store.close()


def test_a_server_that_dies_costs_a_notice_or_one_sentence_and_is_brought_up_to_date(
    docs: Path, open_docs: Opener, server: Server
) -> None:
    environ = settings_of(f"http://127.0.0.1:{server.port}") | {
        "BUNKO_MILVUS_TIMEOUT": "5",
        "BUNKO_MILVUS_RETRIES": "0",
    }
    environ["BUNKO_MILVUS_WRITE_TIMEOUT"] = "20"
    fill(docs)
    with open_docs(**environ) as library:
        library.reindex()
        server.kill()
        put(docs, "deer.md", "# Deer\nThe deer of Nara eat crackers")
        report = library.reindex()
        assert report.added == 1
        assert any("is away" in notice for notice in report.notices)
        with pytest.raises(IndexFailure, match=f"Milvus at http://127.0.0.1:{server.port} is away"):
            library.search("deer eat crackers", refresh=False)
    with open_docs() as library:
        library.index.sync("documents")  # the embedded index writes its segments
    with open_docs(**environ) as library:
        answer = library.search("deer eat crackers", refresh=False)
        assert answer.hits[0].uri == "deer.md"
        assert "so the local index was searched" in answer.notices[0]
        server.start()
        library.index.sync("documents")
        assert library.search("deer eat crackers", refresh=False).notices == []
        assert_in_step(library, environ)
