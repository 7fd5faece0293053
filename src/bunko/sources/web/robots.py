"""Ask robots.txt which pages may be fetched, how fast, and where the sitemaps are."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock

from bunko.errors import AddressRefused, FailureReason, FetchFailed, SourceError
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.robots_rules import RobotsRules, parse_robots, product_token
from bunko.sources.web.site_cache import SiteCache
from bunko.sources.web.ssrf_guard import Target, display_url

log = logging.getLogger(__name__)

_MAX_BYTES = 500 << 10  # RFC 9309, 2.5: the minimum that a crawler must read
_MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_MAX_ORIGINS = 1_000
_RETRY_SECONDS = 60.0  # until a robots.txt that could not be read is requested again
_MAX_AGE = 30 * 86_400.0  # RFC 9309, 2.3.1.4: how long an old copy may stand in for a file that cannot be read
_LONG_DELAY = 30.0  # seconds; longer delays are logged
_ALLOW_ALL = RobotsRules()
_UNREADABLE_HINT = (
    "Until it can be read, nothing of the site is fetched. Try again in a minute; if the site is yours, set"
    " crawl.respect_robots_txt to false."
)


@dataclass(slots=True)
class _Origin:
    """What is known about the robots.txt of an origin."""

    lock: Lock = field(default_factory=Lock)
    is_loaded: bool = False  # from the cache
    rules: RobotsRules | None = None  # None: it was never read
    fetched_at: float = 0.0
    failed_at: float = 0.0  # the last attempt failed at this time; 0: it succeeded
    problem: str = ""  # why it failed
    hint: str = ""
    reason: FailureReason = "robots"
    refusal: AddressRefused | None = None  # the guard refuses the host itself


class Robots:
    """Fetches the robots.txt of each origin once in `ttl` seconds, across processes with the same cache; thread-safe.

    Without a robots.txt (4xx) everything is allowed. If it cannot be read (5xx, no answer), nothing is allowed for the
    moment, unless an older copy is cached. With `respect` off, robots.txt is fetched for sitemaps only.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        cache: SiteCache | None = None,
        *,
        agent: str = "BunkoBot",
        ttl: float = 3600.0,
        respect: bool = True,
        max_delay: float = 60.0,
    ) -> None:
        self._fetcher, self._cache, self._agent = fetcher, cache or SiteCache(), product_token(agent)
        self._ttl, self._respect, self._max_delay = ttl, respect, max_delay
        self._origins: dict[str, _Origin] = {}
        self._lock = Lock()

    def allows(self, url: str) -> bool:
        """Return whether robots.txt allows fetching a page; raise FetchFailed if it cannot be read now."""
        if not self._respect:
            return True
        target = self._fetcher.guard.target(url)
        return self._origin_rules(target).allows(target.path)

    def delay(self, url: str) -> float:
        """Return the crawl delay of the site in seconds, 0 if it has none; raise AddressRefused if it is too long."""
        if not self._respect:
            return 0.0
        delay = self._origin_rules(self._fetcher.guard.target(url)).delay
        if delay > self._max_delay:
            raise AddressRefused(
                f"{display_url(url)} is not fetched: its robots.txt asks for {delay:g} seconds between two requests,"
                f" more than crawl.max_crawl_delay ({self._max_delay:g})",
                hint="To wait that long for each page, raise crawl.max_crawl_delay.",
                reason="crawl-delay",
            )
        return delay

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the URLs of the site's sitemaps, except those that the guard refuses."""
        try:
            rules = self._origin_rules(self._fetcher.guard.target(url))
        except SourceError:
            return ()  # reported when a page is visited
        urls: dict[str, None] = {}
        for address in rules.sitemaps:
            try:
                urls[self._fetcher.guard.canonical_url(address)] = None
            except AddressRefused as error:
                log.warning("Skipping a sitemap of %s: %s", url, error.message)
        return tuple(urls)

    def _origin_rules(self, target: Target) -> RobotsRules:
        with self._lock:
            origin = self._origins.get(target.origin)
            if origin is None:
                if len(self._origins) >= _MAX_ORIGINS:
                    del self._origins[next(iter(self._origins))]
                origin = self._origins[target.origin] = _Origin()
        with origin.lock:  # threads with pages of one site wait for the one that fetches
            if not origin.is_loaded:
                self._load(target.origin, origin)
            if not self._is_current(origin):
                self._refresh(target.origin, origin)
            if origin.refusal is not None:
                raise AddressRefused(origin.refusal.message, hint=origin.refusal.hint, reason=origin.refusal.reason)
            if origin.rules is None:
                raise FetchFailed(
                    f"{display_url(str(target))} is not fetched: its robots.txt cannot be read now ({origin.problem})",
                    hint=origin.hint or _UNREADABLE_HINT,
                    reason=origin.reason,
                )
            return origin.rules

    def _is_current(self, origin: _Origin) -> bool:
        if origin.failed_at:
            return 0 <= self._cache.now() - origin.failed_at < min(self._ttl, _RETRY_SECONDS)
        return origin.rules is not None and 0 <= self._cache.now() - origin.fetched_at < self._ttl

    def _refresh(self, name: str, origin: _Origin) -> None:
        """Fetch the robots.txt of an origin; if that fails, keep the rules that were read before, for some time."""
        origin.problem, origin.hint, origin.refusal, origin.failed_at = "", "", None, 0.0
        origin.reason = "robots"
        try:
            origin.rules, origin.fetched_at = self._fetch_rules(name), self._cache.now()
        except AddressRefused as error:
            origin.refusal, origin.failed_at = error, self._cache.now()
            return
        except FetchFailed as error:
            origin.failed_at, origin.hint = self._cache.now(), error.hint
            origin.problem = error.message.partition(" was not fetched: ")[2] or error.message
            origin.reason = "unresolved" if error.reason == "unresolved" else "robots"
            if origin.rules is not None and origin.failed_at - origin.fetched_at < _MAX_AGE:
                date = datetime.fromtimestamp(origin.fetched_at, UTC).date()
                log.warning("Obeying the robots.txt of %s from %s: %s", name, date, error.message)
            else:
                origin.rules = None
            if not error.status and error.reason != "timeout":
                return  # waiting would spare no server
        self._save(name, origin)
        if self._respect and origin.rules and _LONG_DELAY < origin.rules.delay <= self._max_delay:
            log.warning("%s sets a crawl delay of %g seconds, which is respected.", name, origin.rules.delay)

    def _cache_key(self, name: str) -> bytes:
        return f"{name} {self._agent}".encode()

    def _load(self, name: str, origin: _Origin) -> None:
        origin.is_loaded = True
        text = self._cache.get("robots", self._cache_key(name))
        if text is None:
            return
        try:
            fields = json.loads(text)
            rules = RobotsRules.from_json(fields["rules"]) if fields["rules"] else None
            times = float(fields["fetched_at"]), float(fields["failed_at"])
        except (ValueError, TypeError, LookupError):
            return  # of another version of bunko
        origin.rules, origin.problem, (origin.fetched_at, origin.failed_at) = rules, str(fields.get("problem")), times

    def _save(self, name: str, origin: _Origin) -> None:
        fields = {
            "rules": origin.rules.to_json() if origin.rules else "",
            "fetched_at": origin.fetched_at,
            "failed_at": origin.failed_at,
            "problem": origin.problem,
        }
        expires_at = (origin.fetched_at + _MAX_AGE) if origin.rules else origin.failed_at + _RETRY_SECONDS
        self._cache.put("robots", {self._cache_key(name): json.dumps(fields)}, expires_at=expires_at)

    def _fetch_rules(self, name: str) -> RobotsRules:
        page = self._fetcher.request(f"{name}/robots.txt", truncate_at=_MAX_BYTES)
        for _ in range(_MAX_REDIRECTS):
            if not _is_redirect(page):
                break
            page = self._follow_redirect(page)
        if 200 <= page.status < 300:
            return parse_robots(page.content, self._agent, max_bytes=_MAX_BYTES)
        if _is_redirect(page):
            log.warning("%s/robots.txt redirects too often and is ignored.", name)
            return _ALLOW_ALL
        # "Too many requests" says nothing about the file; to go on fetching pages would be rude.
        if 400 <= page.status < 500 and page.status != 429:
            return _ALLOW_ALL
        raise FetchFailed(f"{page.url} was not fetched: the server answered {page.status}", status=page.status)

    def _follow_redirect(self, page: FetchedPage) -> FetchedPage:
        guard = self._fetcher.guard
        try:
            target = guard.redirect_target(guard.target(page.url), page.location)
            return self._fetcher.request(str(target), truncate_at=_MAX_BYTES)
        except SourceError as error:
            # Of the target, which may be another host, not of the site itself.
            message = f"{page.url} was not fetched: it redirects to {display_url(page.location)}: {error.message}"
            raise FetchFailed(message, hint=error.hint, status=page.status) from error


def _is_redirect(page: FetchedPage) -> bool:
    return 300 <= page.status < 400 and bool(page.location)
