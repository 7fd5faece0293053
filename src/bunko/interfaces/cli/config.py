"""`bunko config show`: the settings in force and where each came from."""

from __future__ import annotations

import os
from typing import Any

import click

from bunko.interfaces.cli.options import is_terminal, pop_shared_options, print_json, print_stderr, shared_options


@click.group(name="config")
def command() -> None:
    """Show the settings in force and where each came from.

    \b
    Example:
      bunko config show
    """


@command.command()
@click.argument("key", required=False)
@shared_options
def show(key: str | None, **options: Any) -> None:
    """Print each setting, its value and its origin; secrets are masked.

    \b
    Example:
      bunko config show --docs-dir ~/notes
      bunko config show search
    """
    asked = pop_shared_options(options)
    from bunko.library.open import load_library_settings

    loaded = load_library_settings(asked.library_paths(), environ=os.environ, config=asked.config)
    for notice in loaded.notices:
        print_stderr(notice)
    rows = [row for row in loaded.rows() if key is None or row[0] == key or row[0].startswith(f"{key}.")]
    if not rows:
        raise click.UsageError(f"There is no setting or section {key!r}.")
    if asked.as_json:
        print_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
    elif is_terminal():
        from bunko.interfaces.cli.render import show_settings

        show_settings(rows)
    else:
        for name, value, origin in rows:
            click.echo(f"{name} = {value}  ({origin})")
