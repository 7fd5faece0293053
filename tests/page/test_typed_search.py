"""Searches while somebody types: those of earlier letters do not hold up the newest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from bunko.interfaces.page.typed_search import TypedSearches
from tests.http.server import serve_site


class Tab:
    """A browser that waits for an answer until it is closed."""

    def __init__(self, session: str = "one") -> None:
        self._closed = asyncio.Event()
        cookie = f"bunko_session_80={session}".encode()
        scope = {"type": "http", "headers": [(b"host", b"127.0.0.1:80"), (b"cookie", cookie)]}
        self.request = Request(scope, self._receive)
        self._messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    def close(self) -> None:
        self._closed.set()

    async def _receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await self._closed.wait()
        return {"type": "http.disconnect"}


def test_a_search_that_nobody_waits_for_is_never_run() -> None:
    async def type_letters() -> tuple[list[str], list[int]]:
        searches, ran, statuses, gate = TypedSearches(), list[str](), list[int](), asyncio.Event()

        async def search(tab: Tab, letters: str) -> None:
            async def answer() -> Response:
                ran.append(letters)
                await gate.wait()
                return Response()

            statuses.append((await searches.run(tab.request, answer)).status_code)

        async with anyio.create_task_group() as group:
            tabs = [Tab() for _ in "retries"]
            for count, tab in enumerate(tabs, 1):
                group.start_soon(search, tab, "retries"[:count])
                await anyio.wait_all_tasks_blocked()
            for tab in tabs[:-1]:
                tab.close()
            await anyio.wait_all_tasks_blocked()
            gate.set()
        return ran, statuses

    ran, statuses = anyio.run(type_letters)
    assert ran == ["r", "re", "retries"]
    assert statuses == [499] * 4 + [200] * 3


def test_the_searches_of_one_browser_do_not_hold_up_those_of_another() -> None:
    async def search_in_two_browsers() -> list[str]:
        searches, ran, gate = TypedSearches(), list[str](), asyncio.Event()

        async def search(session: str) -> None:
            async def answer() -> Response:
                ran.append(session)
                await gate.wait()
                return Response()

            await searches.run(Tab(session).request, answer)

        async with anyio.create_task_group() as group:
            for session in ("one", "one", "one", "two"):
                group.start_soon(search, session)
            await anyio.wait_all_tasks_blocked()
            before = list(ran)
            gate.set()
        return before

    assert anyio.run(search_in_two_browsers) == ["one", "one", "two"]


def test_a_typed_search_does_not_look_for_changed_files_and_the_search_after_it_does(
    docs: Path, tmp_path: Path
) -> None:
    (docs / "first.md").write_text("# Telescope\n\nPolish the mirror.\n", "utf-8")
    with serve_site(tmp_path, documents=docs, environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}) as site:
        (docs / "second.md").write_text("# Mirror\n\nThe mirror of a telescope is heavy.\n", "utf-8")
        assert "second.md" not in site.visit("/?q=mirror&part=results&typed=true").text
        assert "second.md" in site.visit("/?q=mirror&part=results").text
        assert "typed" not in site.visit("/?q=mirror&part=results&typed=true").text
