"""`bunko status`: a library in, what it holds, or all about one of its tools, out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    format_count,
    is_terminal,
    pop_shared_options,
    print_json,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.status import LibraryStatus, ToolDetails, ToolStatus

SOURCE_REMARKS = {
    "missing": "the source is not there; what was indexed is kept",
    "empty": "the source is empty; what was indexed is kept",
    "unreadable": "the source cannot be read; what was indexed is kept",
}
DOCUMENT_COLUMNS = ("document", "title", "chunks", "characters", "language")
_PAGE_SIZE = 20


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="TOOL",
    help="All about this tool: its documents, its chunks, what changed.",
    shell_complete=complete_tool_names,
)
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="Which page of its documents. [1]")
@click.option("--page-size", type=click.IntRange(1, 1000), metavar="N", help=f"Documents on a page. [{_PAGE_SIZE}]")
@shared_options
def command(name: str | None, page: int | None, page_size: int | None, **options: Any) -> None:
    """Show what is indexed.

    A tool's size is the bytes of its texts, terms, chunks and vectors and of its derived files, without what SQLite
    adds. With --name its source is looked at for changes, and nothing is imported.

    \b
    Example:
      bunko status --docs-dir ~/notes
      bunko status -n documents --page 2 --docs-dir ~/notes
    """
    asked = pop_shared_options(options)
    if name is None and (page is not None or page_size is not None):
        raise click.UsageError("--page and --page-size go with --name.")
    with asked.open(create=False) as library:
        if name is None:
            found: LibraryStatus | ToolDetails = library.status()
        else:
            found = library.tool_status(name, page=page or 1, page_size=page_size or _PAGE_SIZE)
    _print_status(found, as_json=asked.as_json)


def _print_status(result: LibraryStatus | ToolDetails, *, as_json: bool) -> None:
    from bunko.library.status import LibraryStatus

    if as_json:
        print_json(status_to_dict(result) if isinstance(result, LibraryStatus) else details_to_dict(result))
    elif is_terminal():
        from bunko.interfaces.cli import render

        if isinstance(result, LibraryStatus):
            render.show_status(result)
        else:
            render.show_details(result)
    else:
        lines = status_lines(result) if isinstance(result, LibraryStatus) else details_lines(result)
        click.echo(replace_controls("\n".join(lines)))


def status_to_dict(status: LibraryStatus) -> dict[str, Any]:
    """Return a status as a plain dictionary."""
    return {
        "library": str(status.database),
        "generation": status.generation,
        "bytes": status.bytes,
        "derived_bytes": status.derived_bytes,
        "tools": [_tool_status_to_dict(one) for one in status.tools],
        "embedders": {name: asdict(one) for name, one in status.embedding_usage.items()},
    }


def details_to_dict(details: ToolDetails) -> dict[str, Any]:
    """Return all about a tool as a plain dictionary."""
    held, changes, lengths = details.status, details.changes, details.chunk_lengths
    return _tool_status_to_dict(held) | {
        "description": held.tool.description,
        "created_at": held.tool.created_at,
        "options": held.tool.options,
        "embedding": {"model": held.tool.built.get("embedder", ""), "dimension": held.storage.dimension},
        "room": {
            "text": held.storage.text,
            "index": held.storage.index,
            "vectors": held.storage.vectors,
            "derived": held.derived_bytes,
        },
        "freshness": {
            "last_look": details.checked_at,
            "looked_at": changes and changes.checked_at,
            "new": changes and changes.new,
            "changed": changes and changes.changed,
            "gone": changes and changes.gone,
            "moved": changes and changes.moved,
        },
        "chunk_lengths": lengths
        and {
            "min": lengths.minimum,
            "median": lengths.median,
            "p90": lengths.p90,
            "max": lengths.maximum,
            "mean": lengths.mean,
            "bins": [{"from": one.low, "to": one.high, "chunks": one.count} for one in lengths.bins],
        },
        "page": details.page,
        "page_size": details.page_size,
        "pages": details.pages,
        "document_list": [
            {
                "file_path": one.uri,
                "title": one.title,
                "chunks": one.chunks,
                "characters": one.characters,
                "language": one.language,
            }
            for one in details.documents
        ],
    }


def _tool_status_to_dict(tool_status: ToolStatus) -> dict[str, Any]:
    return {
        "name": tool_status.tool.name,
        "kind": tool_status.tool.kind,
        "active": tool_status.tool.active,
        "source": tool_status.tool.source,
        "source_state": tool_status.source_state,
        "documents": tool_status.totals.documents,
        "chunks": tool_status.totals.chunks,
        "vectors": tool_status.totals.vectors,
        "characters": tool_status.totals.characters,
        "bytes": tool_status.bytes,
        "import_state": tool_status.import_state,
        "last_import": tool_status.tool.imported_at,
        "rebuild_documents": tool_status.rebuild_documents,
        "built": tool_status.tool.built,
        "problems": [{"file_path": p.uri, "reason": p.reason} for p in tool_status.problems],
    }


def status_lines(status: LibraryStatus) -> list[str]:
    """Return a status as lines for a pipe."""
    lines = [
        f"library: {status.database} ({format_size(status.bytes)}, derived {format_size(status.derived_bytes)},"
        f" generation {status.generation})"
    ]
    for one in status.tools:
        lines.append(
            f"{one.tool.name}: {state_text(one)}, {_format_counts(one)}, {format_size(one.bytes)}, last import {last_import_text(one)},"  # noqa: E501
            f" from {escape_controls(one.tool.source) or 'the web'}"
        )
        lines += [f"  {line}" for line in (*tool_remarks(one), *problem_lines(one))]
    if not status.tools:
        lines.append("There are no tools yet.")
    return lines + [f"embedder {name}: {told}" for name, told in embedder_usage(status)]


def embedder_usage(status: LibraryStatus) -> list[tuple[str, str]]:
    """Return what imports had of each embedder, and what they were spared because a text was known."""
    return [
        (
            name,
            f"{format_count(one.texts, 'text', number_format=',')} embedded in {format_count(one.calls, 'call', number_format=',')};"  # noqa: E501
            f" {format_count(one.saved_texts, 'text', number_format=',')} known before,"
            f" {format_count(one.saved_calls, 'call', number_format=',')} saved",
        )
        for name, one in status.embedding_usage.items()
    ]


def details_lines(details: ToolDetails) -> list[str]:
    """Return all about a tool as lines for a pipe; the documents are in columns with tabs between."""
    lines = [f"{name}: {value}" for name, value in tool_facts(details)]
    if details.chunk_lengths:
        lines.append(f"chunk lengths: {length_summary(details)}")
        lines += [f"  {one.low}-{one.high}: {one.count}" for one in details.chunk_lengths.bins]
    lines += [*tool_remarks(details.status), *problem_lines(details.status)]
    lines.append(page_summary(details))
    lines.append("\t".join(DOCUMENT_COLUMNS))
    for one in details.documents:
        title = escape_controls(" ".join(one.title.split()))
        lines.append(f"{escape_controls(one.uri)}\t{title}\t{one.chunks}\t{one.characters}\t{one.language}")
    return lines


def tool_facts(details: ToolDetails) -> list[tuple[str, str]]:
    """Return what there is to say about a tool, in names and values."""
    held, tool, totals, room = details.status, details.status.tool, details.status.totals, details.status.storage
    told = [
        ("tool", f"{tool.name} ({tool.kind}, {state_text(held)})"),
        ("description", tool.description or "none"),
        ("source", escape_controls(tool.source) or "the web"),
        *((name, _format_value(value)) for name, value in tool.options.items()),
        ("created", tool.created_at or "unknown"),
        ("last import", last_import_text(held)),
        ("holds", f"{_format_counts(held, ',')}, {format_count(totals.characters, 'character', number_format=',')}"),
        ("size", f"{format_size(held.bytes)} (text {format_size(room.text)}, index {format_size(room.index)}, vectors {format_size(room.vectors)},"  # noqa: E501
         f" derived {format_size(held.derived_bytes)})"),
    ]  # fmt: skip
    if tool.built:
        vectors = f", {room.dimension} dimensions" if room.dimension else ""
        rest = ", ".join(f"{name} {_format_value(value)}" for name, value in tool.built.items() if name != "embedder")
        told += [("embedding", f"{tool.built.get('embedder', 'none')}{vectors}"), ("built with", rest)]
    told.append(("last look", details.checked_at or "never"))
    if details.changes:
        changes = details.changes
        told.append(
            ("now", f"{changes.new} new, {changes.changed} changed, {changes.gone} gone, {changes.moved} moved")
        )
    return told


def length_summary(details: ToolDetails) -> str:
    """Return how long chunks are, in one line."""
    spread = details.chunk_lengths
    if spread is None:
        return "no chunks"
    return (
        f"min {spread.minimum:,}, median {spread.median:,}, p90 {spread.p90:,}, max {spread.maximum:,},"
        f" mean {spread.mean:,.1f} characters"
    )


def page_summary(details: ToolDetails) -> str:
    """Return which documents of how many are listed, and how to see others."""
    documents = format_count(details.status.totals.documents, "document", number_format=",")
    if details.page > details.pages:
        return f"there is no page {details.page}: {documents} fill {format_count(details.pages, 'page')}; --page 1 is the first"  # noqa: E501
    told = f"page {details.page} of {details.pages}, {documents}"
    return f"{told}; --page {details.page + 1} shows the next" if details.page < details.pages else told


def tool_remarks(tool_status: ToolStatus) -> list[str]:
    """Return what a user should know about a tool beside its numbers."""
    told = [SOURCE_REMARKS[tool_status.source_state]] if tool_status.source_state in SOURCE_REMARKS else []
    if tool_status.import_state == "unfinished":
        told.append("its first import was not finished; importing it again goes on from there")
    if tool_status.rebuild_documents is not None:
        held = format_count(tool_status.rebuild_documents, "document", number_format=",")
        told.append(f"a rebuild was begun and holds {held}; until it is whole, the old index answers")
    return told


def problem_lines(tool_status: ToolStatus) -> list[str]:
    """Return a line for each thing that could not be indexed."""
    return [f"problem: {escape_controls(p.uri)}: {' '.join(p.reason.splitlines())}" for p in tool_status.problems]


def state_text(tool_status: ToolStatus) -> str:
    """Return whether assistants see a tool, and whether its source is gone."""
    told = "active" if tool_status.tool.active else "disabled"
    return told if tool_status.source_state == "ok" else f"{told}, source {tool_status.source_state}"


def _format_counts(tool_status: ToolStatus, number_format: str = "") -> str:
    totals = tool_status.totals
    counts = ((totals.documents, "document"), (totals.chunks, "chunk"), (totals.vectors, "vector"))
    return ", ".join(format_count(number, noun, number_format=number_format) for number, noun in counts)


def last_import_text(tool_status: ToolStatus) -> str:
    """Return when a tool was last imported, or why there is no such time."""
    return tool_status.tool.imported_at or tool_status.import_state


def format_size(number: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_format_value(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
