"""Visit one page: check Safe Browsing and robots.txt, wait for the delay of its host, fetch it and choose its links."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from threading import Event
from typing import Protocol

from bunko.errors import AddressRefused, BunkoError, FetchFailed, QueryError, SourceError
from bunko.runtime.package_errors import find_package_error, package_errors
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.pages import READABLE_TYPES, CrawlHints, is_document, is_empty, read_crawl_hints, read_page
from bunko.sources.web.site_cache import MAX_PAUSE_SECONDS, CrawlStopped, HostPacer
from bunko.sources.web.ssrf_guard import DEFAULT_PORTS, Guard, Target, display_url
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


_MAX_PATTERN_LENGTH = 500
_MAX_PATTERN_MEMORY = 1 << 20  # bytes; bounds how large a pattern becomes when its repetitions are written out
_MAX_MATCHED_CHARS = 2000  # the slowest patterns take 50 ms for an address of this length; real ones are shorter
_SYNTAX_URL = "https://github.com/google/re2/wiki/Syntax"


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Where a crawl starts and which links it follows."""

    root: str
    pattern: str = ""  # regular expression that the address of a page must match
    depth: int = 1  # links away from the root
    max_pages: int = 50
    sitemap: bool = False  # also follow the links in the site's sitemaps and llms.txt


class LinkFilter:
    """Selects the links of one crawl."""

    def __init__(self, guard: Guard, rules: CrawlRules) -> None:
        self.rules, self.site = rules, site_of(guard.target(rules.root))
        self.seen_urls: set[str] = set()
        self.taken_count = self.omitted_count = 0  # links followed, and links dropped because of max_pages
        self._guard, self.matches = guard, matcher(rules.pattern)
        self._urls: dict[str, str] = {}  # link → its URL, or "" if it is not followed

    def matching_urls(self, links: Iterable[str], stop: Event) -> list[str]:
        """Return the URLs of the links that are on the site and match the pattern; thread-safe.

        A page may have many links and a pattern may be slow: raise CrawlStopped if `stop` is set meanwhile.
        """
        urls: dict[str, None] = {}
        for link in links:
            if stop.is_set():
                raise CrawlStopped
            if (url := self._urls.get(link)) is None:
                url = self._urls[link] = self._matching_url(link)
            if url:
                urls[url] = None
        return list(urls)

    def unseen_urls(self, urls: Iterable[str]) -> list[str]:
        """Return the URLs that `take_new_urls` would return now."""
        room = max(0, self.rules.max_pages - self.taken_count)
        return list(islice((url for url in urls if url not in self.seen_urls), room))

    def take_new_urls(self, urls: Iterable[str]) -> list[str]:
        """Return the URLs that are new, up to the maximum number of pages."""
        new_urls = []
        for url in urls:
            if url in self.seen_urls:
                continue
            self.seen_urls.add(url)
            if self.taken_count >= self.rules.max_pages:
                self.omitted_count += 1
                continue
            self.taken_count += 1
            new_urls.append(url)
        return new_urls

    def _matching_url(self, link: str) -> str:
        try:
            target = self._guard.target(link)
        except BunkoError:
            return ""  # a link that cannot be fetched is not a problem of the page
        url = str(target)
        return url if site_of(target) == self.site and self.matches(url) else ""


def site_of(target: Target) -> str:
    """Return a key that all pages of a site share: the host without www., and the port if it is not the default."""
    host = target.host.removeprefix("www.")
    return host if target.port == DEFAULT_PORTS[target.scheme] else f"{host}:{target.port}"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches URLs; raise QueryError on a pattern that is invalid or not supported.

    RE2 matches in time proportional to the length of the URL, for any pattern, and lets other threads run.
    """
    if not pattern:
        return lambda url: True
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise QueryError(f"The pattern has {len(pattern)} characters", hint=f"Use at most {_MAX_PATTERN_LENGTH}.")
    with package_errors("google-re2"):
        import re2

        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, _MAX_PATTERN_MEMORY
        try:
            compiled = re2.compile(pattern, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise _pattern_error(pattern, error) from error
        compiled.search("")  # what cannot work fails here
    return lambda url: compiled.search(url[:_MAX_MATCHED_CHARS]) is not None


def _pattern_error(pattern: str, error: Exception) -> QueryError:
    reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
    if reason.startswith(("invalid perl operator", "invalid escape sequence", "bad repetition operator")):
        part = reason.partition(": ")[2]
        return QueryError(
            f"The pattern {pattern!r} contains {part}, which is not supported",
            hint="Look-ahead, look-behind and back-references can take forever. Write the pattern without them:"
            f" {_SYNTAX_URL}",
        )
    if reason.startswith(("pattern too large", "invalid repetition size")):
        return QueryError(
            f"The pattern {pattern!r} repeats too much", hint="Use smaller numbers in braces, or * and +."
        )
    return QueryError(
        f"The pattern {pattern!r} is not a regular expression: {reason}",
        hint=r"Write \.html$ for addresses that end in .html, and put a backslash before . ? * + ( ) [ ].",
    )
