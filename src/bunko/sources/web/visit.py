"""Visit one page: check Safe Browsing and robots.txt, wait for the delay of its host, fetch it and read its links."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from bunko.errors import AddressRefused, BunkoError, FetchFailed, SourceError
from bunko.runtime.package_errors import find_package_error
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.links import site_of
from bunko.sources.web.pace import MAX_PAUSE_SECONDS, CrawlStopped, HostPacer
from bunko.sources.web.pages import READABLE_TYPES, CrawlHints, is_document, is_empty, read_crawl_hints, read_page
from bunko.sources.web.ssrf_guard import Target, display_url
from bunko.types.records import WebPage

_log = logging.getLogger("bunko.web")

FORBIDDEN_REASON = "robots.txt does not allow it"
NOINDEX_REASON = "it asks not to be indexed"
NO_TEXT_HINT = "Open it in a browser: it may need JavaScript."


class RobotsPolicy(Protocol):
    """The rules of robots.txt."""

    def allows(self, url: str) -> bool:
        """Return whether a page may be fetched; raise SourceError if that cannot be said now."""

    def delay(self, url: str) -> float:
        """Return the crawl delay of its site in seconds; raise SourceError if it is too long."""

    def sitemaps(self, url: str) -> Sequence[str]:
        """Return the sitemaps of its site."""


class ThreatLookup(Protocol):
    """A lookup of dangerous addresses."""

    def threats(self, urls: Sequence[str]) -> dict[str, str]:
        """Return the dangerous addresses, each with its threat type."""


@dataclass(slots=True)
class VisitResult:
    """The result of one visit: a page with its hints, an error, or the reason why it was skipped."""

    row: WebPage
    final_url: str  # after redirects
    page: FetchedPage | None = None
    hints: CrawlHints | None = None
    urls: Sequence[str] = ()  # of the links to follow
    error: BunkoError | None = None
    skip_reason: str = ""


def failure_reason(url: str, error: BunkoError) -> str:
    """Return the message of an error without the address of the page."""
    for name in (display_url(url), url):
        for prefix in (f"{name} was not fetched: ", f"{name} is not fetched: ", f"{name} "):
            if error.message.startswith(prefix):
                return error.message.removeprefix(prefix)
    return error.message


def _is_noindex(visit: VisitResult) -> bool:
    """Return whether a page asks not to be indexed, in its HTML or its header."""
    return bool((visit.hints and visit.hints.noindex) or (visit.page and visit.page.noindex))


class Visitor:
    """Visits pages; thread-safe."""

    def __init__(
        self,
        fetcher: Fetcher,
        robots: RobotsPolicy,
        threat_lookup: ThreatLookup | None,
        stored_content: Callable[[str], bytes | None],  # returns the content of a page that has not changed
        *,
        pacer: HostPacer,
        delay: float = 1.0,
        max_redirects: int = 0,
    ) -> None:
        self.fetcher, self.guard, self.robots, self.pacer = fetcher, fetcher.guard, robots, pacer
        self._threat_lookup, self._stored_content = threat_lookup, stored_content
        self._delay, self._max_redirects = delay, max_redirects

    def visit(
        self, row: WebPage, *, site: str = "", with_links: bool = False, respect_noindex: bool = False
    ) -> VisitResult:
        """Fetch one page and read its hints.

        Redirects must stay on `site`, unless it is empty; `with_links` collects the links of the page; with
        `respect_noindex` a page that asks not to be indexed is skipped.
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
            if package_error := find_package_error(error):
                visit.error = package_error
                return visit
            # A bug of ours, logged with its traceback; but one page must not stop the others.
            _log.exception("Cannot read %s", visit.final_url)
            visit.error = FetchFailed(
                f"{visit.final_url} cannot be read ({type(error).__name__})", hint="See the log for details."
            )
        return visit

    def wait_for_host(self, target: Target) -> None:
        """Wait for the delay of a host: its crawl delay or our default, whichever is longer."""
        self.pacer.wait_turn(target.authority, max(self._delay, self.robots.delay(str(target))))

    def check_url(self, url: str) -> None:
        """Raise AddressRefused if an address is known to be dangerous."""
        if self._threat_lookup is not None and (threat := self._threat_lookup.threats([url]).get(url)):
            raise AddressRefused(
                f"{url} is not fetched: Google Safe Browsing reports {threat}",
                hint="Do not visit it. If you are sure that it is safe, set safety.url_check to false.",
                reason="threat",
            )

    def prefetch_threats(self, urls: Sequence[str]) -> None:
        """Look up several addresses in one request, so that the later single lookups are cached."""
        if self._threat_lookup is not None and urls:
            with suppress(BunkoError):  # reported when each page is visited
                self._threat_lookup.threats(urls)

    def _fetch_and_read(self, visit: VisitResult, site: str, *, with_links: bool) -> None:
        row = visit.row
        page = self._fetch_page(visit, site)
        if self.pacer.stop.is_set():
            raise CrawlStopped  # the result is not needed, and the library may be closed
        if page is None:
            return
        content = page.content
        if page.not_modified:
            content = self._stored_content(row.url) or b""
            page = replace(page, media_type=row.media_type, charset=row.charset)
        visit.page = page
        kind = {"media_type": page.media_type, "charset": page.charset, "url": visit.final_url}
        visit.hints = read_crawl_hints(content, with_links=with_links, **kind)
        # A new page is read when it is imported. A page that would replace another must have text.
        if is_document(row) and not page.not_modified:
            try:
                has_no_text = is_empty(read_page(content, **kind))
            except SourceError as error:
                raise FetchFailed(f"{visit.final_url} cannot be read: {error.message}", hint=error.hint) from error
            if has_no_text:
                raise FetchFailed(f"{visit.final_url} contains no text", hint=NO_TEXT_HINT, reason="no-text")

    def _fetch_page(self, visit: VisitResult, site: str) -> FetchedPage | None:
        """Fetch a page, following redirects; return None if robots.txt does not allow it."""
        row, redirects, paused = visit.row, 0, False
        while True:
            target = self.guard.target(visit.final_url)
            self.check_url(visit.final_url)
            if not self.robots.allows(visit.final_url):
                visit.skip_reason = FORBIDDEN_REASON
                return None
            self.wait_for_host(target)
            is_stored = visit.final_url == row.url and is_document(row) and row.size > 0
            etag, last_modified = (row.etag, row.last_modified) if is_stored else ("", "")
            try:
                return self.fetcher.fetch(
                    visit.final_url, etag=etag, last_modified=last_modified, accept=READABLE_TYPES
                )
            except FetchFailed as error:
                if 0 < error.retry_after <= MAX_PAUSE_SECONDS and not paused:
                    paused = True
                    self.pacer.pause_host(target.authority, error.retry_after)
                    continue
                if not error.location or redirects >= self._max_redirects:
                    raise
                visit.final_url = self._redirect_url(target, error, site)
                redirects += 1

    def _redirect_url(self, target: Target, error: FetchFailed, site: str) -> str:
        redirected = self.guard.redirect_target(target, error.location)
        if site and site_of(redirected) != site:
            raise error
        return str(redirected)
