"""Progress bars and tables shared by the commands that measure search quality."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from bunko.interfaces.cli.options import is_terminal, replace_controls
from bunko.observer import NO_OBSERVER, Observer

_TEXT_COLUMNS = ("settings", "values")
# Counts behind the interval and p: the first to go on a narrow terminal. The reports have them all.
_PRIORITIES = {"wins": 2, "losses": 2, "ties": 3}


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, Markdown in a pipe."""
    if is_terminal():
        from bunko.interfaces.cli.tables import Column, number, show_table

        click.echo()  # a table has no border that would set it off from the one before
        first, *others = columns
        shown = [
            Column(name, "wrap") if name in _TEXT_COLUMNS else number(name, _PRIORITIES.get(name, 1)) for name in others
        ]
        show_table([Column(first, "wrap"), *shown], rows, title=title)
        return
    from bunko.evaluation.report import markdown_table

    click.echo(replace_controls(title) + "\n")
    for line in markdown_table(columns, rows):
        click.echo(replace_controls(line))
    click.echo()


@contextmanager
def show_evaluation_progress() -> Iterator[Observer]:
    """Draw a progress bar for each step on a terminal; print nothing in a pipe."""
    if not sys.stderr.isatty():
        yield NO_OBSERVER
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report_progress(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(replace_controls(step), total=total)
            bar.update(tasks[step], completed=done, total=total)

        yield Observer(on_step=report_progress)
