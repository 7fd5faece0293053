"""`bunko status`: a library in, what it holds, or all about one of its tools, out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.options import (
    chosen,
    counted,
    is_terminal,
    on_one_line,
    print_json,
    shared,
    tool_names,
    visible,
)

if TYPE_CHECKING:
    from bunko.library.status import Details, Status, ToolStatus

SOURCES = {
    "missing": "the source is not there; what was indexed is kept",
    "empty": "the source is empty; what was indexed is kept",
    "unreadable": "the source cannot be read; what was indexed is kept",
}
COLUMNS = ("document", "title", "chunks", "characters", "language")
_PAGE_SIZE = 20


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="TOOL",
    help="All about this tool: its documents, its chunks, what changed.",
    shell_complete=tool_names,
)
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="Which page of its documents. [1]")
@click.option("--page-size", type=click.IntRange(1, 1000), metavar="N", help=f"Documents on a page. [{_PAGE_SIZE}]")
@shared
def command(name: str | None, page: int | None, page_size: int | None, **options: Any) -> None:
    """Show what is indexed.

    A tool's size is the bytes of its texts, terms, chunks and vectors and of its derived files, without what SQLite
    adds. With --name its source is looked at for changes, and nothing is imported.

    \b
    Example:
      bunko status --docs-dir ~/notes
      bunko status -n documents --page 2 --docs-dir ~/notes
    """
    asked = chosen(options)
    if name is None and (page is not None or page_size is not None):
        raise click.UsageError("--page and --page-size go with --name.")
    with asked.open(create=False) as library:
        if name is None:
            found: Status | Details = library.status()
        else:
            found = library.tool_status(name, page=page or 1, page_size=page_size or _PAGE_SIZE)
    _print(found, as_json=asked.as_json)


def _print(found: Status | Details, *, as_json: bool) -> None:
    from bunko.library.status import Status

    if as_json:
        print_json(payload(found) if isinstance(found, Status) else detailed(found))
    elif is_terminal():
        from bunko.interfaces.cli import render

        if isinstance(found, Status):
            render.status(found)
        else:
            render.details(found)
    else:
        lines = plain(found) if isinstance(found, Status) else plain_details(found)
        click.echo(visible("\n".join(lines)))


def payload(status: Status) -> dict[str, Any]:
    """Return a status as a plain dictionary."""
    return {
        "library": str(status.database),
        "generation": status.generation,
        "bytes": status.bytes,
        "derived_bytes": status.derived_bytes,
        "tools": [_held(one) for one in status.tools],
        "embedders": {name: asdict(one) for name, one in status.spent.items()},
    }


def detailed(found: Details) -> dict[str, Any]:
    """Return all about a tool as a plain dictionary."""
    held, changes, lengths = found.held, found.changes, found.lengths
    return _held(held) | {
        "description": held.tool.description,
        "created_at": held.tool.created_at,
        "options": held.tool.options,
        "embedding": {"model": held.tool.built.get("embedder", ""), "dimension": held.room.dimension},
        "room": {
            "text": held.room.text,
            "index": held.room.index,
            "vectors": held.room.vectors,
            "derived": held.derived_bytes,
        },
        "freshness": {
            "last_look": found.checked_at,
            "looked_at": changes and changes.at,
            "new": changes and changes.new,
            "changed": changes and changes.changed,
            "gone": changes and changes.gone,
            "moved": changes and changes.moved,
        },
        "chunk_lengths": lengths
        and {
            "min": lengths.least,
            "median": lengths.median,
            "p90": lengths.p90,
            "max": lengths.most,
            "mean": lengths.mean,
            "bins": [{"from": one.low, "to": one.high, "chunks": one.count} for one in lengths.bins],
        },
        "page": found.page,
        "page_size": found.page_size,
        "pages": found.pages,
        "document_list": [
            {
                "file_path": one.uri,
                "title": one.title,
                "chunks": one.chunks,
                "characters": one.characters,
                "language": one.language,
            }
            for one in found.documents
        ],
    }


def _held(one: ToolStatus) -> dict[str, Any]:
    return {
        "name": one.tool.name,
        "kind": one.tool.kind,
        "active": one.tool.active,
        "source": one.tool.source,
        "source_state": one.source_state,
        "documents": one.totals.documents,
        "chunks": one.totals.chunks,
        "vectors": one.totals.vectors,
        "characters": one.totals.characters,
        "bytes": one.bytes,
        "import_state": one.import_state,
        "last_import": one.tool.imported_at,
        "rebuild_documents": one.rebuilt,
        "built": one.tool.built,
        "problems": [{"file_path": p.uri, "reason": p.reason} for p in one.problems],
    }


def plain(status: Status) -> list[str]:
    """Return a status as lines for a pipe."""
    lines = [
        f"library: {status.database} ({size(status.bytes)}, derived {size(status.derived_bytes)},"
        f" generation {status.generation})"
    ]
    for one in status.tools:
        lines.append(
            f"{one.tool.name}: {state(one)}, {_counts(one)}, {size(one.bytes)}, last import {last_import(one)},"
            f" from {on_one_line(one.tool.source) or 'the web'}"
        )
        lines += [f"  {line}" for line in (*remarks(one), *problems(one))]
    if not status.tools:
        lines.append("There are no tools yet.")
    return lines + [f"embedder {name}: {told}" for name, told in embedders(status)]


def embedders(status: Status) -> list[tuple[str, str]]:
    """Return what imports had of each embedder, and what they were spared because a text was known."""
    return [
        (
            name,
            f"{counted(one.texts, 'text', form=',')} embedded in {counted(one.calls, 'call', form=',')};"
            f" {counted(one.saved_texts, 'text', form=',')} known before,"
            f" {counted(one.saved_calls, 'call', form=',')} saved",
        )
        for name, one in status.spent.items()
    ]


def plain_details(found: Details) -> list[str]:
    """Return all about a tool as lines for a pipe; the documents are in columns with tabs between."""
    lines = [f"{name}: {value}" for name, value in facts(found)]
    if found.lengths:
        lines.append(f"chunk lengths: {measures(found)}")
        lines += [f"  {one.low}-{one.high}: {one.count}" for one in found.lengths.bins]
    lines += [*remarks(found.held), *problems(found.held)]
    lines.append(place(found))
    lines.append("\t".join(COLUMNS))
    for one in found.documents:
        title = on_one_line(" ".join(one.title.split()))
        lines.append(f"{on_one_line(one.uri)}\t{title}\t{one.chunks}\t{one.characters}\t{one.language}")
    return lines


def facts(found: Details) -> list[tuple[str, str]]:
    """Return what there is to say about a tool, in names and values."""
    held, tool, totals, room = found.held, found.held.tool, found.held.totals, found.held.room
    told = [
        ("tool", f"{tool.name} ({tool.kind}, {state(held)})"),
        ("description", tool.description or "none"),
        ("source", on_one_line(tool.source) or "the web"),
        *((name, _listed(value)) for name, value in tool.options.items()),
        ("created", tool.created_at or "unknown"),
        ("last import", last_import(held)),
        ("holds", f"{_counts(held, ',')}, {counted(totals.characters, 'character', form=',')}"),
        ("size", f"{size(held.bytes)} (text {size(room.text)}, index {size(room.index)}, vectors {size(room.vectors)},"
         f" derived {size(held.derived_bytes)})"),
    ]  # fmt: skip
    if tool.built:
        vectors = f", {room.dimension} dimensions" if room.dimension else ""
        rest = ", ".join(f"{name} {_listed(value)}" for name, value in tool.built.items() if name != "embedder")
        told += [("embedding", f"{tool.built.get('embedder', 'none')}{vectors}"), ("built with", rest)]
    told.append(("last look", found.checked_at or "never"))
    if found.changes:
        changes = found.changes
        told.append(
            ("now", f"{changes.new} new, {changes.changed} changed, {changes.gone} gone, {changes.moved} moved")
        )
    return told


def measures(found: Details) -> str:
    """Return how long chunks are, in one line."""
    spread = found.lengths
    if spread is None:
        return "no chunks"
    return (
        f"min {spread.least:,}, median {spread.median:,}, p90 {spread.p90:,}, max {spread.most:,},"
        f" mean {spread.mean:,.1f} characters"
    )


def place(found: Details) -> str:
    """Return which documents of how many are listed, and how to see others."""
    documents = counted(found.held.totals.documents, "document", form=",")
    if found.page > found.pages:
        return f"there is no page {found.page}: {documents} fill {counted(found.pages, 'page')}; --page 1 is the first"
    told = f"page {found.page} of {found.pages}, {documents}"
    return f"{told}; --page {found.page + 1} shows the next" if found.page < found.pages else told


def remarks(one: ToolStatus) -> list[str]:
    """Return what a user should know about a tool beside its numbers."""
    told = [SOURCES[one.source_state]] if one.source_state in SOURCES else []
    if one.import_state == "unfinished":
        told.append("its first import was not finished; importing it again goes on from there")
    if one.rebuilt is not None:
        held = counted(one.rebuilt, "document", form=",")
        told.append(f"a rebuild was begun and holds {held}; until it is whole, the old index answers")
    return told


def problems(one: ToolStatus) -> list[str]:
    """Return a line for each thing that could not be indexed."""
    return [f"problem: {on_one_line(p.uri)}: {' '.join(p.reason.splitlines())}" for p in one.problems]


def state(one: ToolStatus) -> str:
    """Return whether assistants see a tool, and whether its source is gone."""
    told = "active" if one.tool.active else "disabled"
    return told if one.source_state == "ok" else f"{told}, source {one.source_state}"


def _counts(one: ToolStatus, form: str = "") -> str:
    totals = one.totals
    counts = ((totals.documents, "document"), (totals.chunks, "chunk"), (totals.vectors, "vector"))
    return ", ".join(counted(number, noun, form=form) for number, noun in counts)


def last_import(one: ToolStatus) -> str:
    """Return when a tool was last imported, or why there is no such time."""
    return one.tool.imported_at or one.import_state


def size(number: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_listed(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
