"""What a site asks of crawlers: a URL goes in; whether it may be fetched, how slowly, and the sitemaps come out."""

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

_MAX_BYTES = 500 << 10  # RFC 9309, 2.5: at least so much is read
_MAX_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_MAX_ORIGINS = 1_000
_RETRY_SECONDS = 60.0  # seconds until a robots.txt that failed is asked for again
_MAX_DELAY = 86_400.0
_LONG_DELAY = 30.0  # longer than anybody expects to wait without being told

_AGENT_TOKEN = re.compile(r"\*(?!\S)|[A-Za-z0-9_-]*")
_AGENT_LINE = re.compile(r"\s*user[-\s]*agent\s*[:\s]([^#]*)", re.IGNORECASE)


@dataclass(slots=True)
class _CachedRules:
    """The rules of an origin: None stands for everything being allowed."""

    lock: Lock = field(default_factory=Lock)
    expires_at: float = 0.0
    rules: Protego | None = None


class Robots:
    """Asks each origin once for its robots.txt and keeps the answer for `ttl` seconds; many threads may ask.

    Without a robots.txt (4xx) all is allowed. The same holds where it cannot be had, with a warning: a site that is
    down has said nothing. With `respect` off nothing is asked, except for sitemaps.
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
        """Say whether the site lets us fetch a page."""
        if not self._respect:
            return True
        target = self._fetcher.guard.target(url)
        rules = self._origin_rules(target)
        return rules is None or bool(rules.can_fetch(str(target), self._agent))

    def delay(self, url: str) -> float:
        """Return the seconds that the site wants between two requests, 0 if it does not say."""
        return self._crawl_delay(self._origin_rules(self._fetcher.guard.target(url)) if self._respect else None)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the addresses of the site's sitemaps, without those that may not be fetched."""
        rules = self._origin_rules(self._fetcher.guard.target(url))
        found: dict[str, None] = {}
        for address in rules.sitemaps if rules else ():
            try:
                found[self._fetcher.guard.canonical_url(address)] = None
            except AddressRefused as error:
                log.warning("A sitemap of %s is left out. %s", url, error.message)
        return tuple(found)

    def _crawl_delay(self, rules: Protego | None) -> float:
        return 0.0 if rules is None else min(float(rules.crawl_delay(self._agent) or 0.0), _MAX_DELAY)

    def _origin_rules(self, target: Target) -> Protego | None:
        with self._lock:
            held = self._cache.get(target.origin)
            if held is None:
                if len(self._cache) >= _MAX_ORIGINS:
                    del self._cache[next(iter(self._cache))]
                held = self._cache[target.origin] = _CachedRules()
        with held.lock:  # threads with pages of one site wait for the one that asks
            if self._now() >= held.expires_at:
                try:
                    held.rules = self._fetch_rules(target.origin)
                    held.expires_at = self._now() + self._ttl
                    if self._respect and (wanted := self._crawl_delay(held.rules)) > _LONG_DELAY:
                        log.warning("%s asks for %g seconds between two pages, and gets them.", target.origin, wanted)
                except (FetchFailed, AddressRefused) as error:
                    log.warning("Everything on %s is taken as allowed. %s", target.origin, error.message)
                    held.rules = None
                    held.expires_at = self._now() + min(self._ttl, _RETRY_SECONDS)
            return held.rules

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
        here = self._fetcher.guard.target(page.url)
        there = self._fetcher.guard.redirect_target(here, page.location)
        if here.host.removeprefix("www.") != there.host.removeprefix("www."):
            raise AddressRefused(f"{page.url} is not followed to another site, {there.host}")
        return str(there)


def _product_token(agent: str) -> str:
    """Return the product token that rules are matched by: bunkobot of BunkoBot/1.0 (+https://…)."""
    found = _AGENT_TOKEN.match(agent.strip())
    return found[0].lower() if found else ""


def _merge_other_agents(text: str, agent: str) -> str:
    """Return robots.txt with the names of all other agents made one.

    The parser takes any beginning of our name for us, where RFC 9309 wants the whole; and it keeps every rule once for
    each name above it, so that 500 KB of names and rules would take minutes and gigabytes.
    """
    lines = []
    for line in text.splitlines():
        found = _AGENT_LINE.match(line)
        # A character that no agent has, so that it matches none.
        lines.append(
            f"User-agent: {name if (name := _product_token(found[1])) in (agent, '*') else '?'}" if found else line
        )
    return "\n".join(lines)
