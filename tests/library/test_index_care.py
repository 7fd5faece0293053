"""`bunko index` shows, updates, rebuilds and drops an index; an index that is away costs quality, never the answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from bunko.errors import IndexFailure, SettingsError
from bunko.library.library import Library
from tests.conftest import Opener, Run
from tests.library.test_library import put
from tests.loopback import Loopback, Reply

TEXTS = {
    "server.md": "# サーバー\nサーバーの移行手順を書く",
    "kyoto.md": "# 京都\n京都の寺と庭を歩く",
    "dog.md": "# Dog\nThe dog is sorry about the tomatoes",
}


@pytest.fixture
def imported(docs: Path, open_docs: Opener) -> Path:
    """Import the texts with the embedded index."""
    for name, text in TEXTS.items():
        put(docs, name, text)
    with open_docs() as library:
        library.reindex()
    return docs


@contextmanager
def silent_server() -> Iterator[str]:
    """Accept connections, and never answer."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def closed_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def open_with_chroma(open_docs: Opener, url: str, **environ: str) -> Library:
    return open_docs(BUNKO_INDEX_KIND="chroma", CHROMADB_URL=url, BUNKO_CHROMADB_TIMEOUT="0.3", **environ)


def hits(library: Library, query: str) -> list[tuple[str, float]]:
    return [(hit.uri, round(hit.score, 6)) for hit in library.search(query, mode="hybrid").hits]


def test_status_names_the_index_and_says_that_it_is_up_to_date(imported: Path, run: Run) -> None:
    shown = run("index", "status", "--docs-dir", str(imported))
    assert shown.code == 0
    first, *tools = shown.out.splitlines()
    assert first.startswith("index: embedded, library at generation ")
    assert tools == ["documents: up to date"]
    assert "index embedded" in run("status", "--docs-dir", str(imported)).out.splitlines()[0]
    asked = run("index", "status", "--docs-dir", str(imported), "--json").json()
    assert asked["index"] == {"kind": "embedded", "location": ""}


def test_a_dropped_index_is_built_again_by_sync_and_by_rebuild(imported: Path, run: Run, open_docs: Opener) -> None:
    folder = imported / ".rag-index" / "index"
    flags = ("--docs-dir", str(imported))
    with open_docs() as library:
        expected = hits(library, "サーバーの移行")
    assert list(folder.glob("*.segment"))
    assert run("index", "drop", *flags).code == 2, "what is dropped must be named"
    assert run("index", "drop", "--all", *flags).code == 0
    assert not list(folder.glob("*.segment"))
    assert run("index", "sync", *flags).out == "documents: up to date\n"
    [built] = [path.read_bytes() for path in folder.glob("*.segment")]
    assert run("index", "sync", *flags).out == "documents: up to date\n"
    assert [path.read_bytes() for path in folder.glob("*.segment")] == [built], "there was nothing to do"
    assert run("index", "rebuild", "-n", "documents", *flags).out == "documents: up to date\n"
    assert [path.read_bytes() for path in folder.glob("*.segment")] != [built]
    with open_docs() as library:
        assert hits(library, "サーバーの移行") == expected


def test_an_unknown_tool_has_no_index(imported: Path, run: Run) -> None:
    for action in ("status", "sync", "rebuild", "drop"):
        assert run("index", action, "-n", "nothing", "--docs-dir", str(imported)).code == 6


@pytest.mark.parametrize("query", ["サーバーの移行", "the sorry dog", "庭"])
def test_a_chroma_server_that_is_away_costs_a_notice_and_no_hit(imported: Path, open_docs: Opener, query: str) -> None:
    with open_docs() as library:
        expected = hits(library, query)
    with open_with_chroma(open_docs, closed_url()) as library:
        answer = library.search(query, mode="hybrid")
        assert [(hit.uri, round(hit.score, 6)) for hit in answer.hits] == expected
        [notice] = answer.notices
        assert notice.startswith("Chroma at http://127.0.0.1:")
        assert "so the library's own vectors were searched. Start it with `chroma run" in notice
        assert library.search(query, mode="bm25").notices == [], "words do not need it"


def test_a_server_that_never_answers_is_asked_once_and_then_left_alone(imported: Path, open_docs: Opener) -> None:
    with silent_server() as url, open_with_chroma(open_docs, url) as library:
        for _ in range(3):
            answer = library.search("京都の寺", mode="semantic")
            assert answer.hits[0].uri == "kyoto.md"
            assert "no answer within 0.3 s" in answer.notices[0]


