"""Addresses in, web pages that can be searched out: added, crawled, looked at again, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError, FetchFailed, SettingsError, SourceError, UnknownName
from bunko.ingest.pipeline import ImportProgress as Imported
from bunko.library import catalog
from bunko.library.build_config import ToolConfig
from bunko.library.importing import Importer
from bunko.library.lock import hold_lock
from bunko.library.paths import LibraryPaths
from bunko.protocols import Store
from bunko.records import WebPage
from bunko.settings import Settings
from bunko.timing import now
from bunko.types import Problem, Report, Tool

if TYPE_CHECKING:
    from bunko.sources.web.crawl import Crawler, CrawlProgress, CrawlResult
    from bunko.sources.web.ssrf_guard import Guard

# The tool that pages belong to where nobody names one.
DEFAULT_TOOL = "knowledge"
_CRAWLS_OPTION = "crawls"  # the option of a tool that remembers crawls that did not end
# How long one who collects waits for another to end: a crawl may take long.
_LOCK_WAIT_SECONDS = 3600.0
_READ_BATCH = 200


@dataclass(slots=True)
class CollectResult:
    """What came of collecting pages: the pages themselves, and what their import did."""

    tool: str
    outcome: CrawlResult
    report: Report
    chunk_counts: dict[str, int]  # of each page that is held now
    resumed: bool = False

    @property
    def errors(self) -> int:
        """How many pages could not be fetched or read."""
        return len(self.outcome.problems)


@dataclass(frozen=True, slots=True)
class UnfinishedCrawl:
    """A crawl that was interrupted; the same crawl goes on from there."""

    url: str
    waiting_pages: int
    rules: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WebToolStatus:
    """What a tool of web pages holds."""

    tool: Tool
    pages: int
    chunks: int
    hosts: list[tuple[str, int]]  # pages of each, the most first
    oldest_check: str  # when the page that was looked at longest ago was
    problems: list[Problem]
    unfinished_crawls: list[UnfinishedCrawl]


@dataclass(frozen=True, slots=True)
class _Callbacks:
    """How whoever collects hears of it."""

    progress: Callable[[CrawlProgress], None]
    import_progress: Callable[[Imported], None]
    waiting: Callable[[str], None]
    stopped: Callable[[], bool]


class WebCollector:
    """Collects the web pages of one library."""

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
        progress: Callable[[CrawlProgress], None] = lambda _: None,
        import_progress: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> CollectResult:
        """Fetch some pages and import them; one that cannot be had is among the problems, and none of it is kept."""
        guard = self._build_guard()
        if len(urls) == 1:
            guard.canonical_url(urls[0])  # before anybody waits for another who collects
        ways = _Callbacks(progress, import_progress, waiting, stopped)
        with self._open_crawler(tool, ways, guard, create=True) as (owner, crawler):
            return self._import_pages(owner, crawler.add_pages(urls), ways)

    def crawl_site(
        self,
        url: str,
        pattern: str = "",
        *,
        tool: str | None = None,
        max_pages: int | None = None,
        depth: int | None = None,
        sitemap: bool = False,
        progress: Callable[[CrawlProgress], None] = lambda _: None,
        import_progress: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> CollectResult:
        """Fetch a page and what it links to on its site, and import all; one that was interrupted goes on.

        Where the first page itself cannot be had, that is an error; any other is among the problems.
        """
        from bunko.sources.web.links import CrawlRules, LinkFilter

        guard = self._build_guard()
        rules = CrawlRules(
            guard.canonical_url(url),
            pattern,
            1 if depth is None else depth,
            self._settings.crawl.max_pages if max_pages is None else max_pages,
            sitemap,
        )
        LinkFilter(guard, rules)  # a pattern that makes no sense is told of before anything is made or fetched
        ways = _Callbacks(progress, import_progress, waiting, stopped)
        with self._open_crawler(tool, ways, guard, create=True) as (owner, crawler):
            begun, goes_on = self._begin_crawl(owner, rules.root, asdict(rules), ways)
            done = crawler.crawl(rules, begun, resume=goes_on)
            if not done.interrupted:
                self._save_crawl(owner, rules.root, None, ways)
                if rules.root in done.errors and not done.held_urls:
                    raise done.errors[rules.root]
            found = self._import_pages(owner, done, ways)
            found.resumed = goes_on
            return found

    def refresh_pages(
        self,
        urls: Sequence[str] = (),
        *,
        tool: str | None = None,
        progress: Callable[[CrawlProgress], None] = lambda _: None,
        import_progress: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> CollectResult:
        """Ask again for the pages a tool has, or some of them, and import what changed.

        A page that is gone, broken or empty now keeps what it said.
        """
        from bunko.sources.web.pages import is_document

        ways = _Callbacks(progress, import_progress, waiting, stopped)
        with self._open_crawler(tool, ways, self._build_guard()) as (owner, crawler):
            wanted = {self._get_page(owner, url).url for url in urls}
            pages = [
                page
                for page in self._store.pages(owner.id)
                if (page.url in wanted if wanted else is_document(page) or page.problem)
            ]
            return self._import_pages(owner, crawler.refresh_pages(pages), ways)

    def delete_page(
        self, url: str, *, tool: str | None = None, waiting: Callable[[str], None] = lambda _: None
    ) -> tuple[str, int]:
        """Remove a page from a tool, or from the first that has it; return its address and how many chunks it had."""
        owners = [one for one in self._web_tools() if tool is None or one.name == tool]
        if tool is not None and not owners:
            self._get_tool(tool)  # says what is the matter
        found = None
        for owner in owners:
            try:
                found = owner, self._get_page(owner, url)
                break
            except UnknownName:
                continue
        if found is None:
            raise UnknownName(f"No tool holds the page {url}", hint=f"See what there is: {self._web_command('status')}")
        owner, page = found
        with self._importer.write_lock(waiting):
            number = self._count_chunks(owner, [page.url]).get(page.url, 0)
            also = [one.url for one in self._store.pages(owner.id) if one.state == "alias" and one.found_on == page.url]
            self._store.write_pages(owner.id, remove=[page.url, *also])
            self._store.write(owner.id, remove=[page.url])
            self._store.delete_orphan_vectors()
            self._importer.update_index(owner, Report(deleted=1, total_chunks=self._store.totals(owner.id).chunks))
        return page.url, number

    def status(self, tool: str | None = None) -> list[WebToolStatus]:
        """Return what a tool of web pages holds, or all of them."""
        return [self._tool_status(one) for one in ([self._get_tool(tool)] if tool else self._web_tools())]

    def _tool_status(self, tool: Tool) -> WebToolStatus:
        from urllib.parse import urlsplit

        from bunko.sources.web.pages import is_document

        pages, totals = self._store.pages(tool.id), self._store.totals(tool.id)
        documents = [page for page in pages if is_document(page)]
        hosts = Counter(urlsplit(page.url).netloc for page in documents)
        crawls = tool.options.get(_CRAWLS_OPTION, {})
        unfinished = [
            UnfinishedCrawl(url, sum(p.state == "waiting" and url in (p.url, p.found_on) for p in pages), rules)
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
        )

    def _build_guard(self) -> Guard:
        from bunko.sources.web.ssrf_guard import Guard

        return Guard(self._settings.crawl.allowed_hosts)

    @contextmanager
    def _open_crawler(
        self, name: str | None, callbacks: _Callbacks, guard: Guard, *, create: bool = False
    ) -> Iterator[tuple[Tool, Crawler]]:
        """Hold the right to collect, which one process has at a time, so that each host's pace holds."""
        from bunko.library.build_crawler import open_crawler

        safety = self._settings.safety
        if safety.url_check and not safety.google_safe_browsing_api_key:
            raise SettingsError(
                "Google Safe Browsing is to be asked, but there is no key for it",
                hint="Set GOOGLE_SAFE_BROWSING_API_KEY, or safety.url_check to false.",
            )
        known = self._find_tool(name) if create else self._get_tool(name)
        if known is not None:
            self._tool_config.check_tool(known)  # what is wrong is told without waiting
        lock = self._paths.database.with_name(f"{self._paths.database.name}.web.lock")
        alone = hold_lock(
            self._paths,
            wait_seconds=_LOCK_WAIT_SECONDS,
            waiting=callbacks.waiting,
            stopped=callbacks.stopped,
            lock_file=lock,
            activity="collecting pages for",
        )
        with alone, self._open_tool(name, create=create) as tool:
            self._store.write_pages(tool.id)  # says that the library cannot be written before anything is fetched
            parts = open_crawler(
                self._settings, self._store, tool, guard, progress=callbacks.progress, stopped=callbacks.stopped
            )
            with parts as made:
                yield tool, made

    @contextmanager
    def _open_tool(self, name: str | None, *, create: bool) -> Iterator[Tool]:
        """Give the tool that pages belong to; one that was made for pages of which none came is removed again."""
        tool, made = self._find_tool(name) if create else self._get_tool(name), False
        if tool is None:
            with self._importer.write_lock():
                tool = catalog.add_tool(
                    self._store, name or DEFAULT_TOOL, "Web pages that were collected", None, kind="web"
                )
            made = True
        try:
            yield tool
        except BunkoError as error:
            if not self._tool_exists(tool):
                raise UnknownName(
                    f"The tool {tool.name} was deleted while its pages were collected",
                    hint="Nothing else is wrong; collect them again if they are wanted.",
                ) from error
            raise
        finally:
            if made and self._tool_exists(tool) and not any(map(_keeps_tool, self._store.pages(tool.id))):
                with self._importer.write_lock():
                    self._store.drop_tool(tool.id)

    def _tool_exists(self, tool: Tool) -> bool:
        return any(one.id == tool.id for one in self._web_tools())

    def _import_pages(self, tool: Tool, outcome: CrawlResult, callbacks: _Callbacks) -> CollectResult:
        report = self._importer.import_changes(
            tool.name, progress=callbacks.import_progress, waiting=callbacks.waiting, stopped=callbacks.stopped
        )
        self._report_unreadable(tool, outcome, report)
        return CollectResult(tool.name, outcome, report, self._count_chunks(tool, outcome.held_urls))

    def _report_unreadable(self, tool: Tool, outcome: CrawlResult, report: Report) -> None:
        """Let pages that came and could not be read be among the problems; what failed long ago is no news."""
        from bunko.sources.web.visit import NO_TEXT_HINT

        failed = {problem.uri: problem.reason for problem in report.problems if problem.uri in outcome.held_urls}
        rows = {page.url: page for page in self._store.pages(tool.id, list(failed))}
        for url, why in failed.items():
            for some in (outcome.added, outcome.updated, outcome.unchanged):
                if url in some:
                    some.remove(url)
            outcome.problems.append(Problem(url, why))
            outcome.errors[url] = FetchFailed(f"{url} {why}", hint=NO_TEXT_HINT)
        self._store.write_pages(tool.id, upsert=[replace(rows[url], problem=why) for url, why in failed.items()])
        report.problems = [problem for problem in report.problems if problem.uri not in failed]

    def _count_chunks(self, tool: Tool, urls: Sequence[str]) -> dict[str, int]:
        found = {}
        for at in range(0, len(urls), _READ_BATCH):
            for one in self._store.export_documents(tool.id, urls[at : at + _READ_BATCH]):
                found[one.document.uri] = len(one.chunks)
        return found

    def _begin_crawl(self, tool: Tool, root: str, rules: dict[str, Any], callbacks: _Callbacks) -> tuple[str, bool]:
        """Return when a crawl began, and whether it goes on where it was interrupted."""
        old = catalog.get_tool(self._store, tool.name).options.get(_CRAWLS_OPTION, {}).get(root)
        if old and {name: old.get(name) for name in rules} == rules:
            mine = [page for page in self._store.pages(tool.id) if root in (page.url, page.found_on)]
            first = next((page for page in mine if page.url == root), None)
            if first is not None and first.state != "waiting" and any(page.state == "waiting" for page in mine):
                return str(old.get("begun", "")), True
        begun = now()
        self._save_crawl(tool, root, rules | {"begun": begun}, callbacks)
        return begun, False

    def _save_crawl(self, tool: Tool, root: str, record: dict[str, Any] | None, callbacks: _Callbacks) -> None:
        """Remember a crawl that is going on, or forget one that came to its end."""
        with self._importer.write_lock(callbacks.waiting, stopped=callbacks.stopped):
            tool = catalog.get_tool(self._store, tool.name)
            crawls = {url: one for url, one in tool.options.get(_CRAWLS_OPTION, {}).items() if url != root}
            crawls |= {root: record} if record else {}
            options = {name: value for name, value in tool.options.items() if name != _CRAWLS_OPTION}
            self._store.put_tool(replace(tool, options=options | ({_CRAWLS_OPTION: crawls} if crawls else {})))

    def _web_tools(self) -> list[Tool]:
        return [tool for tool in catalog.tools(self._store) if tool.kind == "web"]

    def _find_tool(self, name: str | None) -> Tool | None:
        """Return the tool of a name, or the one that is meant where none is named; None where there is none."""
        web = self._web_tools()
        wanted = name or (web[0].name if len(web) == 1 else DEFAULT_TOOL)
        tool = next((one for one in catalog.tools(self._store) if one.name == wanted), None)
        if tool is not None and tool.kind != "web":
            raise SettingsError(f"{wanted} is not a tool of web pages", hint="Name another one with -n.")
        return tool

    def _get_tool(self, name: str | None) -> Tool:
        """Return the tool of a name, or the one that is meant where none is named, or say which there are."""
        tool = self._find_tool(name)
        if tool is None:
            names = ", ".join(one.name for one in self._web_tools()) or "none yet"
            raise UnknownName(
                f"There is no tool of web pages called {name or DEFAULT_TOOL!r}",
                hint=f"Tools of web pages: {names}. Bring pages in with: {self._web_command('add')}",
            )
        return tool

    def _get_page(self, tool: Tool, url: str) -> WebPage:
        """Return a page of a tool by any address it has."""
        try:
            names = [self._build_guard().canonical_url(url), url]
        except SourceError:  # what may not be fetched any more may still be there
            names = [url]
        for page in self._store.pages(tool.id, names):
            if page.state != "alias":
                return page
            for real in self._store.pages(tool.id, [page.found_on]):
                return real
        raise UnknownName(f"{tool.name} holds no page {url}", hint=f"See what there is: {self._web_command('status')}")

    def _web_command(self, verb: str) -> str:
        return f"bunko web {verb}{' URL' if verb == 'add' else ''}{self._paths.cli_flags()}"


def _keeps_tool(page: WebPage) -> bool:
    """Say whether a page is a reason to have a tool: it is there, or it is waited for."""
    return page.state in ("held", "waiting")
