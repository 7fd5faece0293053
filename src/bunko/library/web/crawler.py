"""Build a crawler from the settings and close it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bunko.protocols import Store
from bunko.runtime.observer import Observer
from bunko.settings import Settings
from bunko.sources.web.crawl import Crawler
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.robots import Robots
from bunko.sources.web.safe_browsing import SafeBrowsing
from bunko.sources.web.site_cache import HostPacer, SiteCache
from bunko.sources.web.ssrf_guard import Guard
from bunko.sources.web.visit import Visitor
from bunko.types import Tool


@contextmanager
def open_crawler(
    settings: Settings,
    store: Store,
    tool: Tool,
    guard: Guard,
    *,
    observer: Observer,
) -> Iterator[Crawler]:
    """Yield a crawler built from the settings."""
    crawl, safety = settings.crawl, settings.safety
    with ExitStack() as stack:
        cache = stack.enter_context(SiteCache(store.cache))
        fetcher = stack.enter_context(
            Fetcher(guard, agent=crawl.user_agent, timeout=crawl.timeout_seconds, max_bytes=crawl.max_bytes)
        )
        robots = Robots(
            fetcher,
            cache,
            agent=crawl.user_agent,
            ttl=crawl.robots_txt_cache_ttl,
            respect=crawl.respect_robots_txt,
            unreachable=settings.web.robots_unreachable,
            max_delay=crawl.max_crawl_delay,
        )
        safe_browsing = None
        if safety.url_check:
            safe_browsing = stack.enter_context(
                SafeBrowsing(
                    safety.google_safe_browsing_api_key,
                    cache,
                    ttl=safety.cache_ttl,
                    timeout=safety.timeout,
                    fail_open=safety.fail_open,
                    base_url=safety.base_url,
                )
            )
        visitor = Visitor(
            fetcher,
            robots,
            safe_browsing,
            lambda url: store.pages.content(tool.id, url),
            pacer=HostPacer(cache),
            delay=crawl.delay_sec,
            max_redirects=crawl.follow_redirects,
        )
        yield Crawler(
            store,
            tool.id,
            visitor,
            cache,
            concurrency=crawl.concurrency,
            respect_noindex=crawl.respect_robots_txt,
            observer=observer,
        )
