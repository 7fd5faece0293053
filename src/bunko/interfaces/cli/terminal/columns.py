"""Print rows: as a table at a terminal, whose columns say what happens to them on a narrow one, with tabs in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.terminal.printing import escape_controls, is_terminal
from bunko.messages import translate

if TYPE_CHECKING:
    from bunko.interfaces.cli.terminal.tables import Cell

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_MAX_DAYS = 30  # an older time is easier to place as a date


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: what happens to it on a narrow terminal.

    `fit` says how a long cell is shown: whole ("keep"), cut at its end ("cut"), cut between the folders of a path
    ("path"), or on several lines ("wrap"). It needs at least `min_width` cells; without room for all columns, the one
    with the highest `priority` is left out first. Columns of priority 1 are always shown.
    """

    name: str
    fit: Literal["keep", "cut", "path", "wrap"] = "cut"
    priority: int = 1
    min_width: int = 12
    is_number: bool = False


def number(name: str, priority: int = 1) -> Column:
    """Return a column of numbers, aligned to the right and never cut."""
    return Column(name, "keep", priority, is_number=True)


def print_rows(
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    plain: Iterable[Sequence[str]],
    header: Sequence[str] = (),
    title: str = "",
) -> None:
    """Print rows as a table at a terminal; in a pipe, the plain ones with tabs, after a header in the user's language.

    Rows that are generated are computed only if they are printed.
    """
    if is_terminal():
        terminal.tables.show_table(columns, rows, title=title)
        return
    if header:
        click.echo("\t".join(map(translate, header)))
    for row in plain:
        click.echo("\t".join(map(escape_controls, row)))


def display_path(text: str) -> str:
    """Return a path, or a sentence with paths, with ~ for the home folder."""
    try:
        home = Path.home()
    except RuntimeError:  # this user has none
        return text
    if home == home.parent:
        return text
    return re.sub(rf"(?<!\S){re.escape(str(home))}(?=[\s/\\]|$)", "~", text)


def local_time(timestamp: str) -> str:
    """Return a time in the time zone of the user, to the minute, and any other text as it is."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return timestamp


def current_time() -> datetime:
    """Return the time against which ages are measured."""
    return datetime.now(UTC)


def format_age(timestamp: str) -> str:
    """Return how long ago a time was ("3 min ago"), its date after a month, and any other text as it is."""
    try:
        time = datetime.fromisoformat(timestamp).astimezone()
    except ValueError:
        return translate(timestamp)  # "never"
    seconds = (current_time() - time).total_seconds()
    if not -_MINUTE < seconds < (_MAX_DAYS + 1) * _DAY:
        return time.strftime("%Y-%m-%d")
    if seconds < _MINUTE:
        return translate("just now")
    if seconds < _HOUR:
        return translate(f"{seconds // _MINUTE:.0f} min ago")
    if seconds < _DAY:
        return translate(f"{seconds // _HOUR:.0f} h ago")
    days = seconds // _DAY
    return translate("1 day ago" if days == 1 else f"{days:.0f} days ago")
