"""The `bunko ls`, `bunko recent` and `bunko tags` commands: list documents and their tags."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.errors import UnknownName
from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.commands.get import is_local_path
from bunko.interfaces.cli.options import SharedOptions, filter_options, names_option, shared_options
from bunko.interfaces.cli.terminal.columns import Column, number, print_rows
from bunko.interfaces.cli.terminal.printing import escape_controls, is_terminal, print_json, print_stderr
from bunko.interfaces.serialize import readable_address
from bunko.interfaces.text import format_count
from bunko.library.reading.document_files import document_file
from bunko.library.reading.documents import ListRequest
from bunko.library.tools.assistant_names import assistant_name
from bunko.readers.places import without_cells
from bunko.types import format_citation

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.reading.documents import Listing, Sort
    from bunko.types import Tool
    from bunko.types.records import DatedDocument, Filter, ListedDocument

_TERMINAL_LIMIT = 50


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@names_option("Only this tool")
@filter_options
@click.option("--sort", type=click.Choice(["newest", "name"]), default="newest", help="Order. [newest]")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Number of documents. [50 on a terminal, all in a pipe]"
)
@click.option("--long", "-l", "is_long", is_flag=True, help="In a pipe: date, path, title, tags and tool, with tabs.")
@click.option("--null", "-0", "null_ends", is_flag=True, help="In a pipe: end paths with NUL, for xargs -0.")
@shared_options
def command(
    path: str | None,
    names: tuple[str, ...],
    sort: Sort,
    limit: int | None,
    is_long: bool,
    null_ends: bool,
    where: Filter,
    shared: SharedOptions,
) -> None:
    """List documents by path, tag or date.

    PATH is a folder, or a pattern in quotes: 'guide/**', '*.md'. In a pipe, each line is a path that `bunko get` and
    `bunko open` take.

    \b
    Example:
      bunko ls --tag 会議 --since 3m
      bunko ls 'guide/*.md' -n handbook --sort name
      bunko ls -0 --since today | xargs -0 -n 1 bunko get
    """
    is_table = is_terminal() and not (shared.as_json or null_ends)
    with shared.open(create=shared.docs_dir is not None) as library:
        listing = _list(
            library, path or "", names, where, sort, limit or (_TERMINAL_LIMIT if is_table else sys.maxsize)
        )
    if shared.as_json:
        documents = [_document_to_dict(tool, document) for tool, document in listing.documents]
        print_json({"documents": documents, "total": listing.total})
        return
    if not listing.documents:
        print_stderr("No documents match.")
    elif is_table:
        terminal.render.show_documents(listing.documents, _count_text(listing))
    else:
        for tool, document in listing.documents:
            if null_ends:
                click.echo(f"{document.uri}\0", nl=False)
            elif is_long:
                fields = (document.date, document.uri, document.title, ", ".join(document.tags), tool.name)
                click.echo("\t".join(map(escape_controls, fields)))
            else:
                click.echo(escape_controls(document.uri))
        if len(listing.documents) < listing.total:
            print_stderr(_count_text(listing))


def _list(library: Library, path: str, names: tuple[str, ...], where: Filter, sort: Sort, limit: int) -> Listing:
    """List documents; a path without a wildcard may be a folder."""
    if is_local_path(path):
        tool, path = _find_folder(library.tools(), path, names)
        names = (tool,)
    patterns = [f"{path}**"] if path.endswith("/") else [path]
    if path and not any(wildcard in path for wildcard in "*?["):
        patterns.append(f"{path.rstrip('/')}/**")
    for pattern in patterns:
        listing = library.documents.list_documents(
            ListRequest(names or None, (), replace(where, path=pattern), sort, limit)
        )
        if listing.total:
            break
    return listing


def _find_folder(tools: Sequence[Tool], path: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the tool with a folder of this machine, and the pattern of the documents in it."""
    folder = Path(path).expanduser().resolve()
    candidates = [
        tool
        for tool in tools
        if tool.source and (not names or tool.name in names) and folder.is_relative_to(Path(tool.source))
    ]
    if not candidates:
        raise UnknownName(f"{folder} is in the folder of no tool", hint="See the folders with: bunko tool ls")
    tool = max(candidates, key=lambda candidate: len(candidate.source))
    inner = folder.relative_to(tool.source).as_posix()
    if inner == ".":
        return tool.name, ""
    if not folder.exists():
        return tool.name, inner  # it may be a pattern
    literal = re.sub(r"[*?\[]", r"[\g<0>]", inner)
    return tool.name, f"{literal}/" if folder.is_dir() else literal


