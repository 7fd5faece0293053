"""The `bunko audit` command: show who changed what, and record what commands change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import SharedOptions, names_option, shared_options
from bunko.interfaces.cli.terminal.columns import Column, local_time, print_rows
from bunko.interfaces.cli.terminal.printing import escape_controls, json_text, print_json, print_stderr
from bunko.library.rights.audit import entry_to_dict, local_caller
from bunko.text.dates import resolve_date

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.rights.audit import AuditRecord
    from bunko.types.access import AuditEntry

_DEFAULT_LIMIT = 50


@click.command()
@names_option("Only changes of this tool")
@click.option("--who", metavar="NAME", help="Only changes by this token, or by user@machine.")
@click.option("--since", metavar="DATE", help="Only changes from this date on: 2024-01-15, or 2w for two weeks ago.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help=f"The newest N changes. [{_DEFAULT_LIMIT}]")
@shared_options
def command(names: Sequence[str], who: str | None, since: str | None, limit: int | None, shared: SharedOptions) -> None:
    """Show who changed the library, when, how, and with what result.

    Changes over HTTP and from Slack are always recorded; those of commands and over stdio if the library is on a server
    or has tokens. "started" is a change that is under way, or whose process was killed.

    \b
    Example:
      bunko audit
      bunko audit -n api-docs --since 2w --json
    """
    with shared.open(create=False) as library:
        entries = [
            entry
            for entry in library.audit.entries(since=_since(library, since) if since else "")
            if (not names or set(names) & set(entry.tools)) and (who is None or entry.who == who)
        ][-(limit or _DEFAULT_LIMIT) :]
    if shared.as_json:
        print_json({"changes": [entry_to_dict(entry) for entry in entries]})
    elif not entries:
        print_stderr("No changes are recorded.")
    else:
        columns = [Column("time", "keep"), Column("who"), Column("via", "keep", 4), Column("action", "keep")]
        columns += [Column("tools", "wrap", 2), Column("result", "keep"), Column("details", "wrap", 3)]
        rows = ((local_time(entry.time), *_cells(entry)) for entry in entries)
        print_rows(columns, rows, plain=((entry.time, *_cells(entry)) for entry in entries))


def _since(library: Library, text: str) -> str:
    """Return a date, written by a person in the local time, as the beginning of times in UTC."""
    local = library.local_time()
    date = resolve_date(text, local)
    first_day = {4: "-01-01", 7: "-01"}.get(len(date), "")  # of a year or a month
    moment = datetime.fromisoformat(date + first_day).replace(tzinfo=local.tzinfo)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _cells(entry: AuditEntry) -> list[str]:
    """Return who did what, so that no text of the caller's can look like another line, column or value."""
    values: Mapping[str, Any] = {**entry.arguments, **entry.details}
    texts = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in values.items()
    }
    # In quotes, if a name and another value could begin in it.
    quoted = {name: json_text(text) if re.search(r'[\s="]', text) else text for name, text in texts.items()}
    details = " ".join(f"{name}={text}" for name, text in quoted.items())
    return [
        escape_controls(cell)
        for cell in (entry.who, entry.via, entry.action, ", ".join(entry.tools), entry.result, details)
    ]


def record_command(
    library: Library,
    action: str,
    *,
    tools: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    always: bool = False,
) -> AbstractContextManager[AuditRecord]:
    """Record the change that a command makes, if several people use the library, or `always`."""
    return library.audit.record(local_caller("cli"), action, tools=tools, arguments=arguments, always=always)
