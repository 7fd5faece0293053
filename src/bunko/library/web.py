"""Addresses in, web pages that can be searched out: added, crawled, looked at again, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError, FetchFailed, SettingsError, SourceError, UnknownName
from bunko.ingest.pipeline import Progress as Imported
from bunko.library import catalog
from bunko.library.build_config import Recipe
from bunko.library.importing import Importing
from bunko.library.lock import held
from bunko.library.paths import Home
from bunko.protocols import Store
from bunko.records import WebPage
from bunko.settings import Settings
from bunko.timing import now
from bunko.types import Problem, Report, Tool

if TYPE_CHECKING:
    from bunko.sources.web.crawl import Crawler, Done, Progress
    from bunko.sources.web.ssrf_guard import Guard

# The tool that pages belong to where nobody names one.
TOOL = "knowledge"
_CRAWLS = "crawls"  # the option of a tool that remembers crawls that did not end
# How long one who collects waits for another to end: a crawl may take long.
_LOCK_SECONDS = 3600.0
_AT_ONCE = 200


@dataclass(slots=True)
class Collected:
    """What came of collecting pages: the pages themselves, and what their import did."""

    tool: str
    done: Done
    report: Report
    chunks: dict[str, int]  # of each page that is held now
    resumed: bool = False

    @property
    def errors(self) -> int:
        """How many pages could not be fetched or read."""
        return len(self.done.problems)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A crawl that was interrupted; the same crawl goes on from there."""

    url: str
    waiting: int
    rules: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a tool of web pages holds."""

    tool: Tool
    pages: int
    chunks: int
    hosts: list[tuple[str, int]]  # pages of each, the most first
    oldest: str  # when the page that was looked at longest ago was
    problems: list[Problem]
    unfinished: list[Unfinished]


@dataclass(frozen=True, slots=True)
class _Ways:
    """How whoever collects hears of it."""

    progress: Callable[[Progress], None]
    imported: Callable[[Imported], None]
    waiting: Callable[[str], None]
    stopped: Callable[[], bool]


class Web:
    """Collects the web pages of one library."""

    def __init__(self, home: Home, settings: Settings, store: Store, recipe: Recipe, importing: Importing) -> None:
        self._home, self._settings, self._store = home, settings, store
        self._recipe, self._importing = recipe, importing

    def add(
        self,
        urls: Sequence[str],
        *,
        tool: str | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
        imported: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Collected:
        """Fetch some pages and import them; one that cannot be had is among the problems, and none of it is kept."""
        guard = self._guard()
        if len(urls) == 1:
            guard.url(urls[0])  # before anybody waits for another who collects
        ways = _Ways(progress, imported, waiting, stopped)
        with self._collecting(tool, ways, guard, make=True) as (owner, crawler):
            return self._imported(owner, crawler.add(urls), ways)

    def crawl(
        self,
        url: str,
        pattern: str = "",
        *,
        tool: str | None = None,
        max_pages: int | None = None,
        depth: int | None = None,
        sitemap: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
        imported: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Collected:
        """Fetch a page and what it links to on its site, and import all; one that was interrupted goes on.

        Where the first page itself cannot be had, that is an error; any other is among the problems.
        """
        from bunko.sources.web.links import Links, Rules

        guard = self._guard()
        rules = Rules(
            guard.url(url),
            pattern,
            1 if depth is None else depth,
            self._settings.crawl.max_pages if max_pages is None else max_pages,
            sitemap,
        )
        Links(guard, rules)  # a pattern that makes no sense is told of before anything is made or fetched
        ways = _Ways(progress, imported, waiting, stopped)
        with self._collecting(tool, ways, guard, make=True) as (owner, crawler):
            begun, goes_on = self._begin(owner, rules.root, asdict(rules), ways)
            done = crawler.crawl(rules, begun, goes_on=goes_on)
            if not done.interrupted:
                self._note(owner, rules.root, None, ways)
                if rules.root in done.errors and not done.held:
                    raise done.errors[rules.root]
            found = self._imported(owner, done, ways)
            found.resumed = goes_on
            return found

    def refresh(
        self,
        urls: Sequence[str] = (),
        *,
        tool: str | None = None,
        progress: Callable[[Progress], None] = lambda _: None,
        imported: Callable[[Imported], None] = lambda _: None,
        waiting: Callable[[str], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Collected:
        """Ask again for the pages a tool has, or some of them, and import what changed.

        A page that is gone, broken or empty now keeps what it said.
        """
        from bunko.sources.web.pages import is_document

        ways = _Ways(progress, imported, waiting, stopped)
        with self._collecting(tool, ways, self._guard()) as (owner, crawler):
            wanted = {self._page(owner, url).url for url in urls}
            pages = [
                page
                for page in self._store.pages(owner.id)
                if (page.url in wanted if wanted else is_document(page) or page.problem)
            ]
            return self._imported(owner, crawler.refresh(pages), ways)

    def delete(
        self, url: str, *, tool: str | None = None, waiting: Callable[[str], None] = lambda _: None
    ) -> tuple[str, int]:
        """Remove a page from a tool, or from the first that has it; return its address and how many chunks it had."""
        owners = [one for one in self._tools() if tool is None or one.name == tool]
        if tool is not None and not owners:
            self._tool(tool)  # says what is the matter
        found = None
        for owner in owners:
            try:
                found = owner, self._page(owner, url)
                break
            except UnknownName:
                continue
        if found is None:
            raise UnknownName(f"No tool holds the page {url}", hint=f"See what there is: {self._command('status')}")
        owner, page = found
        with self._importing.writing(waiting):
            number = self._chunks(owner, [page.url]).get(page.url, 0)
            also = [one.url for one in self._store.pages(owner.id) if one.state == "alias" and one.found_on == page.url]
            self._store.write_pages(owner.id, remove=[page.url, *also])
            self._store.write(owner.id, remove=[page.url])
            self._store.sweep()
            self._importing.indexed(owner, Report(deleted=1, total_chunks=self._store.totals(owner.id).chunks))
        return page.url, number

    def status(self, tool: str | None = None) -> list[Holdings]:
        """Return what a tool of web pages holds, or all of them."""
        return [self._holdings(one) for one in ([self._tool(tool)] if tool else self._tools())]

    def _holdings(self, tool: Tool) -> Holdings:
        from urllib.parse import urlsplit

        from bunko.sources.web.pages import is_document

        pages, totals = self._store.pages(tool.id), self._store.totals(tool.id)
        documents = [page for page in pages if is_document(page)]
        hosts = Counter(urlsplit(page.url).netloc for page in documents)
        crawls = tool.options.get(_CRAWLS, {})
        unfinished = [
            Unfinished(url, sum(p.state == "waiting" and url in (p.url, p.found_on) for p in pages), rules)
            for url, rules in crawls.items()
        ]
        return Holdings(
            tool,
            totals.documents,
            totals.chunks,
            sorted(hosts.items(), key=lambda item: (-item[1], item[0])),
            min((page.checked_at for page in documents), default=""),
            [Problem(page.url, page.problem) for page in pages if page.problem],
            unfinished,
        )

    def _guard(self) -> Guard:
        from bunko.sources.web.ssrf_guard import Guard

        return Guard(self._settings.crawl.allowed_hosts)

    @contextmanager
    def _collecting(
        self, name: str | None, ways: _Ways, guard: Guard, *, make: bool = False
    ) -> Iterator[tuple[Tool, Crawler]]:
        """Hold the right to collect, which one process has at a time, so that each host's pace holds."""
        from bunko.library.build_crawler import crawler

        safety = self._settings.safety
        if safety.url_check and not safety.google_safe_browsing_api_key:
            raise SettingsError(
                "Google Safe Browsing is to be asked, but there is no key for it",
                hint="Set GOOGLE_SAFE_BROWSING_API_KEY, or safety.url_check to false.",
            )
        known = self._found(name) if make else self._tool(name)
        if known is not None:
            self._recipe.check(known)  # what is wrong is told without waiting
        lock = self._home.database.with_name(f"{self._home.database.name}.web.lock")
        alone = held(
            self._home,
            seconds=_LOCK_SECONDS,
            waiting=ways.waiting,
            stopped=ways.stopped,
            lock=lock,
            doing="collecting pages for",
        )
        with alone, self._owner(name, make=make) as tool:
            self._store.write_pages(tool.id)  # says that the library cannot be written before anything is fetched
            parts = crawler(self._settings, self._store, tool, guard, progress=ways.progress, stopped=ways.stopped)
            with parts as made:
                yield tool, made

    @contextmanager
    def _owner(self, name: str | None, *, make: bool) -> Iterator[Tool]:
        """Give the tool that pages belong to; one that was made for pages of which none came is removed again."""
        tool, made = self._found(name) if make else self._tool(name), False
        if tool is None:
            with self._importing.writing():
                tool = catalog.add(self._store, name or TOOL, "Web pages that were collected", None, kind="web")
            made = True
        try:
            yield tool
        except BunkoError as error:
            if not self._is_there(tool):
                raise UnknownName(
                    f"The tool {tool.name} was deleted while its pages were collected",
                    hint="Nothing else is wrong; collect them again if they are wanted.",
                ) from error
            raise
        finally:
            if made and self._is_there(tool) and not any(map(_counts, self._store.pages(tool.id))):
                with self._importing.writing():
                    self._store.drop_tool(tool.id)

    def _is_there(self, tool: Tool) -> bool:
        return any(one.id == tool.id for one in self._tools())

    def _imported(self, tool: Tool, done: Done, ways: _Ways) -> Collected:
        report = self._importing.catch_up(tool.name, progress=ways.imported, waiting=ways.waiting, stopped=ways.stopped)
        self._unread(tool, done, report)
        return Collected(tool.name, done, report, self._chunks(tool, done.held))

    def _unread(self, tool: Tool, done: Done, report: Report) -> None:
        """Let pages that came and could not be read be among the problems; what failed long ago is no news."""
        from bunko.sources.web.visit import NO_TEXT

        failed = {problem.uri: problem.reason for problem in report.problems if problem.uri in done.held}
        rows = {page.url: page for page in self._store.pages(tool.id, list(failed))}
        for url, why in failed.items():
            for some in (done.added, done.updated, done.unchanged):
                if url in some:
                    some.remove(url)
            done.problems.append(Problem(url, why))
            done.errors[url] = FetchFailed(f"{url} {why}", hint=NO_TEXT)
        self._store.write_pages(tool.id, put=[replace(rows[url], problem=why) for url, why in failed.items()])
        report.problems = [problem for problem in report.problems if problem.uri not in failed]

    def _chunks(self, tool: Tool, urls: Sequence[str]) -> dict[str, int]:
        found = {}
        for at in range(0, len(urls), _AT_ONCE):
            for one in self._store.whole(tool.id, urls[at : at + _AT_ONCE]):
                found[one.document.uri] = len(one.chunks)
        return found

    def _begin(self, tool: Tool, root: str, rules: dict[str, Any], ways: _Ways) -> tuple[str, bool]:
        """Return when a crawl began, and whether it goes on where it was interrupted."""
        old = catalog.named(self._store, tool.name).options.get(_CRAWLS, {}).get(root)
        if old and {name: old.get(name) for name in rules} == rules:
            mine = [page for page in self._store.pages(tool.id) if root in (page.url, page.found_on)]
            first = next((page for page in mine if page.url == root), None)
            if first is not None and first.state != "waiting" and any(page.state == "waiting" for page in mine):
                return str(old.get("begun", "")), True
        begun = now()
        self._note(tool, root, rules | {"begun": begun}, ways)
        return begun, False

    def _note(self, tool: Tool, root: str, record: dict[str, Any] | None, ways: _Ways) -> None:
        """Remember a crawl that is going on, or forget one that came to its end."""
        with self._importing.writing(ways.waiting, stopped=ways.stopped):
            tool = catalog.named(self._store, tool.name)
            crawls = {url: one for url, one in tool.options.get(_CRAWLS, {}).items() if url != root}
            crawls |= {root: record} if record else {}
            options = {name: value for name, value in tool.options.items() if name != _CRAWLS}
            self._store.put_tool(replace(tool, options=options | ({_CRAWLS: crawls} if crawls else {})))

    def _tools(self) -> list[Tool]:
        return [tool for tool in catalog.tools(self._store) if tool.kind == "web"]

    def _found(self, name: str | None) -> Tool | None:
        """Return the tool of a name, or the one that is meant where none is named; None where there is none."""
        web = self._tools()
        wanted = name or (web[0].name if len(web) == 1 else TOOL)
        tool = next((one for one in catalog.tools(self._store) if one.name == wanted), None)
        if tool is not None and tool.kind != "web":
            raise SettingsError(f"{wanted} is not a tool of web pages", hint="Name another one with -n.")
        return tool

    def _tool(self, name: str | None) -> Tool:
        """Return the tool of a name, or the one that is meant where none is named, or say which there are."""
        tool = self._found(name)
        if tool is None:
            names = ", ".join(one.name for one in self._tools()) or "none yet"
            raise UnknownName(
                f"There is no tool of web pages called {name or TOOL!r}",
                hint=f"Tools of web pages: {names}. Bring pages in with: {self._command('add')}",
            )
        return tool

    def _page(self, tool: Tool, url: str) -> WebPage:
        """Return a page of a tool by any address it has."""
        try:
            names = [self._guard().url(url), url]
        except SourceError:  # what may not be fetched any more may still be there
            names = [url]
        for page in self._store.pages(tool.id, names):
            if page.state != "alias":
                return page
            for real in self._store.pages(tool.id, [page.found_on]):
                return real
        raise UnknownName(f"{tool.name} holds no page {url}", hint=f"See what there is: {self._command('status')}")

    def _command(self, verb: str) -> str:
        return f"bunko web {verb}{' URL' if verb == 'add' else ''}{self._home.flags()}"


def _counts(page: WebPage) -> bool:
    """Say whether a page is a reason to have a tool: it is there, or it is waited for."""
    return page.state in ("held", "waiting")
