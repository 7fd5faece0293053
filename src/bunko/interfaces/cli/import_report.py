"""An import's progress and its report in, a bar or lines, a summary and its problems out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.options import counted, on_one_line, print_json, say

if TYPE_CHECKING:
    from bunko.ingest.pipeline import Progress
    from bunko.types import Report

_MOST_PROBLEMS = 10
# A log should show that an import lives, not fill up: what is done sooner says nothing but its summary.
_SECONDS_BETWEEN_LINES = 2.0


def show(report: Report, *, as_json: bool) -> None:
    """Print what an import did: the answer to stdout, what went wrong to stderr; a tool that failed ends us so."""
    if as_json:
        from bunko.interfaces.serialize import report as payload

        print_json(payload(report))
    else:
        click.echo(summary(report))
        for line in problems(report):
            say(line)
    failures(report)


def failures(report: Report) -> None:
    """Tell why tools were passed over, and end us so if one was."""
    for failure in report.failures:
        say(f"Error: {failure.tool}: {failure.message}")
        if failure.hint:
            say(failure.hint)
    if report.failures:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[report.failures[0].code])


def summary(report: Report) -> str:
    """Return what an import did, in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{counted(report.total_chunks, 'chunk')} in all"]
    return ", ".join(parts)


def problems(report: Report) -> Iterator[str]:
    """Return a line for each thing that went wrong, and how many more there are."""
    yield from report.notices
    if report.problems:
        yield f"{len(report.problems)} could not be indexed, or not whole:"
    for problem in report.problems[:_MOST_PROBLEMS]:
        tool = f"{problem.tool}: " if problem.tool else ""
        yield f"  {tool}{on_one_line(problem.uri)}: {' '.join(problem.reason.splitlines())}"
    if len(report.problems) > _MOST_PROBLEMS:
        yield f"  … and {len(report.problems) - _MOST_PROBLEMS} more; --json lists them all."


@contextmanager
def progress(what: str = "Importing") -> Iterator[Callable[[Progress], None]]:
    """Show how far an import has come: a bar on a terminal, a line now and then in a pipe.

    Where Ctrl-C ends it, the last thing it says is how far it came: every batch that was told of is stored.
    """
    last: Progress | None = None
    draw = _bar(what) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else _lines(what)

    def told(done: Progress) -> None:
        nonlocal last
        last = done
        drawn(done)

    try:
        with draw as drawn:
            yield told
    except KeyboardInterrupt:
        if last is not None and last.total_files:
            say(f"Stopped after {last.files:,} of {last.total_files:,} files.")
        raise


@contextmanager
def _bar(what: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(what), BarColumn(), TextColumn("{task.fields[files]} files"),
        TextColumn("{task.fields[chunks]} chunks"), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None, files="0", chunks="0")

        def draw(done: Progress) -> None:
            if not done.files:  # the next tool begins
                bar.reset(task, total=done.total_bytes)
            # Files differ in size: what remains is told by their bytes.
            files, chunks = f"{done.files:,}/{done.total_files:,}", f"{done.chunks:,}"
            bar.update(task, completed=done.bytes, files=files, chunks=chunks)

        yield draw


@contextmanager
def _lines(what: str) -> Iterator[Callable[[Progress], None]]:
    yield lines(say, time.monotonic, what)


def lines(
    write: Callable[[str], None], clock: Callable[[], float], what: str = "Importing"
) -> Callable[[Progress], None]:
    """Return what writes a line of progress every two seconds, and one at the end of what took longer."""
    begin = wrote = clock()

    def tell(done: Progress) -> None:
        nonlocal begin, wrote
        at = clock()
        if not done.files:
            begin = wrote = at
            return
        ended = done.files >= done.total_files
        if at - wrote >= _SECONDS_BETWEEN_LINES or (ended and wrote > begin):
            write(line(done, at - begin, what))
            wrote = at

    return tell


def line(done: Progress, seconds: float, what: str = "Importing") -> str:
    """Return how far an import has come, how fast, and how long it will still take."""
    told = f"{what}: {done.files:,}/{done.total_files:,} files, {done.chunks:,} chunks"
    if seconds > 0:
        told += f", {done.bytes / seconds / 1e6:.1f} MB/s"
    if 0 < done.bytes < done.total_bytes:
        told += f", about {_duration(seconds * (done.total_bytes - done.bytes) / done.bytes)} left"
    return told


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
