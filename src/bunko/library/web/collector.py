"""Add, crawl, refresh and delete the web pages of a library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bunko.errors import BunkoError, FetchFailed, SettingsError, SourceError, UnknownName
from bunko.library.importing.importer import Importer, hold_lock
from bunko.library.opening.paths import LibraryPaths
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.protocols import Store
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.runtime.timing import now
from bunko.settings import Settings
from bunko.sources.web.crawl import Crawler
from bunko.sources.web.fetch import Fetcher
from bunko.sources.web.pages import is_document
from bunko.sources.web.robots import Robots
from bunko.sources.web.safe_browsing import SafeBrowsing
from bunko.sources.web.site_cache import HostPacer, SiteCache
from bunko.sources.web.ssrf_guard import Guard
from bunko.sources.web.visit import NO_TEXT_HINT, CrawlRules, LinkFilter, Visitor
from bunko.types import Problem, Report, Tool
from bunko.types.records import WebPage

if TYPE_CHECKING:
    from bunko.sources.web.crawl import CrawlResult


# The tool that pages are added to if none is named.
DEFAULT_TOOL = "knowledge"
# How long to wait for another process that collects pages: a crawl may take long.
_LOCK_WAIT_SECONDS = 3600.0
_READ_BATCH = 200


@dataclass(slots=True)
class CollectResult:
    """The result of collecting pages: the crawl and the import of its pages."""

    tool: str
    outcome: CrawlResult
    report: Report
    chunk_counts: dict[str, int]  # of each page that is stored now
    resumed: bool = False

    @property
    def errors(self) -> int:
        """The number of pages that could not be fetched or read."""
        return len(self.outcome.problems)


@dataclass(frozen=True, slots=True)
class UnfinishedCrawl:
    """An interrupted crawl, which resumes when it is started again."""

    url: str
    waiting_pages: int
    rules: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WebToolStatus:
    """The contents of a tool of web pages."""

    tool: Tool
    pages: int
    chunks: int
    hosts: list[tuple[str, int]]  # with their number of pages, the largest first
    oldest_check: str  # when the least recently checked page was checked
    problems: list[Problem]
    unfinished_crawls: list[UnfinishedCrawl]
    page_list: list[WebPage]  # those that are stored, by address


class WebCollector:
    """Collect the web pages of one library."""

    def __init__(
        self, paths: LibraryPaths, settings: Settings, store: Store, tool_config: ToolConfig, importer: Importer
    ) -> None:
        self._paths, self._settings, self._store = paths, settings, store
        self._tool_config, self._importer = tool_config, importer

    def add_pages(
        self,
        urls: Sequence[str],
        *,
        tool: str | None = None,
        observer: Observer = NO_OBSERVER,
    ) -> CollectResult:
        """Fetch and import pages; a page that cannot be fetched is reported as a problem and not stored."""
        guard = self._build_guard()
        if len(urls) == 1:
            guard.canonical_url(urls[0])  # raises for a bad URL before waiting for another process
        with self._open_crawler(tool, observer, guard, create=True) as (owner, crawler):
            return self._import_pages(owner, crawler.add_pages(urls), observer)

    def crawl_site(
        self,
        url: str,
        pattern: str = "",
        *,
        tool: str | None = None,
        max_pages: int | None = None,
        depth: int | None = None,
        sitemap: bool = False,
        observer: Observer = NO_OBSERVER,
    ) -> CollectResult:
        """Fetch a page and the pages it links to on its site, and import them; resume an interrupted crawl.

        If the first page cannot be fetched, that is an error; failures of other pages are reported as problems.
        """
        guard = self._build_guard()
        rules = CrawlRules(
            guard.canonical_url(url),
            pattern,
            1 if depth is None else depth,
            self._settings.crawl.max_pages if max_pages is None else max_pages,
            sitemap,
        )
        LinkFilter(guard, rules)  # raises for an invalid pattern before anything is created or fetched
        with self._open_crawler(tool, observer, guard, create=True) as (owner, crawler):
            started_at, resumes = self._begin_crawl(owner, rules.root, asdict(rules), observer)
            outcome = crawler.crawl(rules, started_at, resume=resumes)
            if not outcome.interrupted:
                self._save_crawl(owner, rules.root, None, observer)
                if rules.root in outcome.errors and not outcome.stored_urls:
                    raise outcome.errors[rules.root]
            result = self._import_pages(owner, outcome, observer)
            result.resumed = resumes
            return result

    def refresh_pages(
        self,
        urls: Sequence[str] = (),
        *,
        tool: str | None = None,
        observer: Observer = NO_OBSERVER,
    ) -> CollectResult:
        """Fetch the pages of a tool again, or some of them, and import the changes.

        A page that is now missing, broken or empty keeps its stored text.
        """
        with self._open_crawler(tool, observer, self._build_guard()) as (owner, crawler):
            selected_urls = {self._get_page(owner, url).url for url in urls}
            pages = [
                page
                for page in self._store.pages.select(owner.id)
                if (page.url in selected_urls if selected_urls else is_document(page) or page.problem)
            ]
            return self._import_pages(owner, crawler.refresh_pages(pages), observer)

    def delete_page(self, url: str, *, tool: str | None = None, observer: Observer = NO_OBSERVER) -> tuple[str, int]:
        """Delete a page from a tool, or from the first tool that has it; return its URL and number of chunks."""
        owner, page = self._find_page(url, self._web_tools() if tool is None else [self._get_tool(tool)])
        with self._importer.write_lock(observer, tools=[owner.name]):
            chunk_count = self._count_chunks(owner, [page.url]).get(page.url, 0)
            aliases = [
                alias.url
                for alias in self._store.pages.select(owner.id)
                if alias.state == "alias" and alias.found_on == page.url
            ]
            self._store.pages.write(owner.id, remove=[page.url, *aliases])
            self._store.documents.write(owner.id, remove=[page.url])
            self._store.vectors.delete_released(owner.id)
            self._importer.update_index(
                owner, Report(deleted=1, total_chunks=self._store.stats.totals(owner.id).chunks)
            )
        return page.url, chunk_count

    def page_owner(self, url: str, names: Sequence[str]) -> str:
        """Return the first of some tools that has a page; raise if none has it."""
        return self._find_page(url, [self._get_tool(name) for name in names])[0].name

    def default_tool(self) -> str:
        """Return the name of the tool that pages are added to if none is named; it may not exist yet."""
        web_tools = self._web_tools()
        return web_tools[0].name if len(web_tools) == 1 else DEFAULT_TOOL

    def _find_page(self, url: str, owners: Sequence[Tool]) -> tuple[Tool, WebPage]:
        """Return a page and its tool: the first that has the page."""
        for owner in owners:
            with suppress(UnknownName):
                return owner, self._get_page(owner, url)
        raise UnknownName(
            f"No tool has the page {url}", hint=f"List the collected sites with: {self._web_command('status')}"
        )

    def status(self, tool: str | None = None) -> list[WebToolStatus]:
        """Return the status of one tool of web pages, or of all."""
        return [self._tool_status(selected) for selected in ([self._get_tool(tool)] if tool else self._web_tools())]

    def _tool_status(self, tool: Tool) -> WebToolStatus:
        pages, totals = self._store.pages.select(tool.id), self._store.stats.totals(tool.id)
        documents = [page for page in pages if is_document(page)]
        if len(documents) != totals.documents:  # some have no text, or are not indexed yet
            indexed = set(self._store.documents.uris(tool.id, limit=totals.documents))
            documents = [page for page in documents if page.url in indexed]
        hosts = Counter(urlsplit(page.url).netloc for page in documents)
        crawls = tool.options.crawls
        unfinished = [
            UnfinishedCrawl(
                url, sum(page.state == "waiting" and url in (page.url, page.found_on) for page in pages), rules
            )
            for url, rules in crawls.items()
        ]
        return WebToolStatus(
            tool,
            totals.documents,
            totals.chunks,
            sorted(hosts.items(), key=lambda item: (-item[1], item[0])),
            min((page.checked_at for page in documents), default=""),
            [Problem(page.url, page.problem) for page in pages if page.problem],
            unfinished,
            documents,
        )

    def _build_guard(self) -> Guard:
        return Guard(self._settings.crawl.allowed_hosts)

    @contextmanager
    def _open_crawler(
        self, name: str | None, observer: Observer, guard: Guard, *, create: bool = False
    ) -> Iterator[tuple[Tool, Crawler]]:
        """Yield the tool and a crawler, under a lock: one process collects at a time, to respect each host's delay."""
        safety = self._settings.safety
        if safety.url_check and not safety.google_safe_browsing_api_key:
            raise SettingsError(
                "safety.url_check is on, but there is no key for Google Safe Browsing",
                hint="Set GOOGLE_SAFE_BROWSING_API_KEY, or set safety.url_check to false.",
            )
        if not create:
            self._get_tool(name)  # raises before waiting for the lock
        lock = hold_lock(
            self._store.lock("web"),
            wait_seconds=_LOCK_WAIT_SECONDS,
            observer=observer,
            activity="collecting pages for",
        )
        with lock, self._open_tool(name, create=create) as tool:
            self._store.pages.write(tool.id)  # raises if the library is not writable before anything is fetched
            crawler_context = open_crawler(self._settings, self._store, tool, guard, observer=observer)
            with crawler_context as crawler:
                yield tool, crawler

    @contextmanager
    def _open_tool(self, name: str | None, *, create: bool) -> Iterator[Tool]:
        """Yield the tool to collect pages in; a tool that is created here and gets no page is deleted again."""
        existing = self._find_tool(name) if create else self._get_tool(name)
        if existing is None:
            with self._importer.write_lock(tools=[name or DEFAULT_TOOL]):
                tool = catalog.Tools(self._store).add(name or DEFAULT_TOOL, "Collected web pages", None, kind="web")
        else:
            tool = existing
        try:
            yield tool
        except BunkoError as error:
            if not self._tool_exists(tool):
                raise UnknownName(
                    f"The tool {tool.name} was deleted while its pages were being collected",
                    hint="To keep the pages, collect them again.",
                ) from error
            raise
        finally:
            is_new = existing is None and self._tool_exists(tool)
            if is_new and not any(page.state in ("held", "waiting") for page in self._store.pages.select(tool.id)):
                with self._importer.write_lock(tools=[tool.name]):
                    self._store.tools.drop(tool.id)

    def _tool_exists(self, tool: Tool) -> bool:
        return any(existing.id == tool.id for existing in self._web_tools())

    def _import_pages(self, tool: Tool, outcome: CrawlResult, observer: Observer) -> CollectResult:
        report = self._importer.import_changes(tool.name, observer=observer)
        self._report_unreadable(tool, outcome, report)
        return CollectResult(tool.name, outcome, report, self._count_chunks(tool, outcome.stored_urls))

    def _report_unreadable(self, tool: Tool, outcome: CrawlResult, report: Report) -> None:
        """Report fetched pages that could not be read as problems of the crawl; older failures are not repeated."""
        failed = {problem.uri: problem.reason for problem in report.problems if problem.uri in outcome.stored_urls}
        rows = {page.url: page for page in self._store.pages.select(tool.id, list(failed))}
        for url, reason in failed.items():
            for urls in (outcome.added, outcome.updated, outcome.unchanged):
                if url in urls:
                    urls.remove(url)
            outcome.problems.append(Problem(url, reason))
            outcome.errors[url] = FetchFailed(f"{url} {reason}", hint=NO_TEXT_HINT, reason="no-text")
        self._store.pages.write(tool.id, upsert=[replace(rows[url], problem=reason) for url, reason in failed.items()])
        report.problems = [problem for problem in report.problems if problem.uri not in failed]

    def _count_chunks(self, tool: Tool, urls: Sequence[str]) -> dict[str, int]:
        counts = {}
        for start in range(0, len(urls), _READ_BATCH):
            for prepared in self._store.documents.export(tool.id, urls[start : start + _READ_BATCH]):
                counts[prepared.document.uri] = len(prepared.chunks)
        return counts

    def _begin_crawl(self, tool: Tool, root: str, rules: dict[str, Any], observer: Observer) -> tuple[str, bool]:
        """Return when a crawl started, and whether it resumes an interrupted one."""
        unfinished = catalog.get_tool(self._store, tool.name).options.crawls.get(root)
        if unfinished and {name: unfinished.get(name) for name in rules} == rules:
            crawl_pages = [page for page in self._store.pages.select(tool.id) if root in (page.url, page.found_on)]
            root_page = next((page for page in crawl_pages if page.url == root), None)
            if (
                root_page is not None
                and root_page.state != "waiting"
                and any(page.state == "waiting" for page in crawl_pages)
            ):
                return str(unfinished.get("begun", "")), True
        started_at = now()
        self._save_crawl(tool, root, rules | {"begun": started_at}, observer)
        return started_at, False

    def _save_crawl(self, tool: Tool, root: str, record: dict[str, Any] | None, observer: Observer) -> None:
        """Store the rules of a running crawl, or delete those of a finished one."""
        with self._importer.write_lock(observer, tools=[tool.name]):
            tool = catalog.get_tool(self._store, tool.name)
            crawls = {url: rules for url, rules in tool.options.crawls.items() if url != root}
            crawls |= {root: record} if record else {}
            self._store.tools.put(replace(tool, options=replace(tool.options, crawls=crawls)))

    def _web_tools(self) -> list[Tool]:
        return [tool for tool in catalog.tools(self._store) if tool.kind == "web"]

    def _find_tool(self, name: str | None) -> Tool | None:
        """Return the tool of a name, or the default tool if none is named; None if it does not exist."""
        tool = catalog.find_tool(catalog.tools(self._store), name or self.default_tool())
        if tool is not None and tool.kind != "web":
            raise SettingsError(f"{tool.name} is not a tool of web pages", hint="Choose another one with -n.")
        return tool

    def _get_tool(self, name: str | None) -> Tool:
        """Return the tool of a name, or the default tool if none is named; raise if it does not exist."""
        tool = self._find_tool(name)
        if tool is None:
            names = ", ".join(web_tool.name for web_tool in self._web_tools()) or "none yet"
            raise UnknownName(
                f"There is no tool of web pages called {name or DEFAULT_TOOL!r}",
                hint=f"Tools of web pages: {names}. Add pages with: {self._web_command('add')}",
            )
        return tool

    def _get_page(self, tool: Tool, url: str) -> WebPage:
        """Return a page of a tool by any of its URLs."""
        try:
            urls = [self._build_guard().canonical_url(url), url]
        except SourceError:  # a page that may no longer be fetched may still be stored
            urls = [url]
        for page in self._store.pages.select(tool.id, urls):
            if page.state != "alias":
                return page
            for target in self._store.pages.select(tool.id, [page.found_on]):
                return target
        raise UnknownName(
            f"{tool.name} has no page {url}", hint=f"List the collected sites with: {self._web_command('status')}"
        )

    def _web_command(self, verb: str) -> str:
        return f"bunko web {verb}{' URL' if verb == 'add' else ''}{self._paths.cli_flags()}"


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
