"""Draw progress bars on a terminal with Rich; they are erased at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from bunko.messages import translate

if TYPE_CHECKING:
    from bunko.runtime.observer import CrawlProgress, ImportProgress


@contextmanager
def import_bar(label: str) -> Iterator[Callable[[ImportProgress], None]]:
    """Draw the progress of an import."""

    class SpeedColumn(TransferSpeedColumn):
        """The speed once it is known; rich shows a red question mark before."""

        def render(self, task: Task) -> Text:
            return super().render(task) if task.finished_speed or task.speed else Text()

    columns = (
        TextColumn(translate(label)), BarColumn(), TextColumn(f"{{task.fields[files]}} {translate('files')}"),
        TextColumn(f"{{task.fields[chunks]}} {translate('chunks')}"), SpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None, files="0", chunks="0")

        def update(progress: ImportProgress) -> None:
            if not progress.files:  # the next tool begins
                bar.reset(task)
            # Files differ in size, so bytes predict the remaining time better than the number of files.
            files, chunks = f"{progress.files:,}/{progress.total_files:,}", f"{progress.chunks:,}"
            bar.update(task, total=progress.total_bytes, completed=progress.bytes, files=files, chunks=chunks)

        yield update


@contextmanager
def fetch_bar(label: str) -> Iterator[Callable[[CrawlProgress], None]]:
    """Draw how many pages of a web site were fetched."""
    pages = TextColumn(f"{{task.completed:.0f}}/{{task.total:.0f}} {translate('pages')}")
    errors = TextColumn(f"{{task.fields[problems]}} {translate('errors')}")
    bar = Progress(
        TextColumn(translate(label)), BarColumn(), pages, errors, TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task("crawl", total=1, problems=0)

    def update(progress: CrawlProgress) -> None:
        bar.start()
        bar.update(task, completed=progress.pages, total=progress.total, problems=progress.problems)
        if progress.pages == progress.total:
            bar.stop()

    try:
        yield update
    finally:
        bar.stop()


@contextmanager
def step_bars(describe: Callable[[str], str], *, in_bytes: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each step, or for each file that is downloaded, which begins with what `describe` returns."""
    amounts = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amounts, TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(describe(step), total=total)
            bar.update(tasks[step], completed=done, total=total)

        yield update
