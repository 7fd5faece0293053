"""One address in, its page read out: Safe Browsing, robots.txt and the pace of its host come first."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from bunko.errors import AddressRefused, BunkoError, FetchFailed, SourceError
from bunko.records import WebPage
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.links import site_of
from bunko.sources.web.pages import READABLE_TYPES, CrawlHints, is_document, is_empty, read_crawl_hints, read_page
from bunko.sources.web.ssrf_guard import Target, display_url

_log = logging.getLogger("bunko.web")

# A server that asks for a longer pause is left alone until somebody tries again.
_MAX_PAUSE_SECONDS = 60.0
FORBIDDEN_REASON = "robots.txt does not allow it"
NOINDEX_REASON = "it asks not to be indexed"
NO_TEXT_HINT = "Look at it in a browser: it may need scripts."


class RobotsPolicy(Protocol):
    """What robots.txt says."""

    def allows(self, url: str) -> bool:
        """Say whether a page may be fetched."""

    def delay(self, url: str) -> float:
        """Return how many seconds its site wants between two requests."""

    def sitemaps(self, url: str) -> Sequence[str]:
        """Return the sitemaps its site names."""


class ThreatLookup(Protocol):
    """Who knows of dangerous addresses."""

    def threats(self, urls: Sequence[str]) -> dict[str, str]:
        """Return those addresses that are dangerous, and how."""


class CrawlStopped(Exception):
    """Somebody wants the crawl to end."""


class HostPacer:
    """One clock for each host: no two requests begin closer together than its delay."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._next_turn: dict[str, float] = {}

    def wait_turn(self, host: str, delay: float) -> None:
        """Wait for this host's turn."""
        with self._lock:
            at = max(time.monotonic(), self._next_turn.get(host, 0.0))
            self._next_turn[host] = at + delay
        if self.stop.wait(max(0.0, at - time.monotonic())):
            raise CrawlStopped

    def pause_host(self, host: str, seconds: float) -> None:
        """Let nobody ask a host for a while."""
        with self._lock:
            self._next_turn[host] = max(self._next_turn.get(host, 0.0), time.monotonic() + seconds)


@dataclass(slots=True)
class VisitResult:
    """What asking for one page came to: a page and what it says, an error, or why it was left alone."""

    row: WebPage
    final_url: str  # where redirects led in the end
    page: FetchedPage | None = None
    hints: CrawlHints | None = None
    error: BunkoError | None = None
    skip_reason: str = ""


def failure_reason(url: str, error: BunkoError) -> str:
    """Return what was the matter with a page, where its address is said already."""
    for name in (display_url(url), url):
        for beginning in (f"{name} was not fetched: ", f"{name} is not fetched: ", f"{name} "):
            if error.message.startswith(beginning):
                return error.message.removeprefix(beginning)
    return error.message


def _is_noindex(visit: VisitResult) -> bool:
    """Say whether a page asks not to be indexed, in its text or its header."""
    return bool((visit.hints and visit.hints.noindex) or (visit.page and visit.page.noindex))


