"""The `bunko ls` command: list documents by path, tag or date."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    escape_controls,
    is_terminal,
    names_option,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.documents import Listing, Sort
    from bunko.library.library import Library
    from bunko.records import Filter, ListedDocument
    from bunko.types import Tool

_TERMINAL_LIMIT = 50
# Of the width of a terminal: longer paths are printed whole, and the titles of their lines begin further right.
_PATH_SHARE = 0.4
_MIN_TITLE_CELLS = 8


@click.command()
@click.argument("path", required=False, metavar="[PATH]")
@names_option("Only this tool")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only documents with this tag; may be repeated.")
@click.option(
    "--since",
    metavar="DATE",
    help="Only documents from this date on: 2024-01-15, 2024-01, today, or 2w for two weeks ago.",
)
@click.option("--until", metavar="DATE", help="Only documents up to this date.")
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
    **options: Any,
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
    from bunko.records import Filter
    from bunko.text.tags import normalise_tag

    shared = pop_shared_options(options)
    is_table = is_terminal() and not (shared.as_json or null_ends)
    where = Filter("", tuple(map(normalise_tag, options["tags"])), options["since"] or "", options["until"] or "")
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
        _show(listing)
    else:
        _print_paths(listing, is_long=is_long, null_ends=null_ends)


def _list(library: Library, path: str, names: tuple[str, ...], where: Filter, sort: Sort, limit: int) -> Listing:
    """List documents; a path without a wildcard may be a folder."""
    from dataclasses import replace

    from bunko.interfaces.cli.locations import is_local_path
    from bunko.library.documents import ListRequest

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
    from bunko.errors import UnknownName

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


def _print_paths(listing: Listing, *, is_long: bool, null_ends: bool) -> None:
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


def _count_text(listing: Listing) -> str:
    from bunko.interfaces.text import format_count

    total = format_count(listing.total, "document", number_format=",")
    if len(listing.documents) == listing.total:
        return total
    return f"{len(listing.documents):,} of {total}. Show more with --limit."


def _show(listing: Listing) -> None:
    """Show a line for each document: its date, its whole path, and as much of title and tags as fits."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    paths = [escape_controls(document.uri) for _, document in listing.documents]
    path_width = min(max(map(cell_len, paths)), int(console.width * _PATH_SHARE))
    several_tools = len({tool.name for tool, _ in listing.documents}) > 1
    for path, (tool, document) in zip(paths, listing.documents, strict=True):
        line = Text.assemble((f"{document.date[:10]:10}  ", "green"), (path, "bold"))
        line.append(" " * (max(0, path_width - cell_len(path)) + 2))
        details = Text.assemble(
            escape_controls(" ".join(document.title.split())),
            ("  " + " ".join(f"#{escape_controls(tag)}" for tag in document.tags) if document.tags else "", "cyan"),
            (f"  {escape_controls(tool.name)}" if several_tools else "", "magenta"),
        )
        remaining = console.width - line.cell_len
        if remaining >= _MIN_TITLE_CELLS:
            details.truncate(remaining, overflow="ellipsis")
            line.append_text(details)
        line.rstrip()
        console.print(line, soft_wrap=True)
    console.print(Text(translate(_count_text(listing)), style="dim"))


def _document_to_dict(tool: Tool, document: ListedDocument) -> dict[str, Any]:
    from bunko.interfaces.serialize import readable_address
    from bunko.library.assistant_names import assistant_name
    from bunko.library.document_files import document_file

    file = document_file(tool, document.uri)
    result: dict[str, Any] = {
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
