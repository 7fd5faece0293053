"""An engine that is away: it is waited for once, and then left alone for a while."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.indexes import replica
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from tests.library.test_library import put

TOOLS = ("one", "two", "three")


class Deaf(socketserver.ThreadingTCPServer):
    """A server that hangs up after each request, and remembers how many there were."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests = 0
        super().__init__(("127.0.0.1", 0), _HangUp)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _HangUp(socketserver.StreamRequestHandler):
    server: Deaf

    def handle(self) -> None:
        if self.rfile.readline():
            self.server.requests += 1


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    with Deaf() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def library(deaf: Deaf, docs: Path, tmp_path: Path) -> Iterator[Library]:
    """Open a library with three tools, whose vectors are to be copied to that server."""
    put(docs, "a.md", "京都の寺を巡る旅の記録")
    environ = {"BUNKO_INDEX_KIND": "chroma", "BUNKO_CHROMADB_URL": deaf.url, "BUNKO_SEARCH_FRESHNESS_SECONDS": "60"}
    with open_library(paths_for_folder(tmp_path / "library"), environ=environ) as library:
        for name in TOOLS:
            library.add(docs, name=name)
        yield library


def test_an_import_of_many_tools_waits_for_it_once_and_the_next_one_tries_again(library: Library, deaf: Deaf) -> None:
    library.import_("one")
    assert (once := deaf.requests)
    (notice,) = library.import_(*TOOLS).notices
    assert notice.startswith("The vectors were not copied to Chroma")
    assert deaf.requests == 2 * once
    assert [item.state.problem for item in library.index.status()] == [library.index.status()[0].state.problem] * 3
    assert deaf.requests == 2 * once, "its state is known"


def test_searches_leave_it_alone_again_after_they_have_tried_again(
    library: Library, deaf: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.import_(*TOOLS)
    monkeypatch.setattr(replica, "PAUSE_SECONDS", 0.0)
    library.import_(*TOOLS)
    tried = deaf.requests
    monkeypatch.setattr(replica, "PAUSE_SECONDS", 60.0)
    assert "so the library's own vectors were searched" in library.search("京都の寺").notices[0]
    assert deaf.requests > tried, "the pause is over"
    tried = deaf.requests
    assert "so the library's own vectors were searched" in library.search("旅の記録").notices[0]
    assert deaf.requests == tried
