"""Events over HTTP: progress of jobs and changes of documents, for whoever may know of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bunko.interfaces.api import events
from bunko.interfaces.http import authorization
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.access import LibraryAccess
from bunko.library.library import Library
from bunko.types.access import Caller, Rights
from tests.http.server import TOKEN, Site, serve_app
from tests.http_api.streams import EventStream, open_events
from tests.mcp.mcp_client import add_tool


@pytest.fixture
def served(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(authorization, "LISTEN_SECONDS", 0.05)
    add_tool(library, "notes", "Notes.", "蜜柑を買った。")
    add_tool(library, "secret", "Plans.", "葡萄の計画。")
    library.reindex()
    with serve_app(ToolRegistry(lambda: library), parts={"api"}) as port:
        yield Site(port, library, None)  # type: ignore[arg-type]


def token_of(site: Site, name: str, *, read: tuple[str, ...] = (), write: tuple[str, ...] = ()) -> str:
    return site.library.tokens.add(name, site.library.tokens.rights(read, write))


def test_a_stream_begins_with_the_state_and_follows_an_import(served: Site) -> None:
    with open_events(served.port, TOKEN) as stream:
        assert stream.response.headers["Content-Type"].startswith("text/event-stream")
        _, first = stream.next("generation")
        assert first == {"generation": served.library.store.generation()}
        started = json.loads(served.call("/api/v1/tools/notes/import", method="POST").text)["job"]
        states: list[str] = []
        while not states or states[-1] == "running":
            _, job = stream.next("job")
            assert job["id"] == started["id"]
            states.append(job["status"])
        assert states[-1] == "done"
        assert job["result"]["unchanged"] == 1


def test_a_new_document_and_a_disabled_tool_are_changes(served: Site) -> None:
    with open_events(served.port, TOKEN) as stream:
        _, first = stream.next("generation")
        add_tool(served.library, "more", "More.", "柿を買った。")
        served.library.import_("more")
        _, second = stream.next("generation")
        while second["generation"] != served.library.store.generation():
            _, second = stream.next("generation")
        assert second != first
        content_type = {"Content-Type": "application/json"}
        served.call("/api/v1/tools/more", method="PATCH", body='{"active": false}', **content_type)
        stream.next("generation")


def test_nothing_is_told_of_hidden_tools_and_the_jobs_of_others(served: Site) -> None:
    limited = token_of(served, "limited", read=("notes",))
    access = LibraryAccess(served.library, Caller("limited", "http", Rights(("notes",))))
    sources = served.library.paths.folder.parent / "sources"
    with open_events(served.port, limited) as stream, open_events(served.port, TOKEN) as watcher:
        assert stream.next("generation", "job") == ("generation", {"generation": access.generation()})
        (sources / "secret" / "two.md").write_text("# 二\n\n葡萄。", "utf-8")
        import_and_wait(served, "secret", watcher)
        (sources / "notes" / "two.md").write_text("# 二\n\n蜜柑。", "utf-8")
        import_and_wait(served, "notes", watcher)
        # The next event is about the change that may be known: there was none about the other.
        assert stream.next("generation", "job") == ("generation", {"generation": access.generation()})


def import_and_wait(served: Site, tool: str, watcher: EventStream) -> None:
    job = json.loads(served.call(f"/api/v1/tools/{tool}/import", method="POST").text)["job"]["id"]
    while True:
        _, told = watcher.next("job")
        if told["id"] == job and told["status"] == "done":
            return


def test_a_silent_stream_lives_and_ends_with_its_token(served: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    token = token_of(served, "reader", read=("notes",))
    with open_events(served.port, token) as stream:
        assert stream.next("comment") == ("comment", None)
        served.library.tokens.revoke("reader")
        while stream.response.readline():
            pass


def test_too_many_streams_are_refused(served: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS_OF_CALLER", 2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(open_events(served.port, TOKEN)).next("generation")
        refused = stack.enter_context(open_events(served.port, TOKEN)).response
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    # Once a client has gone, its place is free.
    for _ in range(200):
        with open_events(served.port, TOKEN) as stream:
            if stream.response.status == 200:
                stream.next("generation")
                return
    raise AssertionError("the places of clients that left are not free")
