"""Addresses in, their pages in the library out: asked for politely, and one that fails stops none of the others."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from bunko.errors import AddressRefused, BunkoError, SourceError
from bunko.protocols import Store
from bunko.records import WebPage
from bunko.sources.web import sitemap
from bunko.sources.web.fetch import SITEMAP_TYPES
from bunko.sources.web.links import CrawlRules, LinkFilter, site_of
from bunko.sources.web.pages import is_document, read_page
from bunko.sources.web.threads import DaemonPool
from bunko.sources.web.visit import FORBIDDEN_REASON, Visitor, VisitResult, failure_reason
from bunko.timing import now
from bunko.types import Problem

_log = logging.getLogger("bunko.web")

# Pages are written together, because each commit waits for the disk.
_BATCH_PAGES = 32
_BATCH_SECONDS = 0.25
# How often whoever wants to stop us is asked.
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class CrawlProgress:
    """How far a crawl has come."""

    pages: int  # asked for
    total: int  # known so far
    problems: int


@dataclass(slots=True)
class CrawlResult:
    """What came of asking for some pages, by the addresses they are held under."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)  # left alone because robots.txt or the page itself asks for it
    errors: dict[str, BunkoError] = field(default_factory=dict)  # of the problems, by address
    aliases: dict[str, str] = field(default_factory=dict)  # the address asked for → the one it is held under
    omitted_links: int = 0  # links that there was no room for
    interrupted: bool = False

    @property
    def held_urls(self) -> list[str]:
        """The pages that were asked for and that the library has now."""
        return [*self.added, *self.updated, *self.unchanged]


