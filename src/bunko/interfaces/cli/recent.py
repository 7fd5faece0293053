"""`bunko recent`: a library in, its newest documents and memos by date out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import chosen, is_terminal, on_one_line, print_json, say, shared, tool_names
from bunko.types import cited

if TYPE_CHECKING:
    from bunko.records import Dated

_BEGINNING = 60  # characters that stand for a title where there is none


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.", shell_complete=tool_names)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="How many. [10]")
@shared
def command(name: str | None, limit: int, **options: Any) -> None:
    """List the newest documents and memos by their dates.

    \b
    Example:
      bunko recent
      bunko recent -n memos --limit 3 --json
    """
    asked = chosen(options)
    with asked.open(create=asked.docs_dir is not None) as library:
        found = library.recent(name, limit=limit)
    if not found:
        say("There is nothing yet. Import memos with: bunko build --input FOLDER")
    if asked.as_json:
        print_json(
            [
                {
                    "title": one.title,
                    "date": one.date,
                    "tags": list(one.tags),
                    "file_path": one.uri,
                    "citation": _place(one),
                    "beginning": one.beginning,
                    "tool": tool.name,
                }
                for tool, one in found
            ]
        )
    elif found and is_terminal():
        from bunko.interfaces.cli.render import table

        table(
            ("date", "title", "tags", "place"),
            [(one.date, _title(one), ", ".join(one.tags), _place(one)) for _, one in found],
        )
    else:
        for _, one in found:
            click.echo("\t".join(map(on_one_line, (one.date, _title(one), ", ".join(one.tags), _place(one)))))


def _title(one: Dated) -> str:
    return one.title or " ".join(one.beginning[:_BEGINNING].split())


def _place(one: Dated) -> str:
    return cited(one.uri, one.lines.first, one.lines.last) if one.lines.last else one.uri
