"""Results in, what a person at a terminal sees out; everything here has a plain form for pipes elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.options import on_one_line, visible
from bunko.interfaces.cli.status import (
    COLUMNS,
    embedders,
    facts,
    last_import,
    measures,
    place,
    problems,
    remarks,
    size,
    state,
)
from bunko.interfaces.serialize import citation, reasons

if TYPE_CHECKING:
    from bunko.library.doctor import Finding
    from bunko.library.status import Bin, Details, Status, ToolStatus
    from bunko.types import Answer, Tool

# A hit is shown to be recognised, not to be read whole; --json has all of it.
_MOST_LINES = 8
_WIDEST_BAR = 40
_EIGHTHS: tuple[str, ...] = ("", *"▏▎▍▌▋▊▉")
_STATES = {"ok": "green", "warning": "yellow", "error": "red"}


def answer(found: Answer, *, named: bool = False) -> None:
    """Show hits, best first, named after their tools where there are several."""
    console = Console(highlight=False)
    if not found.hits:
        console.print(f"No results among {found.total_chunks} chunks.", style="yellow")
        return
    for rank, hit in enumerate(found.hits, 1):
        head = Text.assemble(
            (f"{rank:>2}  ", "bold"),
            (on_one_line(citation(hit)), "bold cyan"),
            (f"   {found.mode} {hit.score:.3f}", "green"),
            (f"   {visible(hit.tool)}" if named else "", "magenta"),
            (f"   {hit.trust}, fetched {_moment(hit.fetched_at)}" if hit.trust else "", "yellow"),
        )
        console.print(head)
        if hit.chunk.heading_path:
            console.print(_text("    " + " › ".join(hit.chunk.heading_path), style="magenta"))
        if hit.why is not None:
            console.print(_text("    " + reasons(hit.why), style="yellow"))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MOST_LINES]:
            console.print(Padding.indent(_text(line), 4))
        if more := len(lines[_MOST_LINES:]):
            console.print(Text(f"    … {more} more line{'s' if more > 1 else ''}", style="dim"))
        console.print()
    console.print(Text(f"{len(found.hits)} of {found.total_chunks} chunks", style="dim"))


def status(found: Status) -> None:
    """Show what a library holds."""
    console = Console(highlight=False)
    table = Table(title=_text(f"Library {found.database}"), title_justify="left")
    numbers = ("documents", "chunks", "vectors", "size")
    for name in ("tool", "state", *numbers, "last import", "source"):
        number = name in numbers
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number)
    for one in found.tools:
        table.add_row(
            _text(one.tool.name), _state(one), f"{one.totals.documents:,}", f"{one.totals.chunks:,}",
            f"{one.totals.vectors:,}", size(one.bytes), _moment(last_import(one)), _text(one.tool.source),
        )  # fmt: skip
    console.print(table)
    console.print(
        f"{size(found.bytes)} on disk, {size(found.derived_bytes)} derived, generation {found.generation}",
        style="dim",
    )
    for name, told in embedders(found):
        console.print(_text(f"{name}: {told}", style="dim"))
    for one in found.tools:
        for line in (*remarks(one), *problems(one)):
            console.print(_text(f"{one.tool.name}: {line}", style="yellow"))


def details(found: Details) -> None:
    """Show all about a tool: facts, the lengths of its chunks, a page of its documents, what went wrong."""
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts(found):
        table.add_row(_text(name), _text(value))
    console.print(table)
    if found.lengths:
        console.print(_text(f"\nchunk lengths: {measures(found)}"))
        console.print(_histogram(found.lengths.bins, ascii_only=console.options.ascii_only))
    listed = Table(title=place(found), title_justify="left")
    for name in COLUMNS:
        listed.add_column(name, justify="right" if name in ("chunks", "characters") else "left", overflow="fold")
    for one in found.documents:
        listed.add_row(
            _text(on_one_line(one.uri)),
            _text(" ".join(one.title.split())),
            f"{one.chunks:,}",
            f"{one.characters:,}",
            one.language,
        )
    console.print()
    console.print(listed)
    for line in (*remarks(found.held), *problems(found.held)):
        console.print(_text(line, style="yellow"))


def _histogram(bins: Sequence[Bin], *, ascii_only: bool) -> Table:
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
        return "#" * max(1 if share else 0, round(share * _WIDEST_BAR))
    # The smallest part of a bar is an eighth; one chunk among many must not look like none.
    whole, rest = divmod(max(1 if share else 0, round(share * _WIDEST_BAR * 8)), 8)
    return "█" * whole + _EIGHTHS[rest]


def _moment(written: str) -> str:
    # In the reader's own time, and to the minute: a table has little room.
    try:
        return datetime.fromisoformat(written).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return written


def _state(one: ToolStatus) -> Text:
    if one.source_state != "ok":
        return Text(state(one), style="red")
    return Text(state(one), style="green" if one.tool.active else "yellow")


def tools(found: list[Tool]) -> None:
    """Show tools with what they are."""
    table = Table()
    for name in ("tool", "state", "source", "last import", "description"):
        table.add_column(name, overflow="fold")
    for one in found:
        state = Text("active", style="green") if one.active else Text("disabled", style="yellow")
        when = _moment(one.imported_at) if one.imported_at else "never"
        table.add_row(_text(one.name), state, _text(one.source), when, _text(one.description))
    Console(highlight=False).print(table)


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", numbers: Sequence[str] = ()) -> None:
    """Show rows under the names of their columns; those that hold numbers stand to the right."""
    shown = Table(title=_text(title) if title else None, title_justify="left")
    for name in names:
        shown.add_column(_text(name), justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_text(cell) for cell in row))
    Console(highlight=False).print(shown)


def findings(found: list[Finding]) -> None:
    """Show what was checked."""
    console = Console(highlight=False)
    table = Table()
    for name in ("", "part", "finding"):
        table.add_column(name)
    for one in found:
        hint = f"\n{one.hint}" if one.hint and one.state != "ok" else ""
        table.add_row(_text(one.state, style=_STATES[one.state]), _text(one.subject), _text(one.message + hint))
    console.print(table)


def settings(rows: list[tuple[str, str, str]]) -> None:
    """Show settings and their origins."""
    table = Table()
    for name in ("setting", "value", "origin"):
        table.add_column(name, overflow="fold")
    for key, value, origin in rows:
        table.add_row(_text(key), _text(value), _text(origin, style="dim" if origin == "default" else "cyan"))
    Console(highlight=False).print(table)


def _text(string: str, **how: Any) -> Text:
    # A plain string would be read as Rich's own markup, and [/x] in a file name would be an error there.
    return Text(visible(string), **how)
