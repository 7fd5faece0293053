"""Render tables for a terminal with Rich; each has a plain form for pipes elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.options import escape_controls, replace_controls
from bunko.interfaces.cli.status import (
    DOCUMENT_COLUMNS,
    embedder_usage,
    format_size,
    last_import_text,
    length_summary,
    page_summary,
    problem_lines,
    state_text,
    tool_facts,
    tool_remarks,
)

if TYPE_CHECKING:
    from bunko.library.doctor import Finding
    from bunko.library.status import LengthBin, LibraryStatus, ToolDetails, ToolStatus
    from bunko.types import Tool

_MAX_BAR_CELLS = 40
_EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")
_STATE_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


def show_status(status: LibraryStatus) -> None:
    """Show the tools and the size of a library."""
    console = Console(highlight=False)
    table = Table(title=_plain_text(f"Library {status.location}"), title_justify="left")
    number_columns = ("documents", "chunks", "vectors", "size")
    for name in ("tool", "state", *number_columns, "last import", "source"):
        is_number = name in number_columns
        table.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for tool_status in status.tools:
        tool, totals = tool_status.tool, tool_status.totals
        table.add_row(
            _plain_text(tool.name),
            _styled_state(tool_status),
            f"{totals.documents:,}",
            f"{totals.chunks:,}",
            f"{totals.vectors:,}",
            format_size(tool_status.bytes),
            _local_time(last_import_text(tool_status)),
            _plain_text(tool.source),
        )
    console.print(table)
    sizes = f"{format_size(status.bytes)} on disk, {format_size(status.derived_bytes)} derived"
    console.print(f"{sizes}, generation {status.generation}", style="dim")
    for name, usage in embedder_usage(status):
        console.print(_plain_text(f"{name}: {usage}", style="dim"))
    for tool_status in status.tools:
        for line in (*tool_remarks(tool_status), *problem_lines(tool_status)):
            console.print(_plain_text(f"{tool_status.tool.name}: {line}", style="yellow"))


def show_details(details: ToolDetails) -> None:
    """Show a tool in detail: facts, chunk lengths, a page of its documents, and problems."""
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in tool_facts(details):
        table.add_row(_plain_text(name), _plain_text(value))
    console.print(table)
    if details.chunk_lengths:
        console.print(_plain_text(f"\nchunk lengths: {length_summary(details)}"))
        console.print(_length_histogram(details.chunk_lengths.bins, ascii_only=console.options.ascii_only))
    documents = Table(title=page_summary(details), title_justify="left")
    for name in DOCUMENT_COLUMNS:
        documents.add_column(name, justify="right" if name in ("chunks", "characters") else "left", overflow="fold")
    for document in details.documents:
        documents.add_row(
            _plain_text(escape_controls(document.uri)),
            _plain_text(" ".join(document.title.split())),
            f"{document.chunks:,}",
            f"{document.characters:,}",
            document.language,
        )
    console.print()
    console.print(documents)
    for line in (*tool_remarks(details.status), *problem_lines(details.status)):
        console.print(_plain_text(line, style="yellow"))


def _length_histogram(bins: Sequence[LengthBin], *, ascii_only: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(justify="right")
    highest = max(length_bin.count for length_bin in bins)
    for length_bin in bins:
        bar = _bar(length_bin.count / highest, ascii_only=ascii_only)
        table.add_row(f"{length_bin.low:,}–{length_bin.high:,}", bar, f"{length_bin.count:,}")
    return table


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * max(1 if share else 0, round(share * _MAX_BAR_CELLS))
    # The smallest part of a bar is an eighth; one chunk among many must not look like none.
    cells, eighths = divmod(max(1 if share else 0, round(share * _MAX_BAR_CELLS * 8)), 8)
    return "█" * cells + _EIGHTHS[eighths]


def _local_time(timestamp: str) -> str:
    # In the user's time zone, and to the minute: a table has little room.
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return timestamp


def _styled_state(tool_status: ToolStatus) -> Text:
    if tool_status.source_state != "ok":
        return Text(state_text(tool_status), style="red")
    return Text(state_text(tool_status), style="green" if tool_status.tool.active else "yellow")


def show_tools(tools: list[Tool]) -> None:
    """Show tools with their state, source and description."""
    table = Table()
    for name in ("tool", "state", "source", "last import", "description"):
        table.add_column(name, overflow="fold")
    for tool in tools:
        state = Text("active", style="green") if tool.active else Text("disabled", style="yellow")
        last_import = _local_time(tool.imported_at) if tool.imported_at else "never"
        table.add_row(
            _plain_text(tool.name), state, _plain_text(tool.source), last_import, _plain_text(tool.description)
        )
    Console(highlight=False).print(table)


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", number_columns: Sequence[str] = ()
) -> None:
    """Show a table; columns of numbers are aligned to the right."""
    table = Table(title=_plain_text(title) if title else None, title_justify="left")
    for name in columns:
        table.add_column(_plain_text(name), justify="right" if name in number_columns else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_plain_text(cell) for cell in row))
    Console(highlight=False).print(table)


def show_findings(findings: list[Finding]) -> None:
    """Show the results of the checks."""
    console = Console(highlight=False)
    table = Table()
    for name in ("", "check", "result"):
        table.add_column(name)
    for finding in findings:
        hint = f"\n{finding.hint}" if finding.hint and finding.state != "ok" else ""
        table.add_row(
            _plain_text(finding.state, style=_STATE_STYLES[finding.state]),
            _plain_text(finding.subject),
            _plain_text(finding.message + hint),
        )
    console.print(table)


def show_settings(rows: list[tuple[str, str, str]]) -> None:
    """Show settings and their origins."""
    table = Table()
    for name in ("setting", "value", "origin"):
        table.add_column(name, overflow="fold")
    for key, value, origin in rows:
        table.add_row(
            _plain_text(key), _plain_text(value), _plain_text(origin, style="dim" if origin == "default" else "cyan")
        )
    Console(highlight=False).print(table)


def _plain_text(text: str, *, style: str = "") -> Text:
    # Rich parses a plain string as markup, in which [/x] in a file name would be an error.
    return Text(replace_controls(text), style=style)
