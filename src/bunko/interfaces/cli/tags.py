"""`bunko tags`: a library in, its tags and how often each is used out."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.options import chosen, is_terminal, print_json, say, shared, tool_names, visible


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.", shell_complete=tool_names)
@shared
def command(name: str | None, **options: Any) -> None:
    """List the tags of documents and memos, the most used first.

    \b
    Example:
      bunko tags
      bunko tags -n memos --json
    """
    asked = chosen(options)
    with asked.open(create=asked.docs_dir is not None) as library:
        found = library.tags(name)
    if not found:
        say("There are no tags yet.")
    if asked.as_json:
        print_json([{"tag": tag, "count": count} for tag, count in found])
    elif found and is_terminal():
        from bunko.interfaces.cli.render import table

        table(("tag", "count"), [(tag, f"{count:,}") for tag, count in found], numbers=("count",))
    else:
        for tag, count in found:
            click.echo(visible(f"{tag}\t{count}"))
