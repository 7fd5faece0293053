"""`bunko reindex`: a folder in, an up-to-date index and a summary out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import chosen, print_json, say, shared

if TYPE_CHECKING:
    from bunko.ingest import Progress
    from bunko.types import Report

_MOST_PROBLEMS = 10


@click.command()
@click.option("--force", is_flag=True, help="Rebuild everything, as after a change of settings.")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.")
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes to use. [one a core]")
@shared
def command(force: bool, name: str | None, workers: int | None, **options: Any) -> None:
    """Make a folder searchable, or bring it up to date.

    \b
    Example:
      bunko reindex --docs-dir ~/notes
    """
    asked = chosen(options)
    from bunko.payload import report as payload

    with asked.open(create=asked.docs_dir is not None) as library, progress() as shown:
        report = library.reindex(tool=name, everything=force, workers=workers, progress=shown, waiting=say)
    if asked.as_json:
        print_json(payload(report))
    else:
        click.echo(summary(report))
        for line in problems(report):
            say(line)


def summary(report: Report) -> str:
    """Return what an import did, in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{report.total_chunks} chunks in all"]
    return ", ".join(parts)


def problems(report: Report) -> Iterator[str]:
    """Return a line for each thing that went wrong, and how many more there are."""
    yield from report.notices
    if report.problems:
        yield f"{len(report.problems)} could not be indexed:"
    for problem in report.problems[:_MOST_PROBLEMS]:
        yield f"  {problem.uri}: {' '.join(problem.reason.splitlines())}"
    if len(report.problems) > _MOST_PROBLEMS:
        yield f"  … and {len(report.problems) - _MOST_PROBLEMS} more; --json lists them all."


@contextmanager
def progress() -> Iterator[Callable[[Progress], None]]:
    """Draw a bar on a terminal; a pipe gets nothing but the summary."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("Importing"), BarColumn(), MofNCompleteColumn(), TextColumn("files"),
        TextColumn("{task.fields[chunks]} chunks"), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None, chunks=0)
        yield lambda done: bar.update(task, total=done.total_files, completed=done.files, chunks=done.chunks)
