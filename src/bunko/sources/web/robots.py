"""What a site asks of crawlers: a URL goes in; whether it may be fetched, how slowly, and the sitemaps come out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from bunko.errors import FetchFailed, Refused
from bunko.sources.web.fetch import Fetcher, Page
from bunko.sources.web.ssrf_guard import Target

if TYPE_CHECKING:
    from protego import Protego

log = logging.getLogger(__name__)

_MAX_BYTES = 500 << 10  # RFC 9309, 2.5: at least so much is read
_HOPS = 5  # RFC 9309, 2.3.1.2
_ORIGINS = 1_000
_RETRY = 60.0  # seconds until a robots.txt that failed is asked for again
_LONGEST_DELAY = 86_400.0
_LONG_DELAY = 30.0  # longer than anybody expects to wait without being told

_TOKEN = re.compile(r"\*(?!\S)|[A-Za-z0-9_-]*")
_AGENT = re.compile(r"\s*user[-\s]*agent\s*[:\s]([^#]*)", re.IGNORECASE)


@dataclass(slots=True)
class _Held:
    """The rules of an origin: None stands for everything being allowed."""

    lock: Lock = field(default_factory=Lock)
    until: float = 0.0
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
        self._agent = _token(agent)
        self._held: dict[str, _Held] = {}
        self._lock = Lock()

    def allowed(self, url: str) -> bool:
        """Say whether the site lets us fetch a page."""
        if not self._respect:
            return True
        target = self._fetcher.guard.target(url)
        rules = self._rules(target)
        return rules is None or bool(rules.can_fetch(str(target), self._agent))

    def delay(self, url: str) -> float:
        """Return the seconds that the site wants between two requests, 0 if it does not say."""
        return self._wanted(self._rules(self._fetcher.guard.target(url)) if self._respect else None)

    def sitemaps(self, url: str) -> tuple[str, ...]:
        """Return the addresses of the site's sitemaps, without those that may not be fetched."""
        rules = self._rules(self._fetcher.guard.target(url))
        found: dict[str, None] = {}
        for address in rules.sitemaps if rules else ():
            try:
                found[self._fetcher.guard.url(address)] = None
            except Refused as error:
                log.warning("A sitemap of %s is left out. %s", url, error.message)
        return tuple(found)

    def _wanted(self, rules: Protego | None) -> float:
        return 0.0 if rules is None else min(float(rules.crawl_delay(self._agent) or 0.0), _LONGEST_DELAY)

    def _rules(self, target: Target) -> Protego | None:
        with self._lock:
            held = self._held.get(target.origin)
            if held is None:
                if len(self._held) >= _ORIGINS:
                    del self._held[next(iter(self._held))]
                held = self._held[target.origin] = _Held()
        with held.lock:  # threads with pages of one site wait for the one that asks
            if self._now() >= held.until:
                try:
                    held.rules = self._fetched(target.origin)
                    held.until = self._now() + self._ttl
                    if self._respect and (wanted := self._wanted(held.rules)) > _LONG_DELAY:
                        log.warning("%s asks for %g seconds between two pages, and gets them.", target.origin, wanted)
                except (FetchFailed, Refused) as error:
                    log.warning("Everything on %s is taken as allowed. %s", target.origin, error.message)
                    held.rules = None
                    held.until = self._now() + min(self._ttl, _RETRY)
            return held.rules

    def _fetched(self, origin: str) -> Protego | None:
        page = self._fetcher.ask(f"{origin}/robots.txt", cut_at=_MAX_BYTES)
        for _ in range(_HOPS):
            if not 300 <= page.status < 400 or not page.location:
                break
            page = self._fetcher.ask(self._onward(page), cut_at=_MAX_BYTES)
        if 200 <= page.status < 300:
            from protego import Protego

            return Protego.parse(_ours(page.content.decode("utf-8-sig", "replace"), self._agent))
        if 400 <= page.status < 500 and page.status != 429:
            return None
        raise FetchFailed(f"{page.url} was not fetched: the server answered {page.status}", status=page.status)

    def _onward(self, page: Page) -> str:
        here = self._fetcher.guard.target(page.url)
        there = self._fetcher.guard.onward(here, page.location)
        if here.host.removeprefix("www.") != there.host.removeprefix("www."):
            raise Refused(f"{page.url} is not followed to another site, {there.host}")
        return str(there)


def _token(agent: str) -> str:
    """Return the product token that rules are matched by: bunkobot of BunkoBot/1.0 (+https://…)."""
    found = _TOKEN.match(agent.strip())
    return found[0].lower() if found else ""


def _ours(text: str, agent: str) -> str:
    """Return robots.txt with the names of all other agents made one.

    The parser takes any beginning of our name for us, where RFC 9309 wants the whole; and it keeps every rule once for
    each name above it, so that 500 KB of names and rules would take minutes and gigabytes.
    """
    lines = []
    for line in text.splitlines():
        found = _AGENT.match(line)
        # A character that no agent has, so that it matches none.
        lines.append(f"User-agent: {name if (name := _token(found[1])) in (agent, '*') else '?'}" if found else line)
    return "\n".join(lines)