def test_an_import_ends_without_chroma_and_says_how_to_copy_later(
    imported: Path, open_docs: Opener, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(imported, "late.md", "# 奈良\n奈良の鹿と大仏")
    url = closed_url()
    with open_with_chroma(open_docs, url) as library:
        report = library.reindex()
        assert report.added == 1
        assert report.notices[0].startswith(f"The vectors were not copied to Chroma: Chroma at {url} is away")
        assert library.search("奈良の鹿", mode="semantic", refresh=False).hits[0].uri == "late.md"
        [state] = library.index.status()
        assert state.state.problem.startswith(f"Chroma at {url} is away")
        with pytest.raises(IndexFailure):
            library.index.sync("documents")
        findings = {finding.message: finding.state for finding in library.maintenance.diagnose()}
        assert any(message.startswith(f"Chroma at {url} is away") for message in findings)
    monkeypatch.setenv("BUNKO_INDEX_KIND", "chroma")
    monkeypatch.setenv("CHROMADB_URL", url)
    synced = run("index", "sync", "--docs-dir", str(imported))
    assert (synced.code, synced.out) == (9, "")
    assert synced.err.startswith(f"Error: Chroma at {url} is away")
    assert "Traceback" not in synced.err
    shown = run("status", "--docs-dir", str(imported)).out
    assert f"index chroma {url}" in shown
    assert "  index: not used: Chroma at" in shown


def test_a_tool_can_be_deleted_while_its_index_is_away(imported: Path, open_docs: Opener) -> None:
    with open_with_chroma(open_docs, closed_url()) as library:
        library.delete_tool("documents")
        assert library.tools() == []


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((200, {}, b"<html>hello</html>"), "is not a Chroma server of version 1.0 or newer"),
        ((404, {}, b'{"detail":"Not Found"}'), "is not a Chroma server of version 1.0 or newer"),
        ((200, {}, b'{"name": 1}'), "is not a Chroma server of version 1.0 or newer"),
        ((401, {}, b"no"), "rejected the token (401)"),
        (
            (410, {}, b'{"error":"Unimplemented","message":"The v2 API is gone. Please use v3"}'),
            "failed (410): The v2 API is gone. Please use v3",
        ),
        ((500, {}, b'{"error":"InternalError","message":"database or disk is full"}'), "database or disk is full"),
    ],
)
def test_whatever_answers_in_the_place_of_chroma_is_one_clear_sentence(
    imported: Path, open_docs: Opener, reply: Reply, message: str
) -> None:
    service = Loopback(8)
    service.listing = (reply[0], reply[2])
    service.always = lambda _: reply
    try:
        with open_with_chroma(open_docs, service.address, CHROMADB_TOKEN="very-secret") as library:
            answer = library.search("京都の寺", mode="semantic")
            assert answer.hits[0].uri == "kyoto.md"
            [notice] = answer.notices
            assert message in notice
            assert "very-secret" not in notice
    finally:
        service.close()


@pytest.mark.parametrize("url", ["ftp://example.com", "http://", "file:///etc"])
def test_an_address_that_is_no_server_is_a_settings_error(imported: Path, open_docs: Opener, url: str) -> None:
    with pytest.raises(SettingsError, match=r"chromadb\.url is not a URL"):
        open_with_chroma(open_docs, url)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")
def test_a_library_that_cannot_be_opened_leaves_no_file_open(imported: Path, open_docs: Opener) -> None:
    with pytest.raises(SettingsError):
        open_with_chroma(open_docs, "ftp://example.com")
    files = {file.resolve() for file in Path("/proc/self/fd").iterdir()}
    assert not [file for file in files if file.is_relative_to(imported)]


@pytest.mark.skipif(find_spec("chromadb") is not None, reason="chromadb is installed here")
def test_files_without_the_package_are_a_notice_that_names_the_extra(imported: Path, open_docs: Opener) -> None:
    put(imported, "late.md", "# 奈良\n奈良の鹿と大仏")
    with open_docs(BUNKO_INDEX_KIND="chroma") as library:
        report = library.reindex()
        assert 'pip install "bunko[chroma]"' in report.notices[0]
        assert library.search("奈良の鹿", mode="semantic").hits[0].uri == "late.md"


def test_a_library_in_memory_has_no_folder_for_chroma(open_docs: Opener) -> None:
    with pytest.raises(SettingsError, match="needs a library in files, or a server"):
        open_docs(BUNKO_INDEX_KIND="chroma", BUNKO_STORAGE_KIND="memory")