class Visitor:
    """Asks for pages; may be used from several threads."""

    def __init__(
        self,
        fetcher: Fetcher,
        robots: RobotsPolicy,
        threat_lookup: ThreatLookup | None,
        stored_content: Callable[[str], bytes | None],  # of a page that did not change
        *,
        delay: float = 1.0,
        max_redirects: int = 0,  # redirects that are followed
    ) -> None:
        self.fetcher, self.guard, self.robots = fetcher, fetcher.guard, robots
        self.pacer = HostPacer()
        self._threat_lookup, self._stored_content, self._delay, self._max_redirects = (
            threat_lookup,
            stored_content,
            delay,
            max_redirects,
        )

    def visit(
        self, row: WebPage, *, site: str = "", with_links: bool = False, respect_noindex: bool = False
    ) -> VisitResult:
        """Ask for one page.

        `site` is what redirects must stay on, empty for anywhere; `links` is whether its links are wanted; `indexing`
        is whether it may refuse to be kept.
        """
        visit = VisitResult(row, row.url)
        try:
            self._fetch_and_read(visit, site, with_links=with_links)
            if respect_noindex and _is_noindex(visit):
                visit.skip_reason = NOINDEX_REASON
        except BunkoError as error:
            visit.error = error
        except CrawlStopped:
            raise
        except Exception as error:
            # Our bug, with its traceback; but one page must not stop the others.
            _log.exception("%s cannot be read", visit.final_url)
            visit.error = FetchFailed(
                f"{visit.final_url} cannot be read ({type(error).__name__})", hint="The log says more."
            )
        return visit

    def wait_for_host(self, target: Target) -> None:
        """Wait until a host may be asked: its own delay or ours, whichever is longer."""
        self.pacer.wait_turn(target.authority, max(self._delay, self.robots.delay(str(target))))

    def check_url(self, url: str) -> None:
        """Refuse an address that is known to be dangerous."""
        if self._threat_lookup is not None and (threat := self._threat_lookup.threats([url]).get(url)):
            raise AddressRefused(
                f"{url} is not fetched: Google Safe Browsing calls it {threat}",
                hint="Leave it alone, or set safety.url_check to false if you know better.",
            )

    def prefetch_threats(self, urls: Sequence[str]) -> None:
        """Ask at once whether some addresses are dangerous, so that each need not be asked about alone."""
        if self._threat_lookup is not None and urls:
            with suppress(BunkoError):  # each is told when its turn comes
                self._threat_lookup.threats(urls)

    def _fetch_and_read(self, visit: VisitResult, site: str, *, with_links: bool) -> None:
        row = visit.row
        page = self._fetch_page(visit, site)
        if self.pacer.stop.is_set():
            raise CrawlStopped  # nobody waits for it, and the library may be closed
        if page is None:
            return
        content = page.content
        if page.not_modified:
            content = self._stored_content(row.url) or b""
            page = replace(page, media_type=row.media_type, charset=row.charset)
        visit.page = page
        kind = {"media_type": page.media_type, "charset": page.charset, "url": visit.final_url}
        visit.hints = read_crawl_hints(content, with_links=with_links, **kind)
        # What is new is read when it is imported. What would replace something must be worth it.
        if is_document(row) and not page.not_modified:
            try:
                empty = is_empty(read_page(content, **kind))
            except SourceError as error:
                raise FetchFailed(f"{visit.final_url} cannot be read: {error.message}", hint=error.hint) from error
            if empty:
                raise FetchFailed(f"{visit.final_url} holds no text", hint=NO_TEXT_HINT)

    def _fetch_page(self, visit: VisitResult, site: str) -> FetchedPage | None:
        """Return the page where redirects lead to; None where robots.txt does not allow it."""
        row, hops, paused = visit.row, 0, False
        while True:
            target = self.guard.target(visit.final_url)
            self.check_url(visit.final_url)
            if not self.robots.allows(visit.final_url):
                visit.skip_reason = FORBIDDEN_REASON
                return None
            self.wait_for_host(target)
            known = visit.final_url == row.url and is_document(row) and row.size > 0
            etag, last_modified = (row.etag, row.last_modified) if known else ("", "")
            try:
                return self.fetcher.fetch(
                    visit.final_url, etag=etag, last_modified=last_modified, accept=READABLE_TYPES
                )
            except FetchFailed as error:
                if 0 < error.retry_after <= _MAX_PAUSE_SECONDS and not paused:
                    paused = True
                    self.pacer.pause_host(target.authority, error.retry_after)
                    continue
                if not error.location or hops >= self._max_redirects:
                    raise
                visit.final_url = self._redirect_url(target, error, site)
                hops += 1

    def _redirect_url(self, target: Target, error: FetchFailed, site: str) -> str:
        onward = self.guard.redirect_target(target, error.location)
        if site and site_of(onward) != site:
            raise error
        return str(onward)
