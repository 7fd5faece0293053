"""`bunko tags`: a library in, its tags and how often each is used out."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.options import (
    complete_tool_names,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.", shell_complete=complete_tool_names)
@shared_options
def command(name: str | None, **options: Any) -> None:
    """List the tags of documents and memos, the most used first.

    \b
    Example:
      bunko tags
      bunko tags -n memos --json
    """
    asked = pop_shared_options(options)
    with asked.open(create=asked.docs_dir is not None) as library:
        found = library.tags(name)
    if not found:
        print_stderr("There are no tags yet.")
    if asked.as_json:
        print_json([{"tag": tag, "count": count} for tag, count in found])
    elif found and is_terminal():
        from bunko.interfaces.cli.render import show_table

        show_table(("tag", "count"), [(tag, f"{count:,}") for tag, count in found], number_columns=("count",))
    else:
        for tag, count in found:
            click.echo(replace_controls(f"{tag}\t{count}"))
