"""Read robots.txt: which pages may be fetched, the crawl delay and the sitemaps."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from bunko.errors import AddressRefused, FetchFailed
from bunko.sources.web.fetch import FetchedPage, Fetcher
from bunko.sources.web.ssrf_guard import Target

if TYPE_CHECKING:
    from protego import Protego

log = logging.getLogger(__name__)

_MAX_BYTES = 500 << 10  # RFC 9309, 2.5: the minimum that a crawler must read
_MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_MAX_ORIGINS = 1_000
_RETRY_SECONDS = 60.0  # seconds until a failed robots.txt is fetched again
_MAX_DELAY = 86_400.0
_LONG_DELAY = 30.0  # seconds; longer delays are logged

_AGENT_TOKEN = re.compile(r"\*(?!\S)|[A-Za-z0-9_-]*")
_AGENT_LINE = re.compile(r"\s*user[-\s]*agent\s*[:\s]([^#]*)", re.IGNORECASE)


@dataclass(slots=True)
class _CachedRules:
    """The rules of an origin; None allows everything."""

    lock: Lock = field(default_factory=Lock)
    expires_at: float = 0.0
    rules: Protego | None = None


class Robots:
    """Fetches the robots.txt of each origin once and caches it for `ttl` seconds; thread-safe.

    Without a robots.txt (4xx) everything is allowed. The same holds if it cannot be fetched, with a warning: a site
    that is down has forbidden nothing. With `respect` off, robots.txt is fetched for sitemaps only.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        agent: str = "BunkoBot",
        ttl: float = 3600.0,
        respect: bool = True,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self._fetcher, self._ttl, self._respect, self._now = fetcher, ttl, respect, now
        self._agent = _product_token(agent)
        self._cache: dict[str, _CachedRules] = {}
        self._lock = Lock()

    def allows(self, url: str) -> bool:
        """Return whether robots.txt allows fetching a page."""
        if not self._respect:
            return True
        target = self._fetcher.guard.target(url)
        rules = self._origin_rules(target)
        return rules is None or bool(rules.can_fetch(str(target), self._agent))

    def delay(self, url: str) -> float:
        """Return the crawl delay of the site in seconds, 0 if it has none."""
        return self._crawl_delay(self._origin_rules(self._fetcher.guard.target(url)) if self._respect else None)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the URLs of the site's sitemaps, except those that the guard refuses."""
        rules = self._origin_rules(self._fetcher.guard.target(url))
        urls: dict[str, None] = {}
        for address in rules.sitemaps if rules else ():
            try:
                urls[self._fetcher.guard.canonical_url(address)] = None
            except AddressRefused as error:
                log.warning("Skipping a sitemap of %s: %s", url, error.message)
        return tuple(urls)

    def _crawl_delay(self, rules: Protego | None) -> float:
        return 0.0 if rules is None else min(float(rules.crawl_delay(self._agent) or 0.0), _MAX_DELAY)

    def _origin_rules(self, target: Target) -> Protego | None:
        with self._lock:
            cached = self._cache.get(target.origin)
            if cached is None:
                if len(self._cache) >= _MAX_ORIGINS:
                    del self._cache[next(iter(self._cache))]
                cached = self._cache[target.origin] = _CachedRules()
        with cached.lock:  # threads with pages of one site wait for the one that fetches
            if self._now() >= cached.expires_at:
                try:
                    cached.rules = self._fetch_rules(target.origin)
                    cached.expires_at = self._now() + self._ttl
                    if self._respect and (delay := self._crawl_delay(cached.rules)) > _LONG_DELAY:
                        log.warning("%s sets a crawl delay of %g seconds, which is respected.", target.origin, delay)
                except (FetchFailed, AddressRefused) as error:
                    log.warning("Treating all pages of %s as allowed: %s", target.origin, error.message)
                    cached.rules = None
                    cached.expires_at = self._now() + min(self._ttl, _RETRY_SECONDS)
            return cached.rules

    def _fetch_rules(self, origin: str) -> Protego | None:
        page = self._fetcher.request(f"{origin}/robots.txt", truncate_at=_MAX_BYTES)
        for _ in range(_MAX_REDIRECTS):
            if not 300 <= page.status < 400 or not page.location:
                break
            page = self._fetcher.request(self._redirect_url(page), truncate_at=_MAX_BYTES)
        if 200 <= page.status < 300:
            from protego import Protego

            return Protego.parse(_merge_other_agents(page.content.decode("utf-8-sig", "replace"), self._agent))
        if 400 <= page.status < 500 and page.status != 429:
            return None
        raise FetchFailed(f"{page.url} was not fetched: the server answered {page.status}", status=page.status)

    def _redirect_url(self, page: FetchedPage) -> str:
        source = self._fetcher.guard.target(page.url)
        target = self._fetcher.guard.redirect_target(source, page.location)
        if source.host.removeprefix("www.") != target.host.removeprefix("www."):
            raise AddressRefused(f"{page.url} redirects to another site, {target.host}")
        return str(target)


def _product_token(agent: str) -> str:
    """Return the product token for matching rules: bunkobot for BunkoBot/1.0 (+https://…)."""
    match = _AGENT_TOKEN.match(agent.strip())
    return match[0].lower() if match else ""


def _merge_other_agents(text: str, agent: str) -> str:
    """Return robots.txt with the names of all other agents replaced by one placeholder.

    The parser also matches prefixes of our name, where RFC 9309 requires the whole name; and it stores every rule once
    for each name above it, so that 500 KB of names and rules would take minutes and gigabytes.
    """
    lines = []
    for line in text.splitlines():
        if match := _AGENT_LINE.match(line):
            name = _product_token(match[1])
            # "?" cannot be part of a name, so it matches no agent.
            line = f"User-agent: {name if name in (agent, '*') else '?'}"
        lines.append(line)
    return "\n".join(lines)
