"""`bunko web`: addresses in, web pages in the library out, and what became of each."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.import_report import show_import_progress as importing
from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    format_count,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.web import CollectResult, WebToolStatus
    from bunko.sources.web.crawl import CrawlProgress

_MAX_PROBLEMS = 10
_SECONDS_BETWEEN_LINES = 2.0
_name_option = click.option(
    "--name", "-n", metavar="TOOL", help="The tool that has them. [knowledge]", shell_complete=complete_tool_names
)


@click.group(name="web")
def command() -> None:
    """Collect web pages, and keep them up to date.

    Pages are fetched politely: robots.txt is obeyed, a second lies between two requests to a host, and no address of
    your own network is reached unless crawl.allowed_hosts names it.

    \b
    Example:
      bunko web add https://example.com/guide
      bunko web crawl https://example.com/docs '/docs/' --max-pages 100
      bunko search "async" -n knowledge
    """


@command.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@_name_option
@shared_options
def add(urls: Sequence[str], name: str | None, **options: Any) -> None:
    """Fetch single pages and import them.

    Fails with the code of the first page that could not be had; the others are there.

    \b
    Example:
      bunko web add https://example.com/guide https://example.com/faq
    """
    asked = pop_shared_options(options)
    with asked.open() as library, _show_fetch_progress("Fetching") as ways:
        found = library.web.add_pages(urls, tool=name, waiting=print_stderr, **ways)
    if asked.as_json:
        print_json(_result_to_dict(found))
    else:
        for url in found.outcome.held_urls:
            click.echo(
                replace_controls(
                    f"Added {escape_controls(url)} ({format_count(found.chunk_counts.get(url, 0), 'chunk')})"
                )
            )
    _report_problems(found, exit_on_problem=True)


@command.command()
@click.argument("url")
@click.argument("pattern", default="")
@click.option("--max-pages", type=click.IntRange(1, 100_000), metavar="N", help="Most pages of this crawl. [50]")
@click.option("--depth", type=click.IntRange(0, 100), metavar="N", help="How many links away from the first page. [1]")
@click.option("--sitemap", is_flag=True, help="Also what the site's sitemaps and its llms.txt name.")
@_name_option
@shared_options
def crawl(
    url: str,
    pattern: str,
    max_pages: int | None,
    depth: int | None,
    sitemap: bool,
    name: str | None,
    **options: Any,
) -> None:
    """Fetch a page and what it links to on its site, and import all.

    PATTERN is a regular expression that the address of a page must hold. A crawl that was interrupted goes on when it
    is called again in the same words. A page that fails stops none of the others.

    \b
    Example:
      bunko web crawl https://example.com/articles
      bunko web crawl https://example.com/docs '\\.html$' --depth 2 --max-pages 200
      bunko web crawl https://example.com --sitemap -n example
    """
    asked = pop_shared_options(options)
    with asked.open() as library, _show_fetch_progress("Crawling") as ways:
        found = library.web.crawl_site(
            url, pattern, tool=name, max_pages=max_pages, depth=depth, sitemap=sitemap, waiting=print_stderr, **ways
        )
    if asked.as_json:
        print_json(_result_to_dict(found))
    else:
        click.echo(_summary_line(found))
        if found.outcome.omitted_links:
            print_stderr(
                f"{format_count(found.outcome.omitted_links, 'more link')} left out; raise --max-pages to have them too."  # noqa: E501
            )
    _report_problems(found, exit_on_problem=not found.outcome.held_urls)


@command.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@_name_option
@shared_options
def refresh(urls: Sequence[str], name: str | None, **options: Any) -> None:
    """Ask again for pages that are there, and import what changed.

    What did not change is not sent again. A page that is gone, broken or empty now keeps what it said.

    \b
    Example:
      bunko web refresh
      bunko web refresh https://example.com/guide
    """
    asked = pop_shared_options(options)
    with asked.open(create=False) as library, _show_fetch_progress("Asking") as ways:
        found = library.web.refresh_pages(urls, tool=name, waiting=print_stderr, **ways)
    if asked.as_json:
        print_json(_result_to_dict(found))
    else:
        click.echo(_summary_line(found))
    _report_problems(found, exit_on_problem=not found.outcome.held_urls)


@command.command()
@click.argument("url")
@_name_option
@shared_options
def delete(url: str, name: str | None, **options: Any) -> None:
    """Remove a page from the library.

    \b
    Example:
      bunko web delete https://example.com/guide
    """
    asked = pop_shared_options(options)
    with asked.open(create=False) as library:
        gone, chunks = library.web.delete_page(url, tool=name, waiting=print_stderr)
    if asked.as_json:
        print_json({"url": gone, "chunks": chunks})
    else:
        click.echo(replace_controls(f"Deleted {escape_controls(gone)} ({format_count(chunks, 'chunk')})"))


@command.command()
@_name_option
@shared_options
def status(name: str | None, **options: Any) -> None:
    """Show what was collected, from where, and what went wrong.

    \b
    Example:
      bunko web status
    """
    asked = pop_shared_options(options)
    with asked.open(create=False) as library:
        found, flags = library.web.status(name), asked.library_flags(library)
    if asked.as_json:
        print_json({"tools": [_holdings_to_dict(one) for one in found]})
    elif is_terminal():
        from bunko.interfaces.cli.render import show_table

        rows = [
            (one.tool.name, str(one.pages), str(one.chunks), _format_hosts(one), one.oldest_check or "never")
            for one in found
        ]
        show_table(("tool", "pages", "chunks", "sites", "oldest look"), rows, number_columns=("pages", "chunks"))
        for line in (line for one in found for line in _holdings_remarks(one, flags)):
            print_stderr(line)
    else:
        for one in found:
            holds = f"{format_count(one.pages, 'page')}, {format_count(one.chunks, 'chunk')}"
            click.echo(replace_controls(f"{one.tool.name}: {holds}, from {_format_hosts(one) or 'nowhere'}"))
            for line in _holdings_remarks(one, flags):
                click.echo(replace_controls(f"  {line}"))
        if not found:
            click.echo("There are no web pages yet.")


def _result_to_dict(result: CollectResult) -> dict[str, Any]:
    from bunko.interfaces.serialize import report_to_dict

    done = result.outcome
    return {
        "tool": result.tool,
        "pages": len(done.held_urls),
        "chunks": sum(result.chunk_counts.values()),
        "errors": result.errors,
        "added": done.added,
        "updated": done.updated,
        "unchanged": done.unchanged,
        "skipped": [{"url": one.uri, "reason": one.reason} for one in done.skipped],
        "problems": [
            {"url": one.uri, "reason": one.reason, "code": done.errors[one.uri].code if one.uri in done.errors else ""}
            for one in done.problems
        ],
        "aliases": done.aliases,
        "left_out": done.omitted_links,
        "resumed": result.resumed,
        "interrupted": done.interrupted,
        "import": report_to_dict(result.report),
    }


def _summary_line(result: CollectResult) -> str:
    done = result.outcome
    parts = [format_count(len(done.held_urls), "page"), format_count(sum(result.chunk_counts.values()), "chunk")]
    parts += [f"{len(done.added)} added", f"{len(done.updated)} updated", f"{len(done.unchanged)} unchanged"]
    if done.skipped:
        parts.append(f"{len(done.skipped)} left alone")
    return ", ".join([*parts, format_count(result.errors, "error")])


def _report_problems(result: CollectResult, *, exit_on_problem: bool) -> None:
    """Tell what went wrong; with `failing`, the first page that did decides the exit code."""
    done = result.outcome
    problems = done.problems
    for one in problems[:_MAX_PROBLEMS]:
        print_stderr(f"Error: {escape_controls(one.uri)}: {' '.join(one.reason.splitlines())}")
        if one.uri in done.errors and done.errors[one.uri].hint:
            print_stderr(f"  {done.errors[one.uri].hint}")
    for one in done.skipped[:_MAX_PROBLEMS]:
        print_stderr(f"Left alone: {escape_controls(one.uri)}: {one.reason}")
    if max(len(problems), len(done.skipped)) > _MAX_PROBLEMS:
        print_stderr("… and more; --json lists them all.")
    for notice in result.report.notices:
        print_stderr(notice)
    if exit_on_problem and problems:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[next(iter(done.errors.values())).code])


def _holdings_to_dict(holdings: WebToolStatus) -> dict[str, Any]:
    return {
        "name": holdings.tool.name,
        "description": holdings.tool.description,
        "active": holdings.tool.active,
        "pages": holdings.pages,
        "chunks": holdings.chunks,
        "sites": [{"host": host, "pages": pages} for host, pages in holdings.hosts],
        "oldest_look": holdings.oldest_check,
        "problems": [{"url": problem.uri, "reason": problem.reason} for problem in holdings.problems],
        "unfinished": [
            {"url": crawl.url, "waiting": crawl.waiting_pages} | crawl.rules for crawl in holdings.unfinished_crawls
        ],
    }


def _format_hosts(holdings: WebToolStatus) -> str:
    shown = ", ".join(f"{escape_controls(host)} ({pages})" for host, pages in holdings.hosts[:5])
    return shown + (", …" if len(holdings.hosts) > 5 else "")


def _holdings_remarks(holdings: WebToolStatus, flags: str) -> list[str]:
    told = []
    for crawl in holdings.unfinished_crawls:
        words = ["bunko", "web", "crawl", crawl.url, *([crawl.rules["pattern"]] if crawl.rules.get("pattern") else [])]
        words += ["--max-pages", str(crawl.rules.get("max_pages", 50)), "--depth", str(crawl.rules.get("depth", 1))]
        words += ["--sitemap"] if crawl.rules.get("sitemap") else []
        again = f"{shlex.join([*words, '-n', holdings.tool.name])}{flags}"
        told.append(f"a crawl was not finished, {format_count(crawl.waiting_pages, 'page')} wait; go on with: {again}")
    told += [
        f"{escape_controls(bad.uri)}: {' '.join(bad.reason.splitlines())}" for bad in holdings.problems[:_MAX_PROBLEMS]
    ]
    if len(holdings.problems) > _MAX_PROBLEMS:
        told.append(f"… and {len(holdings.problems) - _MAX_PROBLEMS} more; --json lists them all.")
    return told


@contextmanager
def _show_fetch_progress(label: str) -> Iterator[dict[str, Any]]:
    """Show how far fetching, then importing, has come: a bar on a terminal, a line now and then in a pipe."""
    last: CrawlProgress | None = None
    bar = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with_import: list[Callable[[Any], None]] = []

    def told(done: CrawlProgress) -> None:
        nonlocal last
        last = done
        drawn(done)

    def imported(done: Any) -> None:
        if not with_import:  # a terminal has room for one bar: the other has ended by now
            with_import.append(stack.enter_context(importing()))
        with_import[0](done)

    try:
        with ExitStack() as stack:
            drawn = stack.enter_context(_progress_bar(label) if bar else _progress_lines(label))
            yield {"progress": told, "import_progress": imported}
    except KeyboardInterrupt:
        if last is not None:
            print_stderr(f"Stopped after {last.pages:,} of {format_count(last.total, 'page', number_format=',')}.")
        raise


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[CrawlProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn(label), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} pages"),
        TextColumn("{task.fields[problems]} errors"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task("crawl", total=1, problems=0)

    def draw(done: CrawlProgress) -> None:
        if not bar.live.is_started:
            bar.start()
        bar.update(task, completed=done.pages, total=done.total, problems=done.problems)
        if done.pages == done.total:
            bar.stop()

    try:
        yield draw
    finally:
        bar.stop()


@contextmanager
def _progress_lines(label: str) -> Iterator[Callable[[CrawlProgress], None]]:
    wrote = time.monotonic()

    def tell(done: CrawlProgress) -> None:
        nonlocal wrote
        if time.monotonic() - wrote >= _SECONDS_BETWEEN_LINES:
            wrote = time.monotonic()
            print_stderr(
                f"{label}: {done.pages:,}/{format_count(done.total, 'page', number_format=',')}, {format_count(done.problems, 'error')}"  # noqa: E501
            )

    yield tell
