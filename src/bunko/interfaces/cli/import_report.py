"""An import's progress and its report in, a bar or lines, a summary and its problems out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.options import escape_controls, format_count, print_json, print_stderr

if TYPE_CHECKING:
    from bunko.ingest.pipeline import ImportProgress
    from bunko.types import Report

_MAX_PROBLEMS = 10
# A log should show that an import lives, not fill up: what is done sooner says nothing but its summary.
_SECONDS_BETWEEN_LINES = 2.0


def print_report(report: Report, *, as_json: bool) -> None:
    """Print what an import did: the answer to stdout, what went wrong to stderr; a tool that failed ends us so."""
    if as_json:
        from bunko.interfaces.serialize import report_to_dict as payload

        print_json(payload(report))
    else:
        click.echo(summary_line(report))
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


def exit_on_failures(report: Report) -> None:
    """Tell why tools were passed over, and end us so if one was."""
    for failure in report.failures:
        print_stderr(f"Error: {failure.tool}: {failure.message}")
        if failure.hint:
            print_stderr(failure.hint)
    if report.failures:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[report.failures[0].code])


def summary_line(report: Report) -> str:
    """Return what an import did, in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{format_count(report.total_chunks, 'chunk')} in all"]
    return ", ".join(parts)


def problem_lines(report: Report) -> Iterator[str]:
    """Return a line for each thing that went wrong, and how many more there are."""
    yield from report.notices
    if report.problems:
        yield f"{len(report.problems)} could not be indexed, or not whole:"
    for problem in report.problems[:_MAX_PROBLEMS]:
        tool = f"{problem.tool}: " if problem.tool else ""
        yield f"  {tool}{escape_controls(problem.uri)}: {' '.join(problem.reason.splitlines())}"
    if len(report.problems) > _MAX_PROBLEMS:
        yield f"  … and {len(report.problems) - _MAX_PROBLEMS} more; --json lists them all."


@contextmanager
def show_import_progress(label: str = "Importing") -> Iterator[Callable[[ImportProgress], None]]:
    """Show how far an import has come: a bar on a terminal, a line now and then in a pipe.

    Where Ctrl-C ends it, the last thing it says is how far it came: every batch that was told of is stored.
    """
    last: ImportProgress | None = None
    draw = _progress_bar(label) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else _progress_lines(label)

    def told(done: ImportProgress) -> None:
        nonlocal last
        last = done
        drawn(done)

    try:
        with draw as drawn:
            yield told
    except KeyboardInterrupt:
        if last is not None and last.total_files:
            print_stderr(f"Stopped after {last.files:,} of {last.total_files:,} files.")
        raise


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[ImportProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(label), BarColumn(), TextColumn("{task.fields[files]} files"),
        TextColumn("{task.fields[chunks]} chunks"), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None, files="0", chunks="0")

        def draw(done: ImportProgress) -> None:
            if not done.files:  # the next tool begins
                bar.reset(task, total=done.total_bytes)
            # Files differ in size: what remains is told by their bytes.
            files, chunks = f"{done.files:,}/{done.total_files:,}", f"{done.chunks:,}"
            bar.update(task, completed=done.bytes, files=files, chunks=chunks)

        yield draw


@contextmanager
def _progress_lines(label: str) -> Iterator[Callable[[ImportProgress], None]]:
    yield progress_line_writer(print_stderr, time.monotonic, label)


def progress_line_writer(
    write: Callable[[str], None], clock: Callable[[], float], label: str = "Importing"
) -> Callable[[ImportProgress], None]:
    """Return what writes a line of progress every two seconds, and one at the end of what took longer."""
    begin = wrote = clock()

    def tell(done: ImportProgress) -> None:
        nonlocal begin, wrote
        at = clock()
        if not done.files:
            begin = wrote = at
            return
        ended = done.files >= done.total_files
        if at - wrote >= _SECONDS_BETWEEN_LINES or (ended and wrote > begin):
            write(progress_line(done, at - begin, label))
            wrote = at

    return tell


def progress_line(progress: ImportProgress, seconds: float, label: str = "Importing") -> str:
    """Return how far an import has come, how fast, and how long it will still take."""
    told = f"{label}: {progress.files:,}/{progress.total_files:,} files, {progress.chunks:,} chunks"
    if seconds > 0:
        told += f", {progress.bytes / seconds / 1e6:.1f} MB/s"
    if 0 < progress.bytes < progress.total_bytes:
        told += f", about {_format_duration(seconds * (progress.total_bytes - progress.bytes) / progress.bytes)} left"
    return told


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
