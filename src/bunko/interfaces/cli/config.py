"""The `bunko config` commands: show settings and their origins."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.help_formatter import CommandGroup
from bunko.interfaces.cli.options import is_terminal, pop_shared_options, print_json, print_stderr, shared_options


@click.group(name="config", cls=CommandGroup)
def command() -> None:
    """Show the current settings and where each comes from.

    \b
    Example:
      bunko config show
    """


@command.command()
@click.argument("key", required=False)
@shared_options
def show(key: str | None, **options: Any) -> None:
    """Print each setting with its value and origin. Secrets are masked.

    \b
    Example:
      bunko config show --docs-dir ~/notes
      bunko config show search
    """
    shared = pop_shared_options(options)
    loaded = shared.load_settings(all_providers=True)
    for notice in loaded.notices:
        print_stderr(notice)
    rows = [row for row in loaded.rows() if key is None or row[0] == key or row[0].startswith(f"{key}.")]
    if not rows:
        raise click.UsageError(f"No such setting or section: {key!r}")
    if shared.as_json:
        print_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
    elif is_terminal():
        from bunko.interfaces.cli.render import show_settings

        show_settings(rows)
    else:
        for name, value, origin in rows:
            click.echo(f"{name} = {value}  ({origin})")
