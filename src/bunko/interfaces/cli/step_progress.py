"""Show how far the steps of a long command have come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import print_stderr
from bunko.observer import Observer

if TYPE_CHECKING:
    from rich.progress import TaskID

# A short step prints nothing in a pipe, a long one shows there that it is alive.
_SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def show_steps() -> Iterator[Observer]:
    """Show a bar for each step on a terminal, a line every few seconds in a pipe."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _step_bars() as update:
            yield Observer(on_step=update, on_wait=print_stderr)
    else:
        yield Observer(on_step=step_line_writer(print_stderr, time.monotonic), on_wait=print_stderr)


@contextmanager
def _step_bars() -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(translate(step), total=total)
            bar.update(tasks[step], completed=done, total=total)

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
