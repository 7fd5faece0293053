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

from bunko.interfaces.cli.import_report import progress as importing
from bunko.interfaces.cli.options import (
    chosen,
    counted,
    is_terminal,
    on_one_line,
    print_json,
    say,
    shared,
    tool_names,
    visible,
)

if TYPE_CHECKING:
    from bunko.library.web import Collected, Holdings
    from bunko.sources.web.crawl import Progress

_MOST_PROBLEMS = 10
_SECONDS_BETWEEN_LINES = 2.0
_name = click.option(
    "--name", "-n", metavar="TOOL", help="The tool that has them. [knowledge]", shell_complete=tool_names
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
@_name
@shared
def add(urls: Sequence[str], name: str | None, **options: Any) -> None:
    """Fetch single pages and import them.

    Fails with the code of the first page that could not be had; the others are there.

    \b
    Example:
      bunko web add https://example.com/guide https://example.com/faq
    """
    asked = chosen(options)
    with asked.open() as library, _shown("Fetching") as ways:
        found = library.web.add(urls, tool=name, waiting=say, **ways)
    if asked.as_json:
        print_json(_payload(found))
    else:
        for url in found.done.held:
            click.echo(visible(f"Added {on_one_line(url)} ({counted(found.chunks.get(url, 0), 'chunk')})"))
    _end(found, failing=True)


@command.command()
@click.argument("url")
@click.argument("pattern", default="")
@click.option("--max-pages", type=click.IntRange(1, 100_000), metavar="N", help="Most pages of this crawl. [50]")
@click.option("--depth", type=click.IntRange(0, 100), metavar="N", help="How many links away from the first page. [1]")
@click.option("--sitemap", is_flag=True, help="Also what the site's sitemaps and its llms.txt name.")
@_name
@shared
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
    asked = chosen(options)
    with asked.open() as library, _shown("Crawling") as ways:
        found = library.web.crawl(
            url, pattern, tool=name, max_pages=max_pages, depth=depth, sitemap=sitemap, waiting=say, **ways
        )
    if asked.as_json:
        print_json(_payload(found))
    else:
        click.echo(_summary(found))
        if found.done.left:
            say(f"{counted(found.done.left, 'more link')} left out; raise --max-pages to have them too.")
    _end(found, failing=not found.done.held)


@command.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@_name
@shared
def refresh(urls: Sequence[str], name: str | None, **options: Any) -> None:
    """Ask again for pages that are there, and import what changed.

    What did not change is not sent again. A page that is gone, broken or empty now keeps what it said.

    \b
    Example:
      bunko web refresh
      bunko web refresh https://example.com/guide
    """
    asked = chosen(options)
    with asked.open(create=False) as library, _shown("Asking") as ways:
        found = library.web.refresh(urls, tool=name, waiting=say, **ways)
    if asked.as_json:
        print_json(_payload(found))
    else:
        click.echo(_summary(found))
    _end(found, failing=not found.done.held)


@command.command()
@click.argument("url")
@_name
@shared
def delete(url: str, name: str | None, **options: Any) -> None:
    """Remove a page from the library.

    \b
    Example:
      bunko web delete https://example.com/guide
    """
    asked = chosen(options)
    with asked.open(create=False) as library:
        gone, chunks = library.web.delete(url, tool=name, waiting=say)
    if asked.as_json:
        print_json({"url": gone, "chunks": chunks})
    else:
        click.echo(visible(f"Deleted {on_one_line(gone)} ({counted(chunks, 'chunk')})"))


@command.command()
@_name
@shared
def status(name: str | None, **options: Any) -> None:
    """Show what was collected, from where, and what went wrong.

    \b
    Example:
      bunko web status
    """
    asked = chosen(options)
    with asked.open(create=False) as library:
        found, flags = library.web.status(name), asked.flags(library)
    if asked.as_json:
        print_json({"tools": [_held(one) for one in found]})
    elif is_terminal():
        from bunko.interfaces.cli.render import table

        rows = [(one.tool.name, str(one.pages), str(one.chunks), _hosts(one), one.oldest or "never") for one in found]
        table(("tool", "pages", "chunks", "sites", "oldest look"), rows, numbers=("pages", "chunks"))
        for line in (line for one in found for line in _remarks(one, flags)):
            say(line)
    else:
        for one in found:
            holds = f"{counted(one.pages, 'page')}, {counted(one.chunks, 'chunk')}"
            click.echo(visible(f"{one.tool.name}: {holds}, from {_hosts(one) or 'nowhere'}"))
            for line in _remarks(one, flags):
                click.echo(visible(f"  {line}"))
        if not found:
            click.echo("There are no web pages yet.")


def _payload(found: Collected) -> dict[str, Any]:
    from bunko.interfaces.serialize import report

    done = found.done
    return {
        "tool": found.tool,
        "pages": len(done.held),
        "chunks": sum(found.chunks.values()),
        "errors": found.errors,
        "added": done.added,
        "updated": done.updated,
        "unchanged": done.unchanged,
        "skipped": [{"url": one.uri, "reason": one.reason} for one in done.skipped],
        "problems": [
            {"url": one.uri, "reason": one.reason, "code": done.errors[one.uri].code if one.uri in done.errors else ""}
            for one in done.problems
        ],
        "aliases": done.aliases,
        "left_out": done.left,
        "resumed": found.resumed,
        "interrupted": done.interrupted,
        "import": report(found.report),
    }


def _summary(found: Collected) -> str:
    done = found.done
    parts = [counted(len(done.held), "page"), counted(sum(found.chunks.values()), "chunk")]
    parts += [f"{len(done.added)} added", f"{len(done.updated)} updated", f"{len(done.unchanged)} unchanged"]
    if done.skipped:
        parts.append(f"{len(done.skipped)} left alone")
    return ", ".join([*parts, counted(found.errors, "error")])


def _end(found: Collected, *, failing: bool) -> None:
    """Tell what went wrong; with `failing`, the first page that did decides the exit code."""
    done = found.done
    problems = done.problems
    for one in problems[:_MOST_PROBLEMS]:
        say(f"Error: {on_one_line(one.uri)}: {' '.join(one.reason.splitlines())}")
        if one.uri in done.errors and done.errors[one.uri].hint:
            say(f"  {done.errors[one.uri].hint}")
    for one in done.skipped[:_MOST_PROBLEMS]:
        say(f"Left alone: {on_one_line(one.uri)}: {one.reason}")
    if max(len(problems), len(done.skipped)) > _MOST_PROBLEMS:
        say("… and more; --json lists them all.")
    for notice in found.report.notices:
        say(notice)
    if failing and problems:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[next(iter(done.errors.values())).code])


