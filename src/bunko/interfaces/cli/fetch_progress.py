"""Show the progress of fetching web pages and importing them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bunko.interfaces.cli.import_report import show_import_progress
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import print_stderr
from bunko.interfaces.text import format_count
from bunko.observer import Observer

if TYPE_CHECKING:
    from bunko.observer import CrawlProgress, ImportProgress

_SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def show_fetch_progress(label: str) -> Iterator[Observer]:
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

    pages = TextColumn(f"{{task.completed:.0f}}/{{task.total:.0f}} {translate('pages')}")
    errors = TextColumn(f"{{task.fields[problems]}} {translate('errors')}")
    bar = Bar(
        TextColumn(translate(label)), BarColumn(), pages, errors, TimeRemainingColumn(),
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
