"""The `bunko recent` command: list the newest documents by date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    escape_controls,
    is_terminal,
    names_option,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)
from bunko.types import format_citation

if TYPE_CHECKING:
    from bunko.records import DatedDocument
    from bunko.types import Tool

_MAX_TITLE_CHARS = 60  # of the text, for a document without a title


@click.command()
@names_option("Only this tool")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="Number of documents. [10]")
@shared_options
def command(names: tuple[str, ...], limit: int, **options: Any) -> None:
    """List the newest documents and memos by date.

    \b
    Example:
      bunko recent
      bunko recent -n memos --limit 3 --json
    """
    shared = pop_shared_options(options)
    with shared.open(create=shared.docs_dir is not None) as library:
        results = library.recent_documents(names or None, limit=limit)
    if not results:
        print_stderr("No documents yet. Import memos with: bunko build --input FOLDER")
    if shared.as_json:
        print_json([_document_to_dict(document, tool.name) for tool, document in results])
        return
    if results and is_terminal():
        _show_documents(results)
        return
    for _, document in results:
        row = document.date, _display_title(document), ", ".join(document.tags), _document_citation(document)
        click.echo("\t".join(map(escape_controls, row)))


def _show_documents(results: list[tuple[Tool, DatedDocument]]) -> None:
    from bunko.interfaces.cli.tables import Column, show_table

    columns = (
        Column("date", "keep"),
        Column("title", min_width=20),
        Column("tags", priority=4),
        Column("tool", priority=3),
        Column("citation", "path", 2, min_width=20),
    )
    tool_names = {tool.name for tool, _ in results}
    rows = (
        (
            document.date.replace("T", " ")[:16],  # to the minute
            _display_title(document),
            ", ".join(document.tags),
            tool.name if len(tool_names) > 1 else "",
            escape_controls(_document_citation(document)),
        )
        for tool, document in results
    )
    show_table(columns, rows)


def _document_to_dict(document: DatedDocument, tool_name: str) -> dict[str, Any]:
    return {
        "title": document.title,
        "date": document.date,
        "tags": list(document.tags),
        "file_path": document.uri,
        "citation": _document_citation(document),
        "beginning": document.beginning,
        "tool": tool_name,
    }


def _display_title(document: DatedDocument) -> str:
    return document.title or " ".join(document.beginning[:_MAX_TITLE_CHARS].split())


def _document_citation(document: DatedDocument) -> str:
    if not document.lines.last:
        return document.uri
    return format_citation(document.uri, document.lines.first, document.lines.last)
