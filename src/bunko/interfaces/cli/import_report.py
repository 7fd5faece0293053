"""Print the progress, summary and problems of an import."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bunko.interfaces.cli.language import translate, translate_reason
from bunko.interfaces.cli.options import escape_controls, print_json, print_stderr, say
from bunko.interfaces.text import format_count
from bunko.observer import NO_OBSERVER, Observer

if TYPE_CHECKING:
    from bunko.observer import ImportProgress
    from bunko.types import Report

_MAX_PROBLEMS = 10
_MAX_SKIPPED = 3
# A log should show that an import is alive without filling up: a shorter import prints only its summary.
_SECONDS_BETWEEN_LINES = 2.0
# A search imports fewer files in a moment, in which a bar would only flicker.
_LARGE_IMPORT_FILES, _LARGE_IMPORT_BYTES = 100, 1_000_000


def print_report(report: Report, *, as_json: bool) -> None:
    """Print the summary to stdout and problems to stderr; exit with an error code if a tool failed."""
    if as_json:
        from bunko.interfaces.serialize import report_to_dict

        print_json(report_to_dict(report))
    else:
        say(summary_line(report))
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


def exit_on_failures(report: Report) -> None:
    """Print why tools failed, and exit with the code of the first failure if there is one."""
    for failure in report.failures:
        print_stderr(f"{translate('Error')}: {failure.tool}: {translate(failure.message)}")
        if failure.hint:
            print_stderr(failure.hint)
    if report.failures:
        from bunko.interfaces.cli.main import EXIT_CODES

        sys.exit(EXIT_CODES[report.failures[0].code])


def summary_line(report: Report) -> str:
    """Return the counts of an import in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{format_count(report.total_chunks, 'chunk')} in total"]
    return ", ".join(parts)


def problem_lines(report: Report) -> Iterator[str]:
    """Yield the notices and the first problems of an import, and the number of further problems."""
    yield from report.notices
    if report.problems:
        yield f"{format_count(len(report.problems), 'document')} not indexed, or only in part:"
    for problem in report.problems[:_MAX_PROBLEMS]:
        tool = f"{problem.tool}: " if problem.tool else ""
        yield f"  {tool}{escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
    if len(report.problems) > _MAX_PROBLEMS:
        yield f"  … and {len(report.problems) - _MAX_PROBLEMS} more; use --json to list all."
    if report.skipped_folders:
        yield skipped_line(report.skipped_folders)


def skipped_line(folders: Sequence[str]) -> str:
    """Return how many folders were skipped by their names, the first of them, and how to read one."""
    named = ", ".join(escape_controls(folder) for folder in folders[:_MAX_SKIPPED])
    more = f", … and {len(folders) - _MAX_SKIPPED} more" if len(folders) > _MAX_SKIPPED else ""
    count = "1 folder by its name" if len(folders) == 1 else f"{len(folders):,} folders by their names"
    return (
        f"Skipped {count} (scanner.exclude_dirs): {named}{more}."
        f" To read one, add it by itself: bunko add {shlex.quote(escape_controls(folders[0]))}"
    )


def _is_stderr_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def show_import_progress(label: str = "Importing") -> Iterator[Observer]:
    """Show the progress of an import: a bar on a terminal, a line every few seconds in a pipe.

    On Ctrl-C the last line says how many files are done: every reported batch is stored.
    """
    last: ImportProgress | None = None
    display = _progress_bar(label) if _is_stderr_terminal() else _progress_lines(label)

    def report_progress(progress: ImportProgress) -> None:
        nonlocal last
        last = progress
        update(progress)

    try:
        with display as update:
            yield Observer(on_progress=report_progress, on_wait=print_stderr)
    except KeyboardInterrupt:
        if last is not None and last.total_files:
            print_stderr(f"Stopped after {last.files:,} of {last.total_files:,} files.")
        raise


@contextmanager
def show_search_progress() -> Iterator[Observer]:
    """Show a bar while a search waits for a large import, on a terminal only."""
    if not _is_stderr_terminal():
        yield NO_OBSERVER
        return
    lock, is_waiting, update = threading.Lock(), True, None

    # The import reports from a thread of its own, and continues when the search has its answer.
    def report_progress(progress: ImportProgress) -> None:
        nonlocal update
        with lock:
            is_large = progress.total_files >= _LARGE_IMPORT_FILES or progress.total_bytes >= _LARGE_IMPORT_BYTES
            if is_waiting and is_large:
                update = update or display.enter_context(_progress_bar("Indexing"))
                update(progress)

    with ExitStack() as display:
        try:
            yield Observer(on_progress=report_progress)
        finally:
            with lock:
                is_waiting = False


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[ImportProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Task, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class SpeedColumn(TransferSpeedColumn):
        """The speed once it is known; rich shows a red question mark before."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.finished_speed or task.speed else Text()

    columns = (
        TextColumn(translate(label)), BarColumn(), TextColumn(f"{{task.fields[files]}} {translate('files')}"),
        TextColumn(f"{{task.fields[chunks]}} {translate('chunks')}"), SpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None, files="0", chunks="0")

        def update(progress: ImportProgress) -> None:
            if not progress.files:  # the next tool begins
                bar.reset(task)
            # Files differ in size, so bytes predict the remaining time better than the number of files.
            files, chunks = f"{progress.files:,}/{progress.total_files:,}", f"{progress.chunks:,}"
            bar.update(task, total=progress.total_bytes, completed=progress.bytes, files=files, chunks=chunks)

        yield update


@contextmanager
def _progress_lines(label: str) -> Iterator[Callable[[ImportProgress], None]]:
    yield progress_line_writer(print_stderr, time.monotonic, label)


def progress_line_writer(
    write: Callable[[str], None], clock: Callable[[], float], label: str = "Importing"
) -> Callable[[ImportProgress], None]:
    """Return a callback that writes a progress line every two seconds, and a last one if it wrote any before."""
    start = last_write = clock()

    def update(progress: ImportProgress) -> None:
        nonlocal start, last_write
        now = clock()
        if not progress.files:
            start = last_write = now
            return
        finished = progress.files >= progress.total_files
        if now - last_write >= _SECONDS_BETWEEN_LINES or (finished and last_write > start):
            write(progress_line(progress, now - start, label))
            last_write = now

    return update


def progress_line(progress: ImportProgress, seconds: float, label: str = "Importing") -> str:
    """Return the progress, speed and remaining time of an import in one line."""
    line = f"{label}: {progress.files:,}/{progress.total_files:,} files, {progress.chunks:,} chunks"
    if seconds > 0:
        line += f", {progress.bytes / seconds / 1e6:.1f} MB/s"
    if 0 < progress.bytes < progress.total_bytes:
        line += f", about {_format_duration(seconds * (progress.total_bytes - progress.bytes) / progress.bytes)} left"
    return line


def _format_duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
