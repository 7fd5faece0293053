"""Show how far long work has come: bars at a terminal, in a pipe a line every few seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.terminal.printing import print_stderr, replace_controls
from bunko.interfaces.text import format_count
from bunko.messages import translate
from bunko.runtime.observer import NO_OBSERVER, Observer

if TYPE_CHECKING:
    from bunko.runtime.observer import CrawlProgress, ImportProgress

# A log should show that work is alive without filling up: shorter work prints only its summary.
_SECONDS_BETWEEN_LINES = 2.0
# A search imports fewer files in a moment, in which a bar would only flicker.
_LARGE_IMPORT_FILES, _LARGE_IMPORT_BYTES = 100, 1_000_000
_MEGABYTE = 1_000_000


def _is_stderr_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def show_import_progress(label: str = "Importing") -> Iterator[Observer]:
    """Show the progress of an import: a bar on a terminal, a line every few seconds in a pipe.

    On Ctrl-C the last line says how many files are done: every reported batch is stored.
    """
    last: ImportProgress | None = None
    writer = progress_line_writer(print_stderr, time.monotonic, label)
    display = terminal.progress_bars.import_bar(label) if _is_stderr_terminal() else nullcontext(writer)

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
                update = update or display.enter_context(terminal.progress_bars.import_bar("Indexing"))
                update(progress)

    with ExitStack() as display:
        try:
            yield Observer(on_progress=report_progress)
        finally:
            with lock:
                is_waiting = False


@contextmanager
def show_fetch_progress(label: str) -> Iterator[Observer]:
    """Show the progress of fetching, then importing: a bar on a terminal, a line every few seconds in a pipe."""
    last: CrawlProgress | None = None
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
            update = stack.enter_context(
                terminal.progress_bars.fetch_bar(label) if _is_stderr_terminal() else _fetch_lines(label)
            )
            yield Observer(on_progress=report_import, on_crawl=report_fetch, on_wait=print_stderr)
    except KeyboardInterrupt:
        if last is not None:
            print_stderr(f"Stopped after {last.pages:,} of {format_count(last.total, 'page', number_format=',')}.")
        raise


@contextmanager
def show_steps() -> Iterator[Observer]:
    """Show a bar for each step on a terminal, a line every few seconds in a pipe."""
    if _is_stderr_terminal():
        with terminal.progress_bars.step_bars(translate) as update:
            yield Observer(on_step=update, on_wait=print_stderr)
    else:
        # A short step prints nothing in a pipe, a long one shows there that it is alive.
        yield Observer(on_step=step_line_writer(print_stderr, time.monotonic), on_wait=print_stderr)


@contextmanager
def show_evaluation_progress() -> Iterator[Observer]:
    """Draw a progress bar for each step on a terminal; print nothing in a pipe."""
    if not sys.stderr.isatty():
        yield NO_OBSERVER
        return
    with terminal.progress_bars.step_bars(replace_controls) as update:
        yield Observer(on_step=update)


@contextmanager
def show_download() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar for each file that is downloaded on a terminal, a line every few seconds in a pipe."""
    if not _is_stderr_terminal():
        last_write = time.monotonic()

        def write_line(file: str, done: int, total: int) -> None:
            nonlocal last_write
            if time.monotonic() - last_write >= _SECONDS_BETWEEN_LINES:
                last_write = time.monotonic()
                print_stderr(f"{file}: {done / _MEGABYTE:.1f}/{total / _MEGABYTE:.1f} MB")

        yield write_line
        return
    with terminal.progress_bars.step_bars(str, in_bytes=True) as update:
        yield update


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


@contextmanager
def _fetch_lines(label: str) -> Iterator[Callable[[CrawlProgress], None]]:
    last_line = time.monotonic()

    def update(progress: CrawlProgress) -> None:
        nonlocal last_line
        if time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
            last_line = time.monotonic()
            pages = f"{progress.pages:,}/{format_count(progress.total, 'page', number_format=',')}"
            print_stderr(f"{label}: {pages}, {format_count(progress.problems, 'error')}")

    yield update


def step_line_writer(write: Callable[[str], None], clock: Callable[[], float]) -> Callable[[str, int, int], None]:
    """Return a callback that writes a line about a step every two seconds."""
    last_write = clock()

    def update(step: str, done: int, total: int) -> None:
        nonlocal last_write
        if clock() - last_write >= _SECONDS_BETWEEN_LINES:
            write(f"{translate(step)}: {done:,}/{total:,}")
            last_write = clock()

    return update
