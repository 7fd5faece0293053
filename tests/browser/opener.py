"""Open pages as people see them, and note everything that a browser complains about."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from tests.browser.served import PATIENCE, ServedPage

Language = Literal["en", "ja"]
Scheme = Literal["light", "dark"]
Width = Literal["phone", "desktop"]

LANGUAGES: tuple[Language, ...] = ("en", "ja")
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS: tuple[Width, ...] = ("phone", "desktop")
SIZES = {"phone": (360, 740), "desktop": (1280, 800)}

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
# What is asked of the browser itself, not of a server.
_LOCAL_SCHEMES = ("data", "blob", "about")
_LOOK_MILLISECONDS = 25


class PageOpener:
    """Opens pages of a served library, each in a browser profile of its own.

    `problems` collects errors on the console, violations of the Content-Security-Policy, exceptions, and requests that
    leave this server. A test fails if any are left at its end; one that expects them takes them out.
    """

    def __init__(self, browser: Browser, served: ServedPage) -> None:
        self._browser, self._served = browser, served
        self._contexts: list[BrowserContext] = []
        self._running: set[Request] = set()
        self.address, self.library = served.address, served.library
        self.problems: list[str] = []

    def __call__(
        self,
        path: str = "/",
        *,
        language: Language = "en",
        scheme: Scheme = "light",
        width: Width = "desktop",
        javascript: bool = True,
        signed_in: bool = True,
    ) -> Page:
        """Open a page and wait until it has settled."""
        page = self.open_blank(
            language=language, scheme=scheme, width=width, javascript=javascript, signed_in=signed_in
        )
        page.goto(self.address + path)
        self.settle(page)
        return page

    def open_blank(
        self,
        *,
        language: Language = "en",
        scheme: Scheme = "light",
        width: Width = "desktop",
        javascript: bool = True,
        signed_in: bool = True,
    ) -> Page:
        """Open an empty page, which may then go to an address of the server."""
        columns, rows = SIZES[width]
        context = self._browser.new_context(
            locale={"en": "en-GB", "ja": "ja-JP"}[language],
            timezone_id="Asia/Tokyo",
            color_scheme=scheme,
            viewport={"width": columns, "height": rows},
            is_mobile=width == "phone",
            has_touch=width == "phone",
            reduced_motion="reduce",
            java_script_enabled=javascript,
        )
        self._contexts.append(context)
        if signed_in:
            self._served.sign_in(context)
        context.on("request", self._note_request)
        context.on("requestfinished", self._note_end)
        context.on("requestfailed", self._note_end)
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))
        return context.new_page()

    def settle(self, page: Page) -> None:
        """Wait until no request runs, the stream of events aside, and nothing on the page says that it is busy."""
        end, quiet_looks = time.monotonic() + PATIENCE, 0
        while quiet_looks < 2:
            assert time.monotonic() < end, f"{page.url} did not settle: {[request.url for request in self._running]}"
            page.wait_for_timeout(_LOOK_MILLISECONDS)
            is_busy = self._running or page.locator('[aria-busy="true"]').count()
            quiet_looks = 0 if is_busy else quiet_looks + 1

    def pages(self) -> list[Page]:
        """Return the pages that are open."""
        return [page for context in self._contexts for page in context.pages]

    def close(self) -> None:
        """Close all pages."""
        for context in self._contexts:
            context.close()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type} on the console: {message.text}")

    def _note_request(self, request: Request) -> None:
        if request.resource_type != "eventsource":
            self._running.add(request)
        address = urlsplit(request.url)
        if address.scheme not in _LOCAL_SCHEMES and not request.url.startswith(self.address + "/"):
            self.problems.append(f"a request that leaves this server: {request.url}")

    def _note_end(self, request: Request) -> None:
        self._running.discard(request)


def keep_screenshot(page: Page, name: str) -> Path:
    """Keep a picture of the whole page for people to look at, and return its path."""
    path = SCREENSHOTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=True)
    return path