def _count_text(listing: Listing) -> str:
    total = format_count(listing.total, "document", number_format=",")
    if len(listing.documents) == listing.total:
        return total
    return f"{len(listing.documents):,} of {total}. Show more with --limit."


def _document_to_dict(tool: Tool, document: ListedDocument) -> dict[str, object]:
    file = document_file(tool, document.uri)
    result: dict[str, object] = {
        "tool": tool.name,
        "file_path": document.uri,
        "absolute_path": str(file) if file else "",
        "title": document.title,
        "date": document.date,
        "tags": list(document.tags),
        "media_type": document.media_type,
        "bytes": document.size,
        "uri": readable_address(assistant_name(tool), document.uri),
    }
    return {name: value for name, value in result.items() if name != "absolute_path" or value}


_MAX_TITLE_CHARS = 60  # of the text, for a document without a title
_WORDS = re.compile(r"(?![|+]).*\w")  # not a row of a table or a rule


@click.command()
@names_option("Only this tool")
@filter_options
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", help="Number of documents. [10]")
@shared_options
def recent(names: tuple[str, ...], limit: int, where: Filter, shared: SharedOptions) -> None:
    """List the newest documents and memos by date.

    \b
    Example:
      bunko recent
      bunko recent -n memos --limit 3 --json
      bunko recent --tag 会議 --since 2w
    """
    with shared.open(create=shared.docs_dir is not None) as library:
        results = library.recent_documents(names or None, limit=limit, where=where)
    if not results and where:
        print_stderr("No documents match.")
    elif not results:
        print_stderr("No documents yet. Import memos with: bunko build --input FOLDER")
    if shared.as_json:
        print_json(
            [
                {
                    "title": document.title,
                    "date": document.date,
                    "tags": list(document.tags),
                    "file_path": document.uri,
                    "citation": _document_citation(document),
                    "beginning": document.beginning,
                    "tool": tool.name,
                }
                for tool, document in results
            ]
        )
        return
    columns = (
        Column("date", "keep"),
        Column("title", min_width=20),
        Column("tags", priority=4),
        Column("tool", priority=3),
        Column("citation", "path", 2, min_width=20),
    )
    several_tools = len({tool.name for tool, _ in results}) > 1
    rows = [
        (
            document.date.replace("T", " ")[:16],  # to the minute
            _display_title(document),
            ", ".join(document.tags),
            tool.name if several_tools else "",
            escape_controls(_document_citation(document)),
        )
        for tool, document in results
    ]
    plain = (
        (document.date, _display_title(document), ", ".join(document.tags), _document_citation(document))
        for _, document in results
    )
    if results:
        print_rows(columns, rows, plain=plain)


def _display_title(document: DatedDocument) -> str:
    """Return the title, else the first words of the text, else the name of the file: a table has no words to show."""
    if document.title:
        return document.title
    lines = [" ".join(line.split()) for line in document.beginning.splitlines() if _WORDS.match(line)]
    if lines and (sheet := without_cells(lines[0].removeprefix("## "))) != lines[0].removeprefix("## "):
        return sheet
    return " ".join(lines)[:_MAX_TITLE_CHARS] or document.uri.rpartition("/")[2]


def _document_citation(document: DatedDocument) -> str:
    if not document.lines.last:
        return document.uri
    return format_citation(document.uri, document.lines.first, document.lines.last)


@click.command()
@names_option("Only this tool")
@shared_options
def tags(names: tuple[str, ...], shared: SharedOptions) -> None:
    """List the tags of documents and memos, most used first.

    \b
    Example:
      bunko tags
      bunko tags -n memos --json
    """
    with shared.open(create=shared.docs_dir is not None) as library:
        tags = library.tags(names or None)
    if not tags:
        print_stderr("No tags yet.")
    if shared.as_json:
        print_json([{"tag": tag, "count": count} for tag, count in tags])
    elif tags:
        rows = ((tag, f"{count:,}") for tag, count in tags)
        print_rows((Column("tag"), number("count")), rows, plain=((tag, str(count)) for tag, count in tags))
