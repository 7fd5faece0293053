"""The `bunko web` commands: collect web pages and keep them up to date."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.columns import Column, format_age, number
from bunko.interfaces.cli.terminal.printing import (
    escape_controls,
    is_terminal,
    print_json,
    print_stderr,
    replace_controls,
    say,
)
from bunko.interfaces.cli.terminal.progress import show_fetch_progress
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.serialize_state import WebTool
from bunko.interfaces.text import format_count
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.messages import translate, translate_reason
from bunko.runtime.observer import Observer

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.rights.audit import AuditRecord
    from bunko.library.web.collector import CollectResult, WebToolStatus

_MAX_PROBLEMS = 10
_name_option = click.option(
    "--name", "-n", metavar="TOOL", help="Tool that holds the pages. [knowledge]", shell_complete=complete_tool_names
)


@click.group(name="web", cls=CommandGroup)
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
def add(urls: Sequence[str], name: str | None, shared: SharedOptions) -> None:
    """Fetch single pages and import them; `bunko add URL` does the same.

    Pages that fail are reported and the rest are still imported. The first failure sets the exit code.

    \b
    Example:
      bunko web add https://example.com/guide https://example.com/faq
    """
    with shared.open() as library, show_fetch_progress("Fetching") as observer:
        _check_name(library, name)
        with _record(library, "web add", name, {"urls": list(urls)}) as record:
            result = library.web.add_pages(urls, tool=name, observer=observer)
            record.add_pages(result)
    if shared.as_json:
        print_json(result_to_dict(result))
    else:
        outcome = result.outcome
        for url in outcome.stored_urls:
            shown = f"{escape_controls(url)} ({format_count(result.chunk_counts.get(url, 0), 'chunk')})"
            if url in outcome.unchanged:
                say(f"Unchanged {shown}")
            else:
                say(f"Updated {shown}" if url in outcome.updated else f"Added {shown}")
    report_problems(result, exit_on_problem=True)


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
    shared: SharedOptions,
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
    with shared.open() as library, show_fetch_progress("Crawling") as observer:
        _check_name(library, name)
        with _record(library, "web crawl", name, {"url": url, "pattern": pattern}) as record:
            result = library.web.crawl_site(
                url,
                pattern,
                tool=name,
                max_pages=max_pages,
                depth=depth,
                sitemap=sitemap,
                observer=observer,
            )
            record.add_pages(result)
    if shared.as_json:
        print_json(result_to_dict(result))
    else:
        say(_summary_line(result))
        if result.outcome.omitted_links:
            links = format_count(result.outcome.omitted_links, "more link")
            print_stderr(f"{links} not followed; raise --max-pages to include them.")
    report_problems(result, exit_on_problem=not result.outcome.stored_urls)


@command.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@_name_option
@shared_options
def refresh(urls: Sequence[str], name: str | None, shared: SharedOptions) -> None:
    """Fetch collected pages again and import changes.

    Unchanged pages are not downloaded again. Pages that are now missing, broken or empty keep their last content.

    \b
    Example:
      bunko web refresh
      bunko web refresh https://example.com/guide
    """
    with (
        shared.open(create=False) as library,
        show_fetch_progress("Refreshing") as observer,
        _record(library, "web refresh", name, {"urls": list(urls)}) as record,
    ):
        result = library.web.refresh_pages(urls, tool=name, observer=observer)
        record.add_pages(result)
    if shared.as_json:
        print_json(result_to_dict(result))
    else:
        say(_summary_line(result))
    report_problems(result, exit_on_problem=not result.outcome.stored_urls)


@command.command()
@click.argument("url")
@_name_option
@shared_options
def delete(url: str, name: str | None, shared: SharedOptions) -> None:
    """Remove a page from the library.

    \b
    Example:
      bunko web delete https://example.com/guide
    """
    with shared.open(create=False) as library, _record(library, "web delete", name, {"url": url}):
        deleted_url, chunks = library.web.delete_page(url, tool=name, observer=Observer(on_wait=print_stderr))
    if shared.as_json:
        print_json({"url": deleted_url, "chunks": chunks})
    else:
        say(f"Deleted {escape_controls(deleted_url)} ({format_count(chunks, 'chunk')})")


@command.command()
@_name_option
@shared_options
def status(name: str | None, shared: SharedOptions) -> None:
    """Show the collected pages, their sites, and problems.

    \b
    Example:
      bunko web status
    """
    with shared.open(create=False) as library:
        tools, flags = library.web.status(name), shared.library_flags(library)
    if shared.as_json:
        print_json({"tools": [WebTool.fill(status) | {"page_list": list_pages(status)} for status in tools]})
    elif is_terminal():
        show_web_tools(tools, flags)
    else:
        for tool_status in tools:
            counts = f"{format_count(tool_status.pages, 'page')}, {format_count(tool_status.chunks, 'chunk')}"
            hosts = format_hosts(tool_status) or "no sites"
            click.echo(replace_controls(f"{tool_status.tool.name}: {counts}, from {hosts}"))
            for page in tool_status.page_list:
                say(f"  {escape_controls(page.url)} (fetched {page.fetched_at[:10]})")
            for line in web_remarks(tool_status, flags):
                say(f"  {line}")
        if not tools:
            say("No web pages yet.")


def _record(
    library: Library, action: str, name: str | None, arguments: Mapping[str, Any]
) -> AbstractContextManager[AuditRecord]:
    return record_command(library, action, tools=[name or library.web.default_tool()], arguments=arguments)


def _check_name(library: Library, name: str | None) -> None:
    if name is not None:
        check_tool_name(library, name)


def result_to_dict(result: CollectResult) -> dict[str, object]:
    """Return the result of collecting pages as a plain dictionary."""
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


def report_problems(result: CollectResult, *, exit_on_problem: bool) -> None:
    """Print problems; with `exit_on_problem`, the first one sets the exit code."""
    outcome = result.outcome
    for problem in outcome.problems[:_MAX_PROBLEMS]:
        print_stderr(f"{translate('Error')}: {escape_controls(problem.uri)}: {translate_reason(problem.reason)}")
        if problem.uri in outcome.errors and outcome.errors[problem.uri].hint:
            print_stderr(f"  {outcome.errors[problem.uri].hint}")
    for skipped in outcome.skipped[:_MAX_PROBLEMS]:
        print_stderr(f"{translate('Skipped')}: {escape_controls(skipped.uri)}: {translate_reason(skipped.reason)}")
    if max(len(outcome.problems), len(outcome.skipped)) > _MAX_PROBLEMS:
        print_stderr("… and more; use --json to list all.")
    for notice in result.report.notices:
        print_stderr(notice)
    if exit_on_problem and outcome.problems:
        sys.exit(EXIT_CODES[next(iter(outcome.errors.values())).code])


_MAX_LISTED_PROBLEMS = 10
_MAX_PAGES = 50
_MAX_HOSTS = 5


def show_web_tools(tools: Sequence[WebToolStatus], flags: str) -> None:
    """Show tools of web pages on a terminal."""
    if not tools:
        say("No web pages yet. Add one with: bunko web add URL")
        return
    columns = (
        Column("tool", min_width=24),
        number("pages"),
        number("chunks", 4),
        Column("sites", priority=2, min_width=20),
        Column("oldest check", "keep", 3),
    )
    rows = (
        (
            tool_status.tool.name,
            f"{tool_status.pages:,}",
            f"{tool_status.chunks:,}",
            format_hosts(tool_status),
            format_age(tool_status.oldest_check or "never"),
        )
        for tool_status in tools
    )
    terminal.tables.show_table(columns, rows)
    for tool_status in tools:
        if tool_status.page_list:
            say("")
            name, pages = shlex.quote(tool_status.tool.name), tool_status.page_list
            terminal.tables.show_table(
                (Column("page", min_width=40), Column("fetched", "keep"), Column("checked", "keep", 2)),
                ([page.url, format_age(page.fetched_at), format_age(page.checked_at)] for page in pages[:_MAX_PAGES]),
            )
            if len(pages) > _MAX_PAGES:
                say(f"… and {len(pages) - _MAX_PAGES} more; to list all: bunko ls -n {name}{flags}")
    for tool_status in tools:
        for line in web_remarks(tool_status, flags):
            print_stderr(line)


def list_pages(tool_status: WebToolStatus) -> list[dict[str, str]]:
    """Return the pages of a tool for JSON."""
    return [
        {"url": page.url, "fetched_at": page.fetched_at, "checked_at": page.checked_at, "problem": page.problem}
        for page in tool_status.page_list
    ]


def format_hosts(tool_status: WebToolStatus) -> str:
    """Return the sites with most pages, and how many pages each has."""
    hosts = ", ".join(f"{escape_controls(host)} ({pages})" for host, pages in tool_status.hosts[:_MAX_HOSTS])
    return hosts + (", …" if len(tool_status.hosts) > _MAX_HOSTS else "")


def web_remarks(tool_status: WebToolStatus, flags: str) -> list[str]:
    """Return remarks about unfinished crawls and the first problems of a tool."""
    remarks = []
    for crawl in tool_status.unfinished_crawls:
        pages = format_count(crawl.waiting_pages, "page")
        rules = crawl.rules
        arguments = ["bunko", "web", "crawl", crawl.url, *([rules["pattern"]] if rules.get("pattern") else [])]
        arguments += ["--max-pages", str(rules.get("max_pages", 50)), "--depth", str(rules.get("depth", 1))]
        arguments += ["--sitemap"] if rules.get("sitemap") else []
        command_line = f"{shlex.join(arguments)} -n {shlex.quote(tool_status.tool.name)}{flags}"
        remarks.append(f"a crawl is unfinished, with {pages} to fetch; continue with: {command_line}")
    remarks += [
        f"{escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
        for problem in tool_status.problems[:_MAX_LISTED_PROBLEMS]
    ]
    if len(tool_status.problems) > _MAX_LISTED_PROBLEMS:
        remarks.append(f"… and {len(tool_status.problems) - _MAX_LISTED_PROBLEMS} more; use --json to list all.")
    return remarks
