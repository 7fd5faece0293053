"""Results in, what a person at a terminal sees out; everything here has a plain form for pipes elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
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
from bunko.interfaces.serialize import explanation_text, hit_citation

if TYPE_CHECKING:
    from bunko.library.doctor import Finding
    from bunko.library.status import LengthBin, LibraryStatus, ToolDetails, ToolStatus
    from bunko.types import Answer, Tool

# A hit is shown to be recognised, not to be read whole; --json has all of it.
_MAX_LINES = 8
_MAX_BAR_CELLS = 40
_EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")
_STATE_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


def show_answer(answer: Answer, *, show_tool_names: bool = False) -> None:
    """Show hits, best first, named after their tools where there are several."""
    console = Console(highlight=False)
    if not answer.hits:
        console.print(f"No results among {answer.total_chunks} chunks.", style="yellow")
        return
    for rank, hit in enumerate(answer.hits, 1):
        head = Text.assemble(
            (f"{rank:>2}  ", "bold"),
            (escape_controls(hit_citation(hit)), "bold cyan"),
            (f"   {answer.mode} {hit.score:.3f}", "green"),
            (f"   {replace_controls(hit.tool)}" if show_tool_names else "", "magenta"),
            (f"   {hit.trust}, fetched {_local_time(hit.fetched_at)}" if hit.trust else "", "yellow"),
        )
        console.print(head)
        if hit.chunk.heading_path:
            console.print(_plain_text("    " + " › ".join(hit.chunk.heading_path), style="magenta"))
        if hit.explanation is not None:
            console.print(_plain_text("    " + explanation_text(hit.explanation), style="yellow"))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MAX_LINES]:
            console.print(Padding.indent(_plain_text(line), 4))
        if more := len(lines[_MAX_LINES:]):
            console.print(Text(f"    … {more} more line{'s' if more > 1 else ''}", style="dim"))
        console.print()
    console.print(Text(f"{len(answer.hits)} of {answer.total_chunks} chunks", style="dim"))


def show_status(status: LibraryStatus) -> None:
    """Show what a library holds."""
    console = Console(highlight=False)
    table = Table(title=_plain_text(f"Library {status.database}"), title_justify="left")
    numbers = ("documents", "chunks", "vectors", "size")
    for name in ("tool", "state", *numbers, "last import", "source"):
        number = name in numbers
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for one in status.tools:
        table.add_row(
            _plain_text(one.tool.name), _styled_state(one), f"{one.totals.documents:,}", f"{one.totals.chunks:,}",
            f"{one.totals.vectors:,}", format_size(one.bytes), _local_time(last_import_text(one)), _plain_text(one.tool.source),  # noqa: E501
        )  # fmt: skip
    console.print(table)
    console.print(
        f"{format_size(status.bytes)} on disk, {format_size(status.derived_bytes)} derived, generation {status.generation}",  # noqa: E501
        style="dim",
    )
    for name, told in embedder_usage(status):
        console.print(_plain_text(f"{name}: {told}", style="dim"))
    for one in status.tools:
        for line in (*tool_remarks(one), *problem_lines(one)):
            console.print(_plain_text(f"{one.tool.name}: {line}", style="yellow"))


def show_details(details: ToolDetails) -> None:
    """Show all about a tool: facts, the lengths of its chunks, a page of its documents, what went wrong."""
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
    listed = Table(title=page_summary(details), title_justify="left")
    for name in DOCUMENT_COLUMNS:
        listed.add_column(name, justify="right" if name in ("chunks", "characters") else "left", overflow="fold")
    for one in details.documents:
        listed.add_row(
            _plain_text(escape_controls(one.uri)),
            _plain_text(" ".join(one.title.split())),
            f"{one.chunks:,}",
            f"{one.characters:,}",
            one.language,
        )
    console.print()
    console.print(listed)
    for line in (*tool_remarks(details.status), *problem_lines(details.status)):
        console.print(_plain_text(line, style="yellow"))


def _length_histogram(bins: Sequence[LengthBin], *, ascii_only: bool) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(justify="right")
    most = max(one.count for one in bins)
    for one in bins:
        drawn = _bar(one.count / most, ascii_only=ascii_only)
        table.add_row(f"{one.low:,}–{one.high:,}", drawn, f"{one.count:,}")
    return table


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * max(1 if share else 0, round(share * _MAX_BAR_CELLS))
    # The smallest part of a bar is an eighth; one chunk among many must not look like none.
    whole, rest = divmod(max(1 if share else 0, round(share * _MAX_BAR_CELLS * 8)), 8)
    return "█" * whole + _EIGHTHS[rest]


def _local_time(timestamp: str) -> str:
    # In the reader's own time, and to the minute: a table has little room.
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return timestamp


def _styled_state(tool_status: ToolStatus) -> Text:
    if tool_status.source_state != "ok":
        return Text(state_text(tool_status), style="red")
    return Text(state_text(tool_status), style="green" if tool_status.tool.active else "yellow")


def show_tools(tools: list[Tool]) -> None:
    """Show tools with what they are."""
    table = Table()
    for name in ("tool", "state", "source", "last import", "description"):
        table.add_column(name, overflow="fold")
    for one in tools:
        state = Text("active", style="green") if one.active else Text("disabled", style="yellow")
        when = _local_time(one.imported_at) if one.imported_at else "never"
        table.add_row(_plain_text(one.name), state, _plain_text(one.source), when, _plain_text(one.description))
    Console(highlight=False).print(table)


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", number_columns: Sequence[str] = ()
) -> None:
    """Show rows under the names of their columns; those that hold numbers stand to the right."""
    shown = Table(title=_plain_text(title) if title else None, title_justify="left")
    for name in columns:
        shown.add_column(_plain_text(name), justify="right" if name in number_columns else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_plain_text(cell) for cell in row))
    Console(highlight=False).print(shown)


def show_findings(findings: list[Finding]) -> None:
    """Show what was checked."""
    console = Console(highlight=False)
    table = Table()
    for name in ("", "part", "finding"):
        table.add_column(name)
    for one in findings:
        hint = f"\n{one.hint}" if one.hint and one.state != "ok" else ""
        table.add_row(
            _plain_text(one.state, style=_STATE_STYLES[one.state]),
            _plain_text(one.subject),
            _plain_text(one.message + hint),
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


def _plain_text(string: str, **how: Any) -> Text:
    # A plain string would be read as Rich's own markup, and [/x] in a file name would be an error there.
    return Text(replace_controls(string), **how)
