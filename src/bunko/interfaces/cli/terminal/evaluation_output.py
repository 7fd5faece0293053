"""Print the tables of the commands that measure search quality."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from bunko.evaluation.report import markdown_table
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.terminal.columns import Column, number
from bunko.interfaces.cli.terminal.printing import is_terminal, replace_controls

_TEXT_COLUMNS = ("settings", "values")
# Counts behind the interval and p: the first to go on a narrow terminal. The reports have them all.
_PRIORITIES = {"wins": 2, "losses": 2, "ties": 3}


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: drawn on a terminal, Markdown in a pipe."""
    if is_terminal():
        click.echo()  # a table has no border that would set it off from the one before
        first, *others = columns
        shown = [
            Column(name, "wrap") if name in _TEXT_COLUMNS else number(name, _PRIORITIES.get(name, 1)) for name in others
        ]
        terminal.tables.show_table([Column(first, "wrap"), *shown], rows, title=title)
        return
    click.echo(replace_controls(title) + "\n")
    for line in markdown_table(columns, rows):
        click.echo(replace_controls(line))
    click.echo()
