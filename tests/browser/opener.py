"""Open pages as people see them, and note everything that a browser complains about."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request

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


class PageOpener:
    """Opens pages of a served library, each in a browser profile of its own.

    `problems` collects errors on the console, violations of the Content-Security-Policy, exceptions, and requests that
    leave this machine. A test fails if any are left at its end; one that expects them takes them out.
    """

    def __init__(self, browser: Browser, address: str) -> None:
        self._browser, self.address = browser, address
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []

    def __call__(
        self,
        path: str = "/",
        *,
        language: Language = "en",
        scheme: Scheme = "light",
        width: Width = "desktop",
        javascript: bool = True,
    ) -> Page:
        """Open a page and wait until it is loaded."""
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
        context.on("request", self._note_request)
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))
        page = context.new_page()
        page.goto(self.address + path)
        return page

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
        address = urlsplit(request.url)
        if address.scheme not in _LOCAL_SCHEMES and not request.url.startswith(self.address + "/"):
            self.problems.append(f"a request that leaves this server: {request.url}")


def keep_screenshot(page: Page, name: str) -> Path:
    """Keep a picture of the whole page for people to look at, and return its path."""
    path = SCREENSHOTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=True)
    return path
