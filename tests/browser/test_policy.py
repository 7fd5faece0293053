"""The Content-Security-Policy blocks what a mistake of ours would let through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.interfaces.http.guards import CONTENT_SECURITY_POLICY, ResponseHeaders
from tests.browser.opener import PageOpener
from tests.browser.served import serve_page
from tests.site import Site

# Each of these would set `injected`, or send a request to another server, if nothing stopped it.
INJECTIONS = {
    "a script": "<script>window.injected = 1</script>",
    "a script of another site": '<script src="OTHER/script.js"></script>',
    "a script in its address": '<script src="data:text/javascript,window.injected = 1"></script>',
    "a handler": '<img src="/none.png" onerror="window.injected = 1">',
    "a handler in a picture": '<svg onload="window.injected = 1"></svg>',
    "a link": '<a id="click" href="javascript:void(window.injected = 1)">click</a>',
    "a frame": '<iframe srcdoc="<script>parent.injected = 1</script>"></iframe>',
    "a style": "<style>body { --injected: 1 }</style>",
    "a style of an element": '<p id="styled" style="color: rgb(1, 2, 3)">text</p>',
    "a style sheet of another site": '<link rel="stylesheet" href="OTHER/style.css">',
    "a picture of another site": '<img src="OTHER/picture.png">',
    "an object": '<object data="data:text/html,<script>parent.injected = 1</script>"></object>',
    "another base": '<base href="OTHER/"><img src="relative.png">',
    "a form": '<form action="OTHER/"><button id="click">send</button></form>',
}


class _Injecting:
    """Answers /injected/N with the N-th of the injections, as a page with a mistake would."""

    def __init__(self, app: ASGIApp, other_address: str) -> None:
        self._app, self._other_address = app, other_address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/injected/"):
            markup = list(INJECTIONS.values())[int(scope["path"].rpartition("/")[2])]
            markup = markup.replace("OTHER", self._other_address)
            page = f"<!doctype html><title>injected</title><link rel=icon href=data:,><body>{markup}"
            await HTMLResponse(page)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def other_site() -> Iterator[Site]:
    """A web site that nothing should ask."""
    with Site({}) as site:
        yield site


@pytest.fixture(scope="module")
def mistaken_page(browser: Browser, library_folder: Path, other_site: Site) -> Iterator[PageOpener]:
    """A server with a page that shows markup of strangers."""
    with serve_page(library_folder, lambda app: ResponseHeaders(_Injecting(app, other_site.address))) as served:
        opener = PageOpener(browser, served)
        yield opener
        opener.close()


def test_the_policy_allows_nothing_inline_and_no_other_machine() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY
    assert "*" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("name", INJECTIONS)
def test_the_policy_blocks_what_slips_through(mistaken_page: PageOpener, other_site: Site, name: str) -> None:
    mistaken_page.problems.clear()
    page = mistaken_page(f"/injected/{list(INJECTIONS).index(name)}")
    if page.locator("#click").count():
        page.locator("#click").click(no_wait_after=True)
        mistaken_page.settle(page)
    assert page.evaluate("window.injected") is None
    assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--injected')") == ""
    if page.locator("#styled").count():
        assert page.evaluate("getComputedStyle(document.getElementById('styled')).color") != "rgb(1, 2, 3)"
    assert page.url.startswith(mistaken_page.address)
    blocked = [problem for problem in mistaken_page.problems if "Content Security Policy" in problem]
    assert blocked, mistaken_page.problems
    assert other_site.asked == []
