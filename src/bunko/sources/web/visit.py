"""One address in, its page read out: Safe Browsing, robots.txt and the pace of its host come first."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from bunko.errors import BunkoError, FetchFailed, Refused, SourceError
from bunko.records import WebPage
from bunko.sources.web.fetch import Fetcher, Page
from bunko.sources.web.links import site_of
from bunko.sources.web.pages import READABLE, Leads, is_document, is_empty, leads, read
from bunko.sources.web.ssrf_guard import Target, shown

_log = logging.getLogger("bunko.web")

# A server that asks for a longer pause is left alone until somebody tries again.
_LONGEST_PAUSE = 60.0
FORBIDDEN = "robots.txt does not allow it"
UNWANTED = "it asks not to be indexed"
NO_TEXT = "Look at it in a browser: it may need scripts."


class Robots(Protocol):
    """What robots.txt says."""

    def allowed(self, url: str) -> bool:
        """Say whether a page may be fetched."""

    def delay(self, url: str) -> float:
        """Return how many seconds its site wants between two requests."""

    def sitemaps(self, url: str) -> Sequence[str]:
        """Return the sitemaps its site names."""


class Safety(Protocol):
    """Who knows of dangerous addresses."""

    def threats(self, urls: Sequence[str]) -> dict[str, str]:
        """Return those addresses that are dangerous, and how."""


class Stopped(Exception):
    """Somebody wants the crawl to end."""


class Pace:
    """One clock for each host: no two requests begin closer together than its delay."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}

    def wait(self, host: str, delay: float) -> None:
        """Wait for this host's turn."""
        with self._lock:
            at = max(time.monotonic(), self._next.get(host, 0.0))
            self._next[host] = at + delay
        if self.stop.wait(max(0.0, at - time.monotonic())):
            raise Stopped

    def pause(self, host: str, seconds: float) -> None:
        """Let nobody ask a host for a while."""
        with self._lock:
            self._next[host] = max(self._next.get(host, 0.0), time.monotonic() + seconds)


@dataclass(slots=True)
class Visit:
    """What asking for one page came to: a page and what it says, an error, or why it was left alone."""

    row: WebPage
    url: str  # where redirects led in the end
    page: Page | None = None
    leads: Leads | None = None
    error: BunkoError | None = None
    skipped: str = ""


def reason(url: str, error: BunkoError) -> str:
    """Return what was the matter with a page, where its address is said already."""
    for name in (shown(url), url):
        for beginning in (f"{name} was not fetched: ", f"{name} is not fetched: ", f"{name} "):
            if error.message.startswith(beginning):
                return error.message.removeprefix(beginning)
    return error.message


def _unwanted(visit: Visit) -> bool:
    """Say whether a page asks not to be indexed, in its text or its header."""
    return bool((visit.leads and visit.leads.noindex) or (visit.page and visit.page.noindex))


class Visitor:
    """Asks for pages; may be used from several threads."""

    def __init__(
        self,
        fetcher: Fetcher,
        robots: Robots,
        safety: Safety | None,
        content: Callable[[str], bytes | None],  # of a page that did not change
        *,
        delay: float = 1.0,
        hops: int = 0,  # redirects that are followed
    ) -> None:
        self.fetcher, self.guard, self.robots = fetcher, fetcher.guard, robots
        self.pace = Pace()
        self._safety, self._content, self._delay, self._hops = safety, content, delay, hops

    def visit(self, row: WebPage, *, site: str = "", links: bool = False, indexing: bool = False) -> Visit:
        """Ask for one page.

        `site` is what redirects must stay on, empty for anywhere; `links` is whether its links are wanted; `indexing`
        is whether it may refuse to be kept.
        """
        visit = Visit(row, row.url)
        try:
            self._visit(visit, site, links=links)
            if indexing and _unwanted(visit):
                visit.skipped = UNWANTED
        except BunkoError as error:
            visit.error = error
        except Stopped:
            raise
        except Exception as error:
            # Our bug, with its traceback; but one page must not stop the others.
            _log.exception("%s cannot be read", visit.url)
            visit.error = FetchFailed(f"{visit.url} cannot be read ({type(error).__name__})", hint="The log says more.")
        return visit

    def wait(self, target: Target) -> None:
        """Wait until a host may be asked: its own delay or ours, whichever is longer."""
        self.pace.wait(target.authority, max(self._delay, self.robots.delay(str(target))))

    def check(self, url: str) -> None:
        """Refuse an address that is known to be dangerous."""
        if self._safety is not None and (threat := self._safety.threats([url]).get(url)):
            raise Refused(
                f"{url} is not fetched: Google Safe Browsing calls it {threat}",
                hint="Leave it alone, or set safety.url_check to false if you know better.",
            )

    def look_up(self, urls: Sequence[str]) -> None:
        """Ask at once whether some addresses are dangerous, so that each need not be asked about alone."""
        if self._safety is not None and urls:
            with suppress(BunkoError):  # each is told when its turn comes
                self._safety.threats(urls)

    def _visit(self, visit: Visit, site: str, *, links: bool) -> None:
        row = visit.row
        page = self._fetched(visit, site)
        if self.pace.stop.is_set():
            raise Stopped  # nobody waits for it, and the library may be closed
        if page is None:
            return
        content = page.content
        if page.not_modified:
            content = self._content(row.url) or b""
            page = replace(page, media_type=row.media_type, charset=row.charset)
        visit.page = page
        kind = {"media_type": page.media_type, "charset": page.charset, "url": visit.url}
        visit.leads = leads(content, links=links, **kind)
        # What is new is read when it is imported. What would replace something must be worth it.
        if is_document(row) and not page.not_modified:
            try:
                empty = is_empty(read(content, **kind))
            except SourceError as error:
                raise FetchFailed(f"{visit.url} cannot be read: {error.message}", hint=error.hint) from error
            if empty:
                raise FetchFailed(f"{visit.url} holds no text", hint=NO_TEXT)

    def _fetched(self, visit: Visit, site: str) -> Page | None:
        """Return the page where redirects lead to; None where robots.txt does not allow it."""
        row, hops, paused = visit.row, 0, False
        while True:
            target = self.guard.target(visit.url)
            self.check(visit.url)
            if not self.robots.allowed(visit.url):
                visit.skipped = FORBIDDEN
                return None
            self.wait(target)
            known = visit.url == row.url and is_document(row) and row.size > 0
            etag, last_modified = (row.etag, row.last_modified) if known else ("", "")
            try:
                return self.fetcher.fetch(visit.url, etag=etag, last_modified=last_modified, accept=READABLE)
            except FetchFailed as error:
                if 0 < error.retry_after <= _LONGEST_PAUSE and not paused:
                    paused = True
                    self.pace.pause(target.authority, error.retry_after)
                    continue
                if not error.location or hops >= self._hops:
                    raise
                visit.url = self._onward(target, error, site)
                hops += 1

    def _onward(self, target: Target, error: FetchFailed, site: str) -> str:
        onward = self.guard.onward(target, error.location)
        if site and site_of(onward) != site:
            raise error
        return str(onward)
