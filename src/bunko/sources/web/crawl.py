"""Crawl pages in parallel, from links and sitemaps, and store them; a page that fails does not stop the others."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from bunko.errors import AddressRefused, BunkoError, SourceError
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, CrawlProgress, Observer
from bunko.runtime.timing import now
from bunko.sources.web.daemon_pool import DaemonPool
from bunko.sources.web.pages import is_document, read_page
from bunko.sources.web.site_cache import SiteCache
from bunko.sources.web.sitemap import site_urls
from bunko.sources.web.visit import (
    FORBIDDEN_REASON,
    CrawlRules,
    LinkFilter,
    Visitor,
    VisitResult,
    failure_reason,
    site_of,
)
from bunko.types import Problem
from bunko.types.records import WebPage

pass

_log = logging.getLogger("bunko.web")

# Pages are written in batches, because each commit waits for the disk.
_BATCH_PAGES = 32
_BATCH_SECONDS = 0.25
# How often the observer is asked whether to stop.
_POLL_SECONDS = 0.1


@dataclass(slots=True)
class CrawlResult:
    """The results of a crawl, by the addresses under which pages are stored."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)  # because robots.txt or the page itself asks for it
    errors: dict[str, BunkoError] = field(default_factory=dict)  # of the problems, by address
    aliases: dict[str, str] = field(default_factory=dict)  # requested address → address under which the page is stored
    omitted_links: int = 0  # links dropped because of the maximum number of pages
    interrupted: bool = False

    @property
    def stored_urls(self) -> list[str]:
        """The visited pages that are now in the library."""
        return [*self.added, *self.updated, *self.unchanged]


