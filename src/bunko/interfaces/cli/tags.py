"""The `bunko tags` command: list tags and how often each is used."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.options import (
    is_terminal,
    names_option,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)


@click.command()
@names_option("Only this tool")
@shared_options
def command(names: tuple[str, ...], **options: Any) -> None:
    """List the tags of documents and memos, most used first.

    \b
    Example:
      bunko tags
      bunko tags -n memos --json
    """
    shared = pop_shared_options(options)
    with shared.open(create=shared.docs_dir is not None) as library:
        tags = library.tags(names or None)
    if not tags:
        print_stderr("No tags yet.")
    if shared.as_json:
        print_json([{"tag": tag, "count": count} for tag, count in tags])
    elif tags and is_terminal():
        from bunko.interfaces.cli.tables import Column, number, show_table

        show_table((Column("tag"), number("count")), [(tag, f"{count:,}") for tag, count in tags])
    else:
        for tag, count in tags:
            click.echo(replace_controls(f"{tag}\t{count}"))
