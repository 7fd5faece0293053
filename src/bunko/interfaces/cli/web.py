"""The `bunko web` commands: collect web pages and keep them up to date."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.import_report import show_import_progress
from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)
from bunko.interfaces.text import format_count, join_sentences
from bunko.observer import Observer

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.web import CollectResult
    from bunko.observer import CrawlProgress, ImportProgress

_MAX_PROBLEMS = 10
_SECONDS_BETWEEN_LINES = 2.0
_name_option = click.option(
    "--name", "-n", metavar="TOOL", help="Tool that holds the pages. [knowledge]", shell_complete=complete_tool_names
)


@click.group(name="web")
def command() -> None:
    """Collect web pages and keep them up to date.

    The crawler obeys robots.txt, waits a second between two requests to a host, and blocks addresses in your own
    network unless they are in crawl.allowed_hosts.

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

    Pages that fail are reported and the rest are still imported. The first failure sets the exit code.

    \b
    Example:
      bunko web add https://example.com/guide https://example.com/faq
    """
    shared = pop_shared_options(options)
    with shared.open() as library, _show_fetch_progress("Fetching") as observer:
        _check_name(library, name)
        result = library.web.add_pages(urls, tool=name, observer=observer)
    if shared.as_json:
        print_json(_result_to_dict(result))
    else:
        for url in result.outcome.stored_urls:
            chunks = format_count(result.chunk_counts.get(url, 0), "chunk")
            click.echo(replace_controls(f"Added {escape_controls(url)} ({chunks})"))
    _report_problems(result, exit_on_problem=True)


@command.command()
@click.argument("url")
@click.argument("pattern", default="")
@click.option("--max-pages", type=click.IntRange(1, 100_000), metavar="N", help="Maximum number of pages. [50]")
@click.option(
    "--depth", type=click.IntRange(0, 100), metavar="N", help="Maximum link distance from the first page. [1]"
)
@click.option("--sitemap", is_flag=True, help="Also fetch pages listed in the site's sitemaps and llms.txt.")
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
    """Fetch a page and the pages it links to on the same site, and import them.

    PATTERN is a regular expression; only pages whose address matches it anywhere are fetched. Run the same command
    again to continue an interrupted crawl. Pages that fail are reported and the rest are still imported.

    \b
    Example:
      bunko web crawl https://example.com/articles
      bunko web crawl https://example.com/docs '\\.html$' --depth 2 --max-pages 200
      bunko web crawl https://example.com --sitemap -n example
    """
    shared = pop_shared_options(options)
    with shared.open() as library, _show_fetch_progress("Crawling") as observer:
        _check_name(library, name)
        result = library.web.crawl_site(
            url,
            pattern,
            tool=name,
            max_pages=max_pages,
            depth=depth,
            sitemap=sitemap,
            observer=observer,
        )
    if shared.as_json:
        print_json(_result_to_dict(result))
    else:
        click.echo(_summary_line(result))
        if result.outcome.omitted_links:
            links = format_count(result.outcome.omitted_links, "more link")
            print_stderr(f"{links} not followed; raise --max-pages to include them.")
    _report_problems(result, exit_on_problem=not result.outcome.stored_urls)


@command.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@_name_option
@shared_options
def refresh(urls: Sequence[str], name: str | None, **options: Any) -> None:
    """Fetch collected pages again and import changes.

    Unchanged pages are not downloaded again. Pages that are now missing, broken or empty keep their last content.

    \b
    Example:
      bunko web refresh
      bunko web refresh https://example.com/guide
    """
    shared = pop_shared_options(options)
    with shared.open(create=False) as library, _show_fetch_progress("Refreshing") as observer:
        result = library.web.refresh_pages(urls, tool=name, observer=observer)
    if shared.as_json:
        print_json(_result_to_dict(result))
    else:
        click.echo(_summary_line(result))
    _report_problems(result, exit_on_problem=not result.outcome.stored_urls)


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
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        deleted_url, chunks = library.web.delete_page(url, tool=name, observer=Observer(on_wait=print_stderr))
    if shared.as_json:
        print_json({"url": deleted_url, "chunks": chunks})
    else:
        click.echo(replace_controls(f"Deleted {escape_controls(deleted_url)} ({format_count(chunks, 'chunk')})"))


@command.command()
@_name_option
@shared_options
def status(name: str | None, **options: Any) -> None:
    """Show the collected pages, their sites, and problems.

    \b
    Example:
      bunko web status
    """
    shared = pop_shared_options(options)
    with shared.open(create=False) as library:
        tools, flags = library.web.status(name), shared.library_flags(library)
    from bunko.interfaces.cli.web_status import format_hosts, show_web_tools, web_remarks, web_tool_to_dict

    if shared.as_json:
        print_json({"tools": [web_tool_to_dict(tool_status) for tool_status in tools]})
    elif is_terminal():
        show_web_tools(tools, flags)
    else:
        for tool_status in tools:
            counts = f"{format_count(tool_status.pages, 'page')}, {format_count(tool_status.chunks, 'chunk')}"
            hosts = format_hosts(tool_status) or "no sites"
            click.echo(replace_controls(f"{tool_status.tool.name}: {counts}, from {hosts}"))
            for line in web_remarks(tool_status, flags):
                click.echo(replace_controls(f"  {line}"))
        if not tools:
            click.echo("No web pages yet.")


def _check_name(library: Library, name: str | None) -> None:
    from bunko.interfaces.tools.toolsets import check_tool_name

    if name is not None:
        check_tool_name(library, name)


def _result_to_dict(result: CollectResult) -> dict[str, Any]:
    from bunko.interfaces.serialize import report_to_dict

    outcome = result.outcome
    return {
        "tool": result.tool,
        "pages": len(outcome.stored_urls),
        "chunks": sum(result.chunk_counts.values()),
        "errors": result.errors,
        "added": outcome.added,
        "updated": outcome.updated,
        "unchanged": outcome.unchanged,
        "skipped": [{"url": skipped.uri, "reason": skipped.reason} for skipped in outcome.skipped],
        "problems": [
            {
                "url": problem.uri,
                "reason": problem.reason,
                "code": outcome.errors[problem.uri].code if problem.uri in outcome.errors else "",
            }
            for problem in outcome.problems
        ],
        "aliases": outcome.aliases,
        "left_out": outcome.omitted_links,
        "resumed": result.resumed,
        "interrupted": outcome.interrupted,
        "import": report_to_dict(result.report),
    }


def _summary_line(result: CollectResult) -> str:
    outcome = result.outcome
    parts = [format_count(len(outcome.stored_urls), "page"), format_count(sum(result.chunk_counts.values()), "chunk")]
    parts += [f"{len(outcome.added)} added", f"{len(outcome.updated)} updated", f"{len(outcome.unchanged)} unchanged"]
    if outcome.skipped:
        parts.append(f"{len(outcome.skipped)} skipped")
    return ", ".join([*parts, format_count(result.errors, "error")])


def _report_problems(result: CollectResult, *, exit_on_problem: bool) -> None:
    """Print problems; with `exit_on_problem`, the first one sets the exit code."""
    outcome = result.outcome
    for problem in outcome.problems[:_MAX_PROBLEMS]:
        print_stderr(f"Error: {escape_controls(problem.uri)}: {join_sentences(problem.reason)}")
        if problem.uri in outcome.errors and outcome.errors[problem.uri].hint:
            print_stderr(f"  {outcome.errors[problem.uri].hint}")
    for skipped in outcome.skipped[:_MAX_PROBLEMS]:
        print_stderr(f"Skipped: {escape_controls(skipped.uri)}: {skipped.reason}")
    if max(len(outcome.problems), len(outcome.skipped)) > _MAX_PROBLEMS:
        print_stderr("… and more; use --json to list all.")
    for notice in result.report.notices:
        print_stderr(notice)
    if exit_on_problem and outcome.problems:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[next(iter(outcome.errors.values())).code])


@contextmanager
def _show_fetch_progress(label: str) -> Iterator[Observer]:
    """Show the progress of fetching, then importing: a bar on a terminal, a line every few seconds in a pipe."""
    last: CrawlProgress | None = None
    has_bar = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    import_observers: list[Observer] = []

    def report_fetch(progress: CrawlProgress) -> None:
        nonlocal last
        last = progress
        update(progress)

    def report_import(progress: ImportProgress) -> None:
        if not import_observers:  # a terminal shows one bar at a time: fetching has ended by now
            import_observers.append(stack.enter_context(show_import_progress()))
        import_observers[0].on_progress(progress)

    try:
        with ExitStack() as stack:
            update = stack.enter_context(_progress_bar(label) if has_bar else _progress_lines(label))
            yield Observer(on_progress=report_import, on_crawl=report_fetch, on_wait=print_stderr)
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

    def update(progress: CrawlProgress) -> None:
        if not bar.live.is_started:
            bar.start()
        bar.update(task, completed=progress.pages, total=progress.total, problems=progress.problems)
        if progress.pages == progress.total:
            bar.stop()

    try:
        yield update
    finally:
        bar.stop()


@contextmanager
def _progress_lines(label: str) -> Iterator[Callable[[CrawlProgress], None]]:
    last_line = time.monotonic()

    def update(progress: CrawlProgress) -> None:
        nonlocal last_line
        if time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            pages = f"{progress.pages:,}/{format_count(progress.total, 'page', number_format=',')}"
            print_stderr(f"{label}: {pages}, {format_count(progress.problems, 'error')}")

    yield update
