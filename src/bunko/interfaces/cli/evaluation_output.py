"""What commands that measure share: a bar while they are at it, tables when they are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from bunko.interfaces.cli.options import is_terminal, replace_controls


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, Markdown in a pipe."""
    if is_terminal():
        from bunko.interfaces.cli import render

        render.show_table(head, rows, title=title, number_columns=head[1:])
        return
    from bunko.evaluation.report import markdown_table

    click.echo(replace_controls(title) + "\n")
    for line in markdown_table(head, rows):
        click.echo(replace_controls(line))
    click.echo()


@contextmanager
def show_evaluation_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each step on a terminal; a pipe gets nothing but the results."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(replace_controls(what), total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield watch
