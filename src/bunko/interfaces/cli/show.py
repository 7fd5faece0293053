"""Results in, what a person at a terminal sees out; everything here has a plain form for pipes elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.options import visible
from bunko.interfaces.cli.status import size
from bunko.payload import citation, reasons

if TYPE_CHECKING:
    from bunko.doctor import Finding
    from bunko.status import Status
    from bunko.types import Answer, Tool

# A hit is shown to be recognised, not to be read whole; --json has all of it.
_MOST_LINES = 8
_STATES = {"ok": "green", "warning": "yellow", "error": "red"}


def answer(found: Answer) -> None:
    """Show hits, best first."""
    console = Console(highlight=False)
    if not found.hits:
        console.print(f"No results among {found.total_chunks} chunks.", style="yellow")
        return
    for rank, hit in enumerate(found.hits, 1):
        head = Text.assemble(
            (f"{rank:>2}  ", "bold"),
            (visible(citation(hit)), "bold cyan"),
            (f"   {found.mode} {hit.score:.3f}", "green"),
        )
        console.print(head)
        if hit.chunk.heading_path:
            console.print(_text("    " + " › ".join(hit.chunk.heading_path), style="magenta"))
        if hit.why is not None:
            console.print(_text("    " + reasons(hit.why), style="yellow"))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MOST_LINES]:
            console.print(_text("    " + line, overflow="ellipsis"), soft_wrap=False)
        if len(lines) > _MOST_LINES:
            console.print(Text(f"    … {len(lines) - _MOST_LINES} more lines", style="dim"))
        console.print()
    console.print(Text(f"{len(found.hits)} of {found.total_chunks} chunks", style="dim"))


def status(found: Status) -> None:
    """Show what a library holds."""
    console = Console(highlight=False)
    table = Table(title=_text(f"Library {found.database}"), title_justify="left")
    for name in ("tool", "state", "documents", "chunks", "vectors", "last import", "source"):
        table.add_column(name, justify="right" if name in ("documents", "chunks", "vectors") else "left")
    for one in found.tools:
        table.add_row(
            _text(one.tool.name), "active" if one.tool.active else "disabled", f"{one.totals.documents:,}",
            f"{one.totals.chunks:,}", f"{one.totals.vectors:,}", one.tool.imported_at or "never",
            _text(one.tool.source),
        )  # fmt: skip
    console.print(table)
    console.print(
        f"{size(found.bytes)} on disk, {size(found.derived_bytes)} derived, generation {found.generation}",
        style="dim",
    )
    for one in found.tools:
        for problem in one.problems:
            console.print(_text(f"{problem.uri}: {' '.join(problem.reason.splitlines())}", style="yellow"))


def tools(found: list[Tool]) -> None:
    """Show tools with what they are."""
    table = Table()
    for name in ("tool", "state", "source", "last import", "description"):
        table.add_column(name, overflow="fold")
    for one in found:
        state = Text("active", style="green") if one.active else Text("disabled", style="yellow")
        table.add_row(Text(one.name), state, Text(one.source), one.imported_at or "never", Text(one.description))
    Console(highlight=False).print(table)


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