def _held(one: Holdings) -> dict[str, Any]:
    return {
        "name": one.tool.name,
        "description": one.tool.description,
        "active": one.tool.active,
        "pages": one.pages,
        "chunks": one.chunks,
        "sites": [{"host": host, "pages": pages} for host, pages in one.hosts],
        "oldest_look": one.oldest,
        "problems": [{"url": problem.uri, "reason": problem.reason} for problem in one.problems],
        "unfinished": [{"url": crawl.url, "waiting": crawl.waiting} | crawl.rules for crawl in one.unfinished],
    }


def _hosts(one: Holdings) -> str:
    shown = ", ".join(f"{on_one_line(host)} ({pages})" for host, pages in one.hosts[:5])
    return shown + (", …" if len(one.hosts) > 5 else "")


def _remarks(one: Holdings, flags: str) -> list[str]:
    told = []
    for crawl in one.unfinished:
        words = ["bunko", "web", "crawl", crawl.url, *([crawl.rules["pattern"]] if crawl.rules.get("pattern") else [])]
        words += ["--max-pages", str(crawl.rules.get("max_pages", 50)), "--depth", str(crawl.rules.get("depth", 1))]
        words += ["--sitemap"] if crawl.rules.get("sitemap") else []
        again = f"{shlex.join([*words, '-n', one.tool.name])}{flags}"
        told.append(f"a crawl was not finished, {counted(crawl.waiting, 'page')} wait; go on with: {again}")
    told += [f"{on_one_line(bad.uri)}: {' '.join(bad.reason.splitlines())}" for bad in one.problems[:_MOST_PROBLEMS]]
    if len(one.problems) > _MOST_PROBLEMS:
        told.append(f"… and {len(one.problems) - _MOST_PROBLEMS} more; --json lists them all.")
    return told


@contextmanager
def _shown(doing: str) -> Iterator[dict[str, Any]]:
    """Show how far fetching, then importing, has come: a bar on a terminal, a line now and then in a pipe."""
    last: Progress | None = None
    bar = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with_import: list[Callable[[Any], None]] = []

    def told(done: Progress) -> None:
        nonlocal last
        last = done
        drawn(done)

    def imported(done: Any) -> None:
        if not with_import:  # a terminal has room for one bar: the other has ended by now
            with_import.append(stack.enter_context(importing()))
        with_import[0](done)

    try:
        with ExitStack() as stack:
            drawn = stack.enter_context(_bar(doing) if bar else _lines(doing))
            yield {"progress": told, "imported": imported}
    except KeyboardInterrupt:
        if last is not None:
            say(f"Stopped after {last.pages:,} of {counted(last.total, 'page', form=',')}.")
        raise


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn(doing), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f} pages"),
        TextColumn("{task.fields[problems]} errors"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task("crawl", total=1, problems=0)

    def draw(done: Progress) -> None:
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
def _lines(doing: str) -> Iterator[Callable[[Progress], None]]:
    wrote = time.monotonic()

    def tell(done: Progress) -> None:
        nonlocal wrote
        if time.monotonic() - wrote >= _SECONDS_BETWEEN_LINES:
            wrote = time.monotonic()
            say(f"{doing}: {done.pages:,}/{counted(done.total, 'page', form=',')}, {counted(done.problems, 'error')}")

    yield tell
