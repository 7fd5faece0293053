"""Addresses in, their pages in the library out: asked for politely, and one that fails stops none of the others."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256

from bunko.errors import BunkoError, Refused, SourceError
from bunko.protocols import Store
from bunko.records import WebPage
from bunko.sources.web import sitemap
from bunko.sources.web.fetch import SITEMAPS
from bunko.sources.web.links import Links, Rules, site_of
from bunko.sources.web.pages import is_document, read
from bunko.sources.web.threads import Crew
from bunko.sources.web.visit import FORBIDDEN, Visit, Visitor, reason
from bunko.timing import now
from bunko.types import Problem

_log = logging.getLogger("bunko.web")

# Pages are written together, because each commit waits for the disk.
_BATCH_PAGES = 32
_BATCH_SECONDS = 0.25
# How often whoever wants to stop us is asked.
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a crawl has come."""

    pages: int  # asked for
    total: int  # known so far
    problems: int


@dataclass(slots=True)
class Done:
    """What came of asking for some pages, by the addresses they are held under."""

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)  # left alone because robots.txt or the page itself asks for it
    errors: dict[str, BunkoError] = field(default_factory=dict)  # of the problems, by address
    aliases: dict[str, str] = field(default_factory=dict)  # the address asked for → the one it is held under
    left: int = 0  # links that there was no room for
    interrupted: bool = False

    @property
    def held(self) -> list[str]:
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
        indexing: bool = True,  # whether pages that are found may refuse to be kept
        progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store, self._tool_id, self._visitor = store, tool_id, visitor
        self._concurrency, self._indexing = concurrency, indexing
        self._progress, self._stopped = progress, stopped
        self._links: Links | None = None
        self._named = False  # somebody asked for each page by its address
        self._again = False  # only pages that are there are asked for
        self._done = Done()
        self._put: dict[str, WebPage] = {}
        self._contents: dict[str, bytes] = {}
        self._gone: list[str] = []
        self._claims: dict[str, str] = {}  # the address that each page calls its own
        self._asked = 0
        self._order: dict[str, int] = {}  # of the pages asked for

    def add(self, urls: Sequence[str]) -> Done:
        """Ask for some pages, and for nothing that they lead to; of one that never came nothing is kept."""
        wanted: dict[str, None] = {}
        for url in urls:
            try:
                wanted[self._visitor.guard.url(url)] = None
            except BunkoError as error:
                self._note(url, error)
        known, self._named = self._known(list(wanted)), True
        done = self._run([known.get(url, WebPage(url)) for url in wanted])
        self._store.write_pages(self._tool_id, remove=[url for url in done.errors if url not in known])
        return done

    def refresh(self, pages: Sequence[WebPage]) -> Done:
        """Ask again for pages that are known; what did not change is not sent again."""
        self._again = True
        return self._run(pages)

    def crawl(self, rules: Rules, begun: str, *, goes_on: bool) -> Done:
        """Ask for a page and for what it leads to; a crawl that was interrupted goes on with what waits."""
        links = self._links = Links(self._visitor.guard, rules)
        rows = {page.url: page for page in self._store.pages(self._tool_id)}
        mine = [page for page in rows.values() if rules.root in (page.url, page.found_on) and page.state != "alias"]
        if goes_on:
            links.seen.update(page.url for page in rows.values() if page.checked_at >= begun)
            links.seen.update(page.url for page in mine)
            counted = (page.url for page in mine if page.state == "waiting" or page.checked_at >= begun)
            links.taken = sum(map(links.fits, counted))
            return self._run([page for page in mine if page.state == "waiting"])
        links.seen.add(rules.root)
        links.taken = int(links.fits(rules.root))
        first = replace(rows.get(rules.root, WebPage(rules.root)), state="waiting", depth=0, found_on="")
        waiting = [first, *(self._rows(self._mapped(links), 1) if rules.sitemap and rules.depth else [])]
        # What another crawl from here left waiting is not waited for any more.
        left = [page for page in mine if page.state == "waiting" and page.url not in {one.url for one in waiting}]
        self._store.write_pages(
            self._tool_id,
            put=[*waiting, *(replace(page, state="held") for page in left if is_document(page))],
            remove=[page.url for page in left if not is_document(page)],
        )
        return self._run(waiting)

    def _mapped(self, links: Links) -> list[str]:
        """Return what the sitemaps of a site and its llms.txt name."""
        visitor, root = self._visitor, links.rules.root
        here = visitor.guard.target(root)

        def get(url: str) -> bytes:
            target = visitor.guard.sent(here, url)
            visitor.check(str(target))
            if not visitor.robots.allowed(str(target)):
                raise SourceError(FORBIDDEN)
            visitor.wait(target)
            return visitor.fetcher.fetch(str(target), accept=(*SITEMAPS, "text/markdown")).content

        try:
            visitor.check(root)
        except BunkoError:
            return []  # told when the page itself is asked for; until then not even robots.txt is
        own = f"{here.origin}/llms.txt"
        maps = list(visitor.robots.sitemaps(root)) or [f"{here.origin}/sitemap.xml"]
        found = list(sitemap.named(get, maps, self._note))
        try:
            found += sitemap.listed(get, own)
        except SourceError as error:
            _log.debug("%s: %s", own, error.message)  # few sites have one
        return links.fresh(found)

    def _note(self, url: str, error: BunkoError, kept: str = "") -> None:
        self._done.problems.append(Problem(url, reason(url, error) + kept))
        self._done.errors[url] = error

    def _rows(self, urls: Sequence[str], depth: int) -> list[WebPage]:
        """Return pages to ask for; what was held before stays until something newer comes."""
        root = self._links.rules.root if self._links else ""
        known = self._known(urls)
        return [replace(known.get(url, WebPage(url)), state="waiting", depth=depth, found_on=root) for url in urls]

    def _known(self, urls: Sequence[str]) -> dict[str, WebPage]:
        """Return what is known of some pages, what is about to be written among it."""
        found = {page.url: page for page in self._store.pages(self._tool_id, urls) if page.state != "alias"}
        return found | {url: self._put[url] for url in urls if url in self._put}

    def _run(self, rows: Sequence[WebPage]) -> Done:
        """Ask for pages until none is left or somebody wants to stop; what comes is written down in this thread."""
        done, waiting, written = self._done, deque(rows), time.monotonic()
        crew: Crew[Visit] = Crew(self._concurrency)
        try:
            while (waiting or crew.busy) and not done.interrupted:
                while waiting and crew.busy < 2 * self._concurrency:
                    row = waiting.popleft()
                    self._order.setdefault(row.url, len(self._order))
                    crew.begin(partial(self._visit, row))
                ended = crew.results(_LOOK_SECONDS)
                for one in ended:
                    waiting.extend(self._take(one))
                done.interrupted = self._stopped()
                if len(self._put) >= _BATCH_PAGES or time.monotonic() - written > _BATCH_SECONDS:
                    self._write()
                    written = time.monotonic()
                if ended:
                    total = self._asked + len(waiting) + crew.busy
                    self._progress(Progress(self._asked, total, len(done.problems)))
            self._write()
            if not done.interrupted:
                self._settle()
        finally:
            self._visitor.pace.stop.set()
            self._write()
            crew.dismiss()
        if self._links is not None:
            done.left = self._links.left
        self._sort()
        return done

    def _sort(self) -> None:
        """Put what came into the order in which it was asked for, however the servers hurried."""

        def place(url: str) -> int:
            return self._order.get(url, len(self._order))

        for urls in (self._done.added, self._done.updated, self._done.unchanged):
            urls.sort(key=place)
        for problems in (self._done.problems, self._done.skipped):
            problems.sort(key=lambda one: place(one.uri))

    def _visit(self, row: WebPage) -> Visit:
        if self._links is not None:
            follow = row.depth < self._links.rules.depth
            return self._visitor.visit(row, site=self._links.site, links=follow, indexing=self._indexing)
        # What somebody added by hand may lead anywhere; what is looked at again stays where it was.
        site = "" if self._named else site_of(self._visitor.guard.target(row.url))
        return self._visitor.visit(row, site=site, indexing=self._indexing and not self._named and not is_document(row))

    def _write(self) -> None:
        if not self._put and not self._gone:
            return
        there = {page.url for page in self._store.pages(self._tool_id, list(self._put))}
        for url, row in list(self._put.items()):
            # Who was deleted meanwhile does not come back by being looked at again, and never without content.
            bare = bool(row.content_hash) and url not in self._contents
            if url not in there and (bare or (self._again and url in self._order)):
                del self._put[url]
                for some in (self._done.updated, self._done.unchanged):
                    if url in some:
                        some.remove(url)
        put = list(self._put.values())
        self._store.write_pages(self._tool_id, put=put, contents=self._contents, remove=self._gone)
        self._put, self._contents, self._gone = {}, {}, []

    def _take(self, visit: Visit) -> list[WebPage]:
        """Note what came of one page; return the pages it leads to."""
        row, links = visit.row, self._links
        self._asked += 1
        checked = replace(row, state="held" if is_document(row) else "failed", checked_at=now())
        if visit.skipped and self._named:
            visit.error = Refused(
                f"{row.url} is not fetched: {visit.skipped}",
                hint="If the site is yours, set crawl.respect_robots_txt to false.",
            )
        if visit.error is not None:
            self._failed(checked, visit.error)
            return []
        if visit.skipped:
            self._put[row.url] = replace(checked, problem=visit.skipped)
            self._done.skipped.append(Problem(row.url, visit.skipped))
        elif links is not None and not links.fits(row.url):
            # A crawl's first page may be read for its links alone. It stays known, so that the crawl can go on.
            self._put[row.url] = checked
        else:
            self._keep(visit, checked)
        return self._onward(visit)

    def _failed(self, row: WebPage, error: BunkoError) -> None:
        self._put[row.url] = replace(row, status=getattr(error, "status", 0), problem=reason(row.url, error))
        self._note(row.url, error, "; what it said before is kept" if is_document(row) else "")

    def _keep(self, visit: Visit, row: WebPage) -> None:
        page, leads, done = visit.page, visit.leads, self._done
        if page is None or leads is None:
            raise RuntimeError(f"{visit.url} neither came nor failed")
        if leads.canonical not in ("", visit.url):
            self._claims[visit.url] = leads.canonical
        if page.not_modified:
            self._put[row.url] = replace(row, status=page.status, problem="")
            done.unchanged.append(row.url)
            return
        digest = sha256(page.content).hexdigest()
        own = visit.url == row.url
        before = row if own else self._known([visit.url]).get(visit.url)
        whole = before is not None and (before.size > 0 or before.url in self._contents)
        same = whole and before is not None and before.content_hash == digest
        into = done.unchanged if same else done.updated if before and is_document(before) else done.added
        into.append(visit.url)
        self._put[visit.url] = replace(
            row,
            url=visit.url,
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
            self._contents[visit.url] = page.content
        if not own:
            self._alias(row, visit.url)

    def _alias(self, row: WebPage, url: str) -> None:
        self._done.aliases[row.url] = url
        self._gone.append(row.url)  # and what it held
        self._put[row.url] = WebPage(row.url, "alias", row.depth, url, checked_at=row.checked_at)

    def _onward(self, visit: Visit) -> list[WebPage]:
        links, row = self._links, visit.row
        if links is None or visit.leads is None or row.depth >= links.rules.depth:
            return []
        fresh = links.fresh(visit.leads.links)
        self._visitor.look_up(fresh)
        found = self._rows(fresh, row.depth + 1)
        # In the same transaction as the page itself: what it led to is not forgotten when we are killed.
        self._put |= {page.url: page for page in found}
        return found

    def _settle(self) -> None:
        """Let each page be held under the address it names as its own, if that is on its site.

        Some sites name one address on every page: where another text is held there, a page keeps its own address.
        """
        guard = self._visitor.guard
        for url, claim in sorted(self._claims.items(), key=self._worth):
            try:
                own, target = guard.target(url), guard.target(claim)
            except BunkoError:
                continue
            name = str(target)
            if name == url or site_of(own) != site_of(target):
                continue
            known = self._known([url, name])
            row, other = known.get(url), known.get(name)
            if row is None:
                continue
            if other is None:
                self._move(row, name)
            elif is_document(other) and self._text_of(other) == self._text_of(row):
                self._alias(row, name)
                self._renamed(url, name, known=True)
            self._write()

    def _worth(self, claim: tuple[str, str]) -> tuple[bool, int]:
        # What differs in its query alone is surely the page it names; and servers that hurry decide nothing.
        url, name = claim
        return url.partition("?")[0] != name.partition("?")[0], self._order.get(url, 0)

    def _move(self, row: WebPage, name: str) -> None:
        content = self._store.page_content(self._tool_id, row.url)
        if content is None:
            return
        self._put[name] = replace(row, url=name, etag="", last_modified="")
        self._contents[name] = content
        self._alias(row, name)
        self._renamed(row.url, name)

    def _renamed(self, url: str, name: str, *, known: bool = False) -> None:
        done = self._done
        for some in (done.added, done.updated, done.unchanged):
            if url in some:
                some.remove(url)
                if name not in done.held:
                    (done.unchanged if known else some).append(name)

    def _text_of(self, row: WebPage) -> str:
        content = self._store.page_content(self._tool_id, row.url) or b""
        try:
            # As if both stood at one address: only what they say is compared.
            return read(content, media_type=row.media_type, charset=row.charset).text
        except SourceError:
            return row.content_hash
