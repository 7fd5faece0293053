"""What goes wrong with Milvus is one clear sentence, and never changes the library."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed here: make test-scale installs it")

import grpc
from pymilvus.grpc_gen import common_pb2, milvus_pb2

from bunko.errors import IndexFailure
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.options import MilvusOptions
from bunko.library.library import Library
from tests.conftest import Opener
from tests.scale.engines import Server, milvus_server, require_milvus
from tests.scale.milvus_proxy import Answer, MilvusProxy, milvus_proxy, refuse

pytestmark = pytest.mark.scale

SECRET = "root:right-horse-battery"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with milvus_server(tmp_path_factory.mktemp("milvus")) as started:
        yield started


@pytest.fixture
def proxy(server: Server) -> Iterator[MilvusProxy]:
    with milvus_proxy(server.port) as started:
        yield started


def settings_of(uri: str) -> dict[str, str]:
    return {
        "BUNKO_INDEX_KIND": "milvus",
        "BUNKO_MILVUS_URI": uri,
        "BUNKO_MILVUS_TOKEN": SECRET,
        "BUNKO_MILVUS_TIMEOUT": "3",
        "BUNKO_MILVUS_WRITE_TIMEOUT": "3",
        "BUNKO_MILVUS_RETRIES": "0",
    }


@pytest.fixture
def notes(docs: Path) -> Path:
    for number in range(6):
        (docs / f"{number}.md").write_text(f"# Note {number}\n京都の寺の庭、その{number}番目の話", encoding="utf-8")
    return docs


def version(number: str) -> Answer:
    reply = milvus_pb2.GetVersionResponse(version=number)
    return lambda _request, _context: bytes(reply.SerializeToString())


def write_failure(code: int, reason: str) -> Answer:
    reply = milvus_pb2.MutationResult(status=common_pb2.Status(code=code, error_code=1, reason=reason))
    return lambda _request, _context: bytes(reply.SerializeToString())


def contents(library: Library) -> list[tuple[int, str]]:
    [tool] = library.tools()
    return [(chunk.chunk_id, chunk.text) for chunk in library.store.changes.chunks_since(tool.id, 0)]


def check_failure(library: Library, *parts: str) -> None:
    """A sync is one sentence that says what to do, and the library stays as it is."""
    before = contents(library)
    with pytest.raises(IndexFailure) as caught:
        library.index.sync("documents")
    for part in parts:
        assert part in caught.value.message
    assert not caught.value.message.endswith(".")
    assert "\n" not in caught.value.message
    assert "right-horse" not in str(caught.value)
    assert caught.value.hint
    assert contents(library) == before
    assert library.store.check() == ""


REFUSALS = {
    "wrong password": (
        "Connect",
        refuse(grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check username and password are correct"),
        "rejected the token: auth check failure",
    ),
    "wrong token": (
        "ShowCollections",
        refuse(grpc.StatusCode.UNAUTHENTICATED, f"auth check failure, api key {SECRET} is not correct"),
        "rejected the token",
    ),
    "an old server": ("GetVersion", version("v2.3.22"), "has the version v2.3.22, which is older than 2.5"),
    "a server without versions": (
        "GetVersion",
        refuse(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetVersion"),
        "is not a Milvus server that bunko can use: unknown method GetVersion",
    ),
    "a server with other methods": (
        "Upsert",
        refuse(grpc.StatusCode.UNIMPLEMENTED, "unknown method Upsert"),
        "is not a Milvus server that bunko can use: unknown method Upsert",
    ),
    "a disk quota": (
        "Upsert",
        write_failure(9, "quota exceeded[reason=disk quota exceeded, please allocate more resources]"),
        "has no disk space left",
    ),
    "a full disk": ("Upsert", write_failure(65535, "write /data: no space left on device"), "has no disk space left"),
    "a rate limit": ("Upsert", write_failure(8, "request is rejected by RateLimiter"), "rejected by RateLimiter"),
    "a large message": (
        "Upsert",
        refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "grpc: received message larger than max"),
        "failed: grpc: received message larger than max",
    ),
    "a busy server": ("Upsert", refuse(grpc.StatusCode.UNAVAILABLE, "server is overloaded"), "server is overloaded"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_one_sentence_and_the_next_sync_mends_what_is_missing(
    notes: Path, open_docs: Opener, proxy: MilvusProxy, name: str
) -> None:
    method, answer, message = REFUSALS[name]
    with open_docs(**settings_of(proxy.url)) as library:
        proxy.answers[method] = answer
        report = library.reindex()
        assert report.added == 6, "the documents are imported"
        assert any(message in notice for notice in report.notices)
        check_failure(library, message)
        proxy.answers.clear()
        library.index.sync("documents")
        assert library.index.status()[0].state.is_current
        assert len(library.search("京都の寺", refresh=False).hits) >= 5


@pytest.mark.parametrize("method", ["Search", "Query", "ShowCollections", "DescribeCollection"])
@pytest.mark.parametrize("how", ["never answers", "ends"])
def test_a_search_that_milvus_does_not_answer_ends_with_a_sentence_or_the_local_index(
    notes: Path, open_docs: Opener, proxy: MilvusProxy, method: str, how: str
) -> None:
    with open_docs() as library:
        library.reindex()  # whose segments stay
    with open_docs(**settings_of(proxy.url)) as library:
        library.index.sync("documents")
    ends = refuse(grpc.StatusCode.UNAVAILABLE, "Socket closed")
    proxy.answers[method] = proxy.hang if how == "never answers" else ends
    with open_docs(**settings_of(proxy.url)) as library:
        for _ in range(2):
            answer = library.search("京都の寺", refresh=False)
            assert answer.hits
            [notice] = answer.notices
            assert notice.startswith(f"Milvus at {proxy.url} is away")
            assert "so the local index was searched" in notice


@pytest.mark.parametrize("method", ["Upsert", "CreateCollection", "Delete"])
def test_a_server_that_dies_during_a_sync_is_mended_by_the_next_one(
    notes: Path, open_docs: Opener, tmp_path: Path, method: str
) -> None:
    with (
        milvus_server(tmp_path / "server") as server,
        milvus_proxy(server.port) as proxy,
        open_docs(**settings_of(proxy.url)) as library,
    ):
        if method != "CreateCollection":
            library.reindex()
        (notes / "1.md").unlink()
        (notes / "2.md").write_text("# Other\n奈良の鹿せんべい", encoding="utf-8")

        def die(_request: bytes, _context: grpc.ServicerContext) -> bytes | None:
            server.kill()
            return None

        proxy.answers[method] = die
        library.reindex()
        check_failure(library, "is away")
        proxy.answers.clear()
        server.start()
        library.index.sync("documents")
        [item] = library.index.status()
        assert (item.state.is_current, item.state.rows) == (True, len(contents(library)))
        assert library.maintenance.diagnose()[-1].state == "ok"
        assert library.search("奈良の鹿", refresh=False).hits[0].uri == "2.md"


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Give the address of a server that accepts connections and never says anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(50)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_never_answers_is_a_sentence(notes: Path, open_docs: Opener, silent_url: str) -> None:
    with open_docs(**settings_of(silent_url) | {"BUNKO_MILVUS_TIMEOUT": "1"}) as library:
        assert library.reindex().added == 6
        check_failure(library, f"Milvus at {silent_url} is away")
        with pytest.raises(IndexFailure, match="is away"):
            library.search("京都の寺", refresh=False)
        with pytest.raises(IndexFailure, match="is away"):
            library.index.drop("documents")


def test_threads_that_wait_for_one_connection_do_not_try_one_after_the_other(
    silent_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MilvusServer(MilvusOptions(uri=silent_url, timeout=1.0))
    attempts = []
    open_client = MilvusServer._open_client

    def count(self: MilvusServer) -> object:
        attempts.append(1)
        all_wait.wait()
        return open_client(self)

    monkeypatch.setattr(MilvusServer, "_open_client", count)
    all_wait, failures = threading.Event(), []

    def search() -> None:
        with pytest.raises(IndexFailure) as caught:
            server.collections()
        failures.append(caught.value.message)

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    # Every thread but one waits for the lock, or comes before the attempt of that one has failed.
    all_wait.set()
    for thread in threads:
        thread.join(60)
    assert len(failures) == 8
    assert all("is away" in message for message in failures)
    assert len(attempts) < 8


def test_a_full_disk_under_a_file_is_one_sentence_and_mended_later(
    notes: Path, open_docs: Opener, tmp_path: Path
) -> None:
    require_milvus()
    environ = settings_of(str(tmp_path / "milvus.db"))
    with open_docs() as library:
        library.reindex()
        before = contents(library)

    def limit_files() -> None:
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))

    arguments = [sys.executable, "-m", "bunko", "index", "sync", "--docs-dir", str(notes)]
    full = subprocess.run(
        arguments,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **environ},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
    )
    assert full.returncode == 9, full.stderr
    assert full.stderr.startswith("Error: ")
    assert "Traceback" not in full.stderr
    with open_docs(**environ) as library:
        assert contents(library) == before
        library.index.sync("documents")
        assert library.index.status()[0].state.is_current
        assert library.search("京都の寺", refresh=False).notices == []