class Crawler:
    """Asks for pages of one tool and keeps what comes."""

    def __init__(
        self,
        store: Store,
        tool_id: int,
        visitor: Visitor,
        *,
        concurrency: int = 4,
        respect_noindex: bool = True,  # whether pages that are found may refuse to be kept
        progress: Callable[[CrawlProgress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store, self._tool_id, self._visitor = store, tool_id, visitor
        self._concurrency, self._respect_noindex = concurrency, respect_noindex
        self._progress, self._stopped = progress, stopped
        self._link_filter: LinkFilter | None = None
        self._is_explicit = False  # somebody asked for each page by its address
        self._is_refresh = False  # only pages that are there are asked for
        self._result = CrawlResult()
        self._pending_pages: dict[str, WebPage] = {}
        self._pending_contents: dict[str, bytes] = {}
        self._pending_removals: list[str] = []
        self._canonicals: dict[str, str] = {}  # the address that each page calls its own
        self._visited_count = 0
        self._order: dict[str, int] = {}  # of the pages asked for

    def add_pages(self, urls: Sequence[str]) -> CrawlResult:
        """Ask for some pages, and for nothing that they lead to; of one that never came nothing is kept."""
        wanted: dict[str, None] = {}
        for url in urls:
            try:
                wanted[self._visitor.guard.canonical_url(url)] = None
            except BunkoError as error:
                self._add_problem(url, error)
        known, self._is_explicit = self._known_pages(list(wanted)), True
        done = self._run([known.get(url, WebPage(url)) for url in wanted])
        self._store.write_pages(self._tool_id, remove=[url for url in done.errors if url not in known])
        return done

    def refresh_pages(self, pages: Sequence[WebPage]) -> CrawlResult:
        """Ask again for pages that are known; what did not change is not sent again."""
        self._is_refresh = True
        return self._run(pages)

    def crawl(self, rules: CrawlRules, started_at: str, *, resume: bool) -> CrawlResult:
        """Ask for a page and for what it leads to; a crawl that was interrupted goes on with what waits."""
        links = self._link_filter = LinkFilter(self._visitor.guard, rules)
        rows = {page.url: page for page in self._store.pages(self._tool_id)}
        mine = [page for page in rows.values() if rules.root in (page.url, page.found_on) and page.state != "alias"]
        if resume:
            links.seen_urls.update(page.url for page in rows.values() if page.checked_at >= started_at)
            links.seen_urls.update(page.url for page in mine)
            counted = (page.url for page in mine if page.state == "waiting" or page.checked_at >= started_at)
            links.taken_count = sum(map(links.matches, counted))
            return self._run([page for page in mine if page.state == "waiting"])
        links.seen_urls.add(rules.root)
        links.taken_count = int(links.matches(rules.root))
        first = replace(rows.get(rules.root, WebPage(rules.root)), state="waiting", depth=0, found_on="")
        waiting = [
            first,
            *(self._waiting_pages(self._sitemap_links(links), 1) if rules.sitemap and rules.depth else []),
        ]
        # What another crawl from here left waiting is not waited for any more.
        left = [page for page in mine if page.state == "waiting" and page.url not in {one.url for one in waiting}]
        self._store.write_pages(
            self._tool_id,
            upsert=[*waiting, *(replace(page, state="held") for page in left if is_document(page))],
            remove=[page.url for page in left if not is_document(page)],
        )
        return self._run(waiting)

    def _sitemap_links(self, links: LinkFilter) -> list[str]:
        """Return what the sitemaps of a site and its llms.txt name."""
        visitor, root = self._visitor, links.rules.root
        here = visitor.guard.target(root)

        def get(url: str) -> bytes:
            target = visitor.guard.link_target(here, url)
            visitor.check_url(str(target))
            if not visitor.robots.allows(str(target)):
                raise SourceError(FORBIDDEN_REASON)
            visitor.wait_for_host(target)
            return visitor.fetcher.fetch(str(target), accept=(*SITEMAP_TYPES, "text/markdown")).content

        try:
            visitor.check_url(root)
        except BunkoError:
            return []  # told when the page itself is asked for; until then not even robots.txt is
        own = f"{here.origin}/llms.txt"
        maps = list(visitor.robots.sitemaps(root)) or [f"{here.origin}/sitemap.xml"]
        found = list(sitemap.sitemap_urls(get, maps, self._add_problem))
        try:
            found += sitemap.llms_txt_urls(get, own)
        except SourceError as error:
            _log.debug("%s: %s", own, error.message)  # few sites have one
        return links.take_new_links(found)

    def _add_problem(self, url: str, error: BunkoError, suffix: str = "") -> None:
        self._result.problems.append(Problem(url, failure_reason(url, error) + suffix))
        self._result.errors[url] = error

    def _waiting_pages(self, urls: Sequence[str], depth: int) -> list[WebPage]:
        """Return pages to ask for; what was held before stays until something newer comes."""
        root = self._link_filter.rules.root if self._link_filter else ""
        known = self._known_pages(urls)
        return [replace(known.get(url, WebPage(url)), state="waiting", depth=depth, found_on=root) for url in urls]

    def _known_pages(self, urls: Sequence[str]) -> dict[str, WebPage]:
        """Return what is known of some pages, what is about to be written among it."""
        found = {page.url: page for page in self._store.pages(self._tool_id, urls) if page.state != "alias"}
        return found | {url: self._pending_pages[url] for url in urls if url in self._pending_pages}

    def _run(self, rows: Sequence[WebPage]) -> CrawlResult:
        """Ask for pages until none is left or somebody wants to stop; what comes is written down in this thread."""
        done, waiting, written = self._result, deque(rows), time.monotonic()
        crew: DaemonPool[VisitResult] = DaemonPool(self._concurrency)
        try:
            while (waiting or crew.pending) and not done.interrupted:
                while waiting and crew.pending < 2 * self._concurrency:
                    row = waiting.popleft()
                    self._order.setdefault(row.url, len(self._order))
                    crew.submit(partial(self._visit_page, row))
                ended = crew.results(_POLL_SECONDS)
                for one in ended:
                    waiting.extend(self._record_visit(one))
                done.interrupted = self._stopped()
                if len(self._pending_pages) >= _BATCH_PAGES or time.monotonic() - written > _BATCH_SECONDS:
                    self._write_pending()
                    written = time.monotonic()
                if ended:
                    total = self._visited_count + len(waiting) + crew.pending
                    self._progress(CrawlProgress(self._visited_count, total, len(done.problems)))
            self._write_pending()
            if not done.interrupted:
                self._apply_canonicals()
        finally:
            self._visitor.pacer.stop.set()
            self._write_pending()
            crew.shut_down()
        if self._link_filter is not None:
            done.omitted_links = self._link_filter.omitted_count
        self._sort_result()
        return done

    def _sort_result(self) -> None:
        """Put what came into the order in which it was asked for, however the servers hurried."""

        def place(url: str) -> int:
            return self._order.get(url, len(self._order))

        for urls in (self._result.added, self._result.updated, self._result.unchanged):
            urls.sort(key=place)
        for problems in (self._result.problems, self._result.skipped):
            problems.sort(key=lambda one: place(one.uri))

    def _visit_page(self, row: WebPage) -> VisitResult:
        if self._link_filter is not None:
            follow = row.depth < self._link_filter.rules.depth
            return self._visitor.visit(
                row, site=self._link_filter.site, with_links=follow, respect_noindex=self._respect_noindex
            )
        # What somebody added by hand may lead anywhere; what is looked at again stays where it was.
        site = "" if self._is_explicit else site_of(self._visitor.guard.target(row.url))
        return self._visitor.visit(
            row, site=site, respect_noindex=self._respect_noindex and not self._is_explicit and not is_document(row)
        )

    def _write_pending(self) -> None:
        if not self._pending_pages and not self._pending_removals:
            return
        there = {page.url for page in self._store.pages(self._tool_id, list(self._pending_pages))}
        for url, row in list(self._pending_pages.items()):
            # Who was deleted meanwhile does not come back by being looked at again, and never without content.
            bare = bool(row.content_hash) and url not in self._pending_contents
            if url not in there and (bare or (self._is_refresh and url in self._order)):
                del self._pending_pages[url]
                for some in (self._result.updated, self._result.unchanged):
                    if url in some:
                        some.remove(url)
        put = list(self._pending_pages.values())
        self._store.write_pages(
            self._tool_id, upsert=put, contents=self._pending_contents, remove=self._pending_removals
        )
        self._pending_pages, self._pending_contents, self._pending_removals = {}, {}, []

    def _record_visit(self, visit: VisitResult) -> list[WebPage]:
        """Note what came of one page; return the pages it leads to."""
        row, links = visit.row, self._link_filter
        self._visited_count += 1
        checked = replace(row, state="held" if is_document(row) else "failed", checked_at=now())
        if visit.skip_reason and self._is_explicit:
            visit.error = AddressRefused(
                f"{row.url} is not fetched: {visit.skip_reason}",
                hint="If the site is yours, set crawl.respect_robots_txt to false.",
            )
        if visit.error is not None:
            self._record_failure(checked, visit.error)
            return []
        if visit.skip_reason:
            self._pending_pages[row.url] = replace(checked, problem=visit.skip_reason)
            self._result.skipped.append(Problem(row.url, visit.skip_reason))
        elif links is not None and not links.matches(row.url):
            # A crawl's first page may be read for its links alone. It stays known, so that the crawl can go on.
            self._pending_pages[row.url] = checked
        else:
            self._record_page(visit, checked)
        return self._follow_links(visit)

    def _record_failure(self, row: WebPage, error: BunkoError) -> None:
        self._pending_pages[row.url] = replace(
            row, status=getattr(error, "status", 0), problem=failure_reason(row.url, error)
        )
        self._add_problem(row.url, error, "; what it said before is kept" if is_document(row) else "")

    def _record_page(self, visit: VisitResult, row: WebPage) -> None:
        page, leads, done = visit.page, visit.hints, self._result
        if page is None or leads is None:
            raise RuntimeError(f"{visit.final_url} neither came nor failed")
        if leads.canonical not in ("", visit.final_url):
            self._canonicals[visit.final_url] = leads.canonical
        if page.not_modified:
            self._pending_pages[row.url] = replace(row, status=page.status, problem="")
            done.unchanged.append(row.url)
            return
        digest = sha256(page.content).hexdigest()
        own = visit.final_url == row.url
        before = row if own else self._known_pages([visit.final_url]).get(visit.final_url)
        whole = before is not None and (before.size > 0 or before.url in self._pending_contents)
        same = whole and before is not None and before.content_hash == digest
        into = done.unchanged if same else done.updated if before and is_document(before) else done.added
        into.append(visit.final_url)
        self._pending_pages[visit.final_url] = replace(
            row,
            url=visit.final_url,
            state="held",
            status=page.status,
            media_type=page.media_type,
            charset=page.charset,
            # What tells a page from its newer self holds only for the address that was asked.
            etag=page.etag if own else "",
            last_modified=page.last_modified if own else "",
            fetched_at=before.fetched_at if same and before else page.fetched_at,
            content_hash=digest,
            problem="",
        )
        if not same:
            self._pending_contents[visit.final_url] = page.content
        if not own:
            self._record_alias(row, visit.final_url)

    def _record_alias(self, row: WebPage, url: str) -> None:
        self._result.aliases[row.url] = url
        self._pending_removals.append(row.url)  # and what it held
        self._pending_pages[row.url] = WebPage(row.url, "alias", row.depth, url, checked_at=row.checked_at)

    def _follow_links(self, visit: VisitResult) -> list[WebPage]:
        links, row = self._link_filter, visit.row
        if links is None or visit.hints is None or row.depth >= links.rules.depth:
            return []
        fresh = links.take_new_links(visit.hints.links)
        self._visitor.prefetch_threats(fresh)
        found = self._waiting_pages(fresh, row.depth + 1)
        # In the same transaction as the page itself: what it led to is not forgotten when we are killed.
        self._pending_pages |= {page.url: page for page in found}
        return found

    def _apply_canonicals(self) -> None:
        """Let each page be held under the address it names as its own, if that is on its site.

        Some sites name one address on every page: where another text is held there, a page keeps its own address.
        """
        guard = self._visitor.guard
        for url, claim in sorted(self._canonicals.items(), key=self._canonical_priority):
            try:
                own, target = guard.target(url), guard.target(claim)
            except BunkoError:
                continue
            name = str(target)
            if name == url or site_of(own) != site_of(target):
                continue
            known = self._known_pages([url, name])
            row, other = known.get(url), known.get(name)
            if row is None:
                continue
            if other is None:
                self._move_page(row, name)
            elif is_document(other) and self._page_text(other) == self._page_text(row):
                self._record_alias(row, name)
                self._rename_in_result(url, name, already_held=True)
            self._write_pending()

    def _canonical_priority(self, claim: tuple[str, str]) -> tuple[bool, int]:
        # What differs in its query alone is surely the page it names; and servers that hurry decide nothing.
        url, name = claim
        return url.partition("?")[0] != name.partition("?")[0], self._order.get(url, 0)

    def _move_page(self, row: WebPage, name: str) -> None:
        content = self._store.page_content(self._tool_id, row.url)
        if content is None:
            return
        self._pending_pages[name] = replace(row, url=name, etag="", last_modified="")
        self._pending_contents[name] = content
        self._record_alias(row, name)
        self._rename_in_result(row.url, name)

    def _rename_in_result(self, url: str, name: str, *, already_held: bool = False) -> None:
        done = self._result
        for some in (done.added, done.updated, done.unchanged):
            if url in some:
                some.remove(url)
                if name not in done.held_urls:
                    (done.unchanged if already_held else some).append(name)

    def _page_text(self, row: WebPage) -> str:
        content = self._store.page_content(self._tool_id, row.url) or b""
        try:
            # As if both stood at one address: only what they say is compared.
            return read_page(content, media_type=row.media_type, charset=row.charset).text
        except SourceError:
            return row.content_hash