class Crawler:
    """Visits pages of one tool and stores them."""

    def __init__(
        self,
        store: Store,
        tool_id: int,
        visitor: Visitor,
        cache: SiteCache | None = None,
        *,
        concurrency: int = 4,
        respect_noindex: bool = True,  # for pages found by following links
        observer: Observer = NO_OBSERVER,
    ) -> None:
        self._store, self._tool_id, self._visitor, self._cache = store, tool_id, visitor, cache or SiteCache()
        self._concurrency, self._respect_noindex = concurrency, respect_noindex
        self._observer = observer
        self._link_filter: LinkFilter | None = None
        self._is_explicit = False  # each page was requested by its address
        self._is_refresh = False  # only stored pages are visited
        self._result = CrawlResult()
        self._pending_pages: dict[str, WebPage] = {}
        self._pending_contents: dict[str, bytes] = {}
        self._pending_removals: list[str] = []
        self._canonicals: dict[str, str] = {}  # page → canonical address it declares
        self._visited_count = 0
        self._order: dict[str, int] = {}  # in which pages were requested

    def add_pages(self, urls: Sequence[str]) -> CrawlResult:
        """Visit pages without following their links; nothing is stored for a new page that fails."""
        canonical_urls: dict[str, None] = {}
        for url in urls:
            try:
                canonical_urls[self._visitor.guard.canonical_url(url)] = None
            except BunkoError as error:
                self._add_problem(url, error)
        records, self._is_explicit = self._known_pages(list(canonical_urls)), True
        result = self._run([records.get(url, WebPage(url)) for url in canonical_urls])
        self._store.pages.write(self._tool_id, remove=[url for url in result.errors if url not in records])
        return result

    def refresh_pages(self, pages: Sequence[WebPage]) -> CrawlResult:
        """Visit stored pages again, with conditional requests."""
        self._is_refresh = True
        return self._run(pages)

    def crawl(self, rules: CrawlRules, started_at: str, *, resume: bool) -> CrawlResult:
        """Visit a page and the pages it links to; with `resume`, continue the crawl that began at `started_at`."""
        links = self._link_filter = LinkFilter(self._visitor.guard, rules)
        rows = {page.url: page for page in self._store.pages.select(self._tool_id)}
        crawled = [page for page in rows.values() if rules.root in (page.url, page.found_on) and page.state != "alias"]
        if resume:
            links.seen_urls.update(page.url for page in rows.values() if page.checked_at >= started_at)
            links.seen_urls.update(page.url for page in crawled)
            taken_urls = (page.url for page in crawled if page.state == "waiting" or page.checked_at >= started_at)
            links.taken_count = sum(map(links.matches, taken_urls))
            return self._run([page for page in crawled if page.state == "waiting"])
        links.seen_urls.add(rules.root)
        links.taken_count = int(links.matches(rules.root))
        sitemap_urls = self._sitemap_urls(links) if rules.sitemap and rules.depth else []
        if self._result.interrupted:
            return self._result
        root_page = replace(rows.get(rules.root, WebPage(rules.root)), state="waiting", depth=0, found_on="")
        waiting = [root_page, *self._waiting_pages(links.take_new_urls(sitemap_urls), 1)]
        # An earlier crawl from this root may have left pages waiting: those with content stay as they are stored.
        leftover = [
            page for page in crawled if page.state == "waiting" and page.url not in {queued.url for queued in waiting}
        ]
        self._store.pages.write(
            self._tool_id,
            upsert=[*waiting, *(replace(page, state="held") for page in leftover if is_document(page))],
            remove=[page.url for page in leftover if not is_document(page)],
        )
        return self._run(waiting)

    def _sitemap_urls(self, links: LinkFilter) -> list[str]:
        """Return the URLs to follow in the sitemaps of a site, read in another thread so that it can be cancelled."""
        visitor, root = self._visitor, links.rules.root
        problems: list[tuple[str, BunkoError]] = []

        def read() -> list[str]:
            urls = site_urls(visitor, root, lambda url, error: problems.append((url, error)))
            return links.matching_urls(urls, visitor.pacer.stop)

        pool: DaemonPool[list[str]] = DaemonPool(1)
        pool.submit(read)
        results: list[list[str]] = []
        try:
            while not results and not self._result.interrupted:
                results = pool.results(_POLL_SECONDS)
                self._result.interrupted = self._observer.is_cancelled()
        finally:
            if not results:
                visitor.pacer.stop.set()
            pool.shut_down()
        for url, error in problems if results else ():
            self._add_problem(url, error)
        return results[0] if results else []

    def _add_problem(self, url: str, error: BunkoError, suffix: str = "") -> None:
        self._result.problems.append(Problem(url, failure_reason(url, error) + suffix))
        self._result.errors[url] = error

    def _waiting_pages(self, urls: Sequence[str], depth: int) -> list[WebPage]:
        """Return records of pages to visit; stored content stays until a newer version is fetched."""
        root = self._link_filter.rules.root if self._link_filter else ""
        records = self._known_pages(urls)
        return [replace(records.get(url, WebPage(url)), state="waiting", depth=depth, found_on=root) for url in urls]

    def _known_pages(self, urls: Sequence[str]) -> dict[str, WebPage]:
        """Return the records of pages, including those not written yet."""
        stored = {page.url: page for page in self._store.pages.select(self._tool_id, urls) if page.state != "alias"}
        return stored | {url: self._pending_pages[url] for url in urls if url in self._pending_pages}

    def _run(self, rows: Sequence[WebPage]) -> CrawlResult:
        """Visit pages until none is left or the crawl is stopped; results are written in this thread."""
        result, waiting, last_write = self._result, deque(rows), time.monotonic()
        pool: DaemonPool[VisitResult] = DaemonPool(self._concurrency)
        try:
            while (waiting or pool.pending) and not result.interrupted:
                while waiting and pool.pending < 2 * self._concurrency:
                    row = waiting.popleft()
                    self._order.setdefault(row.url, len(self._order))
                    pool.submit(partial(self._visit_page, row))
                visits = pool.results(_POLL_SECONDS)
                for visit in visits:
                    waiting.extend(self._record_visit(visit))
                result.interrupted = self._observer.is_cancelled()
                if len(self._pending_pages) >= _BATCH_PAGES or time.monotonic() - last_write > _BATCH_SECONDS:
                    self._write_pending()
                    self._cache.save()
                    last_write = time.monotonic()
                if visits:
                    total = self._visited_count + len(waiting) + pool.pending
                    self._observer.on_crawl(CrawlProgress(self._visited_count, total, len(result.problems)))
            self._write_pending()
            if not result.interrupted:
                self._apply_canonicals()
        finally:
            self._visitor.pacer.stop.set()
            self._write_pending()
            pool.shut_down()
        if self._link_filter is not None:
            result.omitted_links = self._link_filter.omitted_count
        self._sort_result()
        return result

    def _sort_result(self) -> None:
        """Sort the result in the order of the requests, however fast the servers answered."""

        def position(url: str) -> int:
            return self._order.get(url, len(self._order))

        for urls in (self._result.added, self._result.updated, self._result.unchanged):
            urls.sort(key=position)
        for problems in (self._result.problems, self._result.skipped):
            problems.sort(key=lambda problem: position(problem.uri))

    def _visit_page(self, row: WebPage) -> VisitResult:
        links = self._link_filter
        if links is None:
            # A page added by hand may redirect anywhere; a refreshed page must stay on its site.
            site = "" if self._is_explicit else site_of(self._visitor.guard.target(row.url))
            return self._visitor.visit(
                row, site=site, respect_noindex=self._respect_noindex and not self._is_explicit and not is_document(row)
            )
        follow = row.depth < links.rules.depth
        visit = self._visitor.visit(row, site=links.site, with_links=follow, respect_noindex=self._respect_noindex)
        if follow and visit.hints is not None:
            # In this thread: patterns and lookups may take long, and the main thread must notice a cancel.
            visit.urls = links.matching_urls(visit.hints.links, self._visitor.pacer.stop)
            self._visitor.prefetch_threats(links.unseen_urls(visit.urls))
        return visit

    def _write_pending(self) -> None:
        if not self._pending_pages and not self._pending_removals:
            return
        stored_urls = {page.url for page in self._store.pages.select(self._tool_id, list(self._pending_pages))}
        for url, row in list(self._pending_pages.items()):
            # A page deleted in the meantime is not restored by a refresh, and never without content.
            lacks_content = bool(row.content_hash) and url not in self._pending_contents
            if url not in stored_urls and (lacks_content or (self._is_refresh and url in self._order)):
                del self._pending_pages[url]
                for urls in (self._result.updated, self._result.unchanged):
                    if url in urls:
                        urls.remove(url)
        pages = list(self._pending_pages.values())
        self._store.pages.write(
            self._tool_id, upsert=pages, contents=self._pending_contents, remove=self._pending_removals
        )
        self._pending_pages, self._pending_contents, self._pending_removals = {}, {}, []

    def _record_visit(self, visit: VisitResult) -> list[WebPage]:
        """Record the result of one visit; return the pages to visit next."""
        row, links = visit.row, self._link_filter
        self._visited_count += 1
        checked = replace(row, state="held" if is_document(row) else "failed", checked_at=now())
        if visit.skip_reason and self._is_explicit:
            visit.error = AddressRefused(
                f"{row.url} is not fetched: {visit.skip_reason}",
                hint="If the site is yours, set crawl.respect_robots_txt to false.",
                reason="robots" if visit.skip_reason == FORBIDDEN_REASON else "other",
            )
        if visit.error is not None:
            self._record_failure(checked, visit.error)
            if isinstance(visit.error, AddressRefused) and visit.error.reason == "threat":
                self._withdraw_pages([row.url, visit.final_url], visit.error)
            return []
        if visit.skip_reason:
            self._pending_pages[row.url] = replace(checked, problem=visit.skip_reason)
            self._result.skipped.append(Problem(row.url, visit.skip_reason))
        elif links is not None and not links.matches(row.url):
            # The first page of a crawl may be read for its links only. Its record stays, so that the crawl can resume.
            self._pending_pages[row.url] = checked
        else:
            self._record_page(visit, checked)
        return self._follow_links(visit)

    def _record_failure(self, row: WebPage, error: BunkoError) -> None:
        self._pending_pages[row.url] = replace(
            row, status=getattr(error, "status", 0), problem=failure_reason(row.url, error)
        )
        is_threat = isinstance(error, AddressRefused) and error.reason == "threat"
        fate = "its stored version was removed" if is_threat else "the stored version is kept"
        self._add_problem(row.url, error, f"; {fate}" if is_document(row) else "")

    def _withdraw_pages(self, urls: Sequence[str], error: AddressRefused) -> None:
        """Delete the content of dangerous pages, so that no search returns it; their records say why."""
        for url, row in self._known_pages(urls).items():
            self._pending_pages[url] = replace(
                row, state="failed", etag="", last_modified="", content_hash="", problem=failure_reason(url, error)
            )
            self._pending_contents.pop(url, None)
            self._pending_removals.append(url)  # with its content; the record is written again

    def _record_page(self, visit: VisitResult, row: WebPage) -> None:
        page, hints, result = visit.page, visit.hints, self._result
        if page is None or hints is None:
            raise RuntimeError(f"{visit.final_url} has neither a page nor an error")
        if hints.canonical not in ("", visit.final_url):
            self._canonicals[visit.final_url] = hints.canonical
        if page.not_modified:
            self._pending_pages[row.url] = replace(row, status=page.status, problem="")
            result.unchanged.append(row.url)
            return
        digest = sha256(page.content).hexdigest()
        is_same_url = visit.final_url == row.url
        before = row if is_same_url else self._known_pages([visit.final_url]).get(visit.final_url)
        has_content = before is not None and (before.size > 0 or before.url in self._pending_contents)
        is_unchanged = has_content and before is not None and before.content_hash == digest
        result_urls = (
            result.unchanged if is_unchanged else result.updated if before and is_document(before) else result.added
        )
        result_urls.append(visit.final_url)
        self._pending_pages[visit.final_url] = replace(
            row,
            url=visit.final_url,
            state="held",
            status=page.status,
            media_type=page.media_type,
            charset=page.charset,
            # Validators are valid only for the address that was requested.
            etag=page.etag if is_same_url else "",
            last_modified=page.last_modified if is_same_url else "",
            fetched_at=before.fetched_at if is_unchanged and before else page.fetched_at,
            content_hash=digest,
            problem="",
        )
        if not is_unchanged:
            self._pending_contents[visit.final_url] = page.content
        if not is_same_url:
            self._record_alias(row, visit.final_url)

    def _record_alias(self, row: WebPage, url: str) -> None:
        self._result.aliases[row.url] = url
        self._pending_removals.append(row.url)  # with its content
        self._pending_pages[row.url] = WebPage(row.url, "alias", row.depth, url, checked_at=row.checked_at)

    def _follow_links(self, visit: VisitResult) -> list[WebPage]:
        if self._link_filter is None:
            return []
        pages = self._waiting_pages(self._link_filter.take_new_urls(visit.urls), visit.row.depth + 1)
        # In the same transaction as the page itself, so that its links are not lost if the process is killed.
        self._pending_pages |= {page.url: page for page in pages}
        return pages

    def _apply_canonicals(self) -> None:
        """Store each page under its canonical address, if that is on its site.

        Some sites declare one address on every page: if another text is stored there, a page keeps its own address.
        """
        guard = self._visitor.guard
        for url, canonical in sorted(self._canonicals.items(), key=self._canonical_priority):
            if self._observer.is_cancelled():
                self._result.interrupted = True
                return
            try:
                source, target = guard.target(url), guard.target(canonical)
            except BunkoError:
                continue
            canonical_url = str(target)
            if canonical_url == url or site_of(source) != site_of(target):
                continue
            records = self._known_pages([url, canonical_url])
            row, other = records.get(url), records.get(canonical_url)
            if row is None:
                continue
            if other is None:
                self._move_page(row, canonical_url)
            elif is_document(other) and self._page_text(other) == self._page_text(row):
                self._record_alias(row, canonical_url)
                self._rename_in_result(url, canonical_url, already_held=True)
            self._write_pending()

    def _canonical_priority(self, claim: tuple[str, str]) -> tuple[bool, int]:
        # Pages that differ only in the query come first; the order of requests decides, not the speed of servers.
        url, canonical = claim
        return url.partition("?")[0] != canonical.partition("?")[0], self._order.get(url, 0)

    def _move_page(self, row: WebPage, canonical_url: str) -> None:
        content = self._store.pages.content(self._tool_id, row.url)
        if content is None:
            return
        self._pending_pages[canonical_url] = replace(row, url=canonical_url, etag="", last_modified="")
        self._pending_contents[canonical_url] = content
        self._record_alias(row, canonical_url)
        self._rename_in_result(row.url, canonical_url)

    def _rename_in_result(self, url: str, canonical_url: str, *, already_held: bool = False) -> None:
        result = self._result
        for urls in (result.added, result.updated, result.unchanged):
            if url in urls:
                urls.remove(url)
                if canonical_url not in result.stored_urls:
                    (result.unchanged if already_held else urls).append(canonical_url)

    def _page_text(self, row: WebPage) -> str:
        content = self._store.pages.content(self._tool_id, row.url) or b""
        try:
            # Without the URL, so that only the texts are compared.
            return read_page(content, media_type=row.media_type, charset=row.charset).text
        except SourceError:
            return row.content_hash
