"""`bunko recent`: a library in, its newest documents and memos by date out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)
from bunko.types import format_citation

if TYPE_CHECKING:
    from bunko.records import DatedDocument

_MAX_TITLE_CHARS = 60  # characters that stand for a title where there is none


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.", shell_complete=complete_tool_names)
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="How many. [10]")
@shared_options
def command(name: str | None, limit: int, **options: Any) -> None:
    """List the newest documents and memos by their dates.

    \b
    Example:
      bunko recent
      bunko recent -n memos --limit 3 --json
    """
    asked = pop_shared_options(options)
    with asked.open(create=asked.docs_dir is not None) as library:
        found = library.recent_documents(name, limit=limit)
    if not found:
        print_stderr("There is nothing yet. Import memos with: bunko build --input FOLDER")
    if asked.as_json:
        print_json(
            [
                {
                    "title": one.title,
                    "date": one.date,
                    "tags": list(one.tags),
                    "file_path": one.uri,
                    "citation": _document_citation(one),
                    "beginning": one.beginning,
                    "tool": tool.name,
                }
                for tool, one in found
            ]
        )
    elif found and is_terminal():
        from bunko.interfaces.cli.render import show_table

        show_table(
            ("date", "title", "tags", "place"),
            [(one.date, _display_title(one), ", ".join(one.tags), _document_citation(one)) for _, one in found],
        )
    else:
        for _, one in found:
            click.echo(
                "\t".join(
                    map(escape_controls, (one.date, _display_title(one), ", ".join(one.tags), _document_citation(one)))
                )
            )


def _display_title(document: DatedDocument) -> str:
    return document.title or " ".join(document.beginning[:_MAX_TITLE_CHARS].split())


def _document_citation(document: DatedDocument) -> str:
    return (
        format_citation(document.uri, document.lines.first, document.lines.last)
        if document.lines.last
        else document.uri
    )
