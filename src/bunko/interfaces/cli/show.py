"""Results in, what a person at a terminal sees out; everything here has a plain form for pipes elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.status import size
from bunko.payload import citation

if TYPE_CHECKING:
    from bunko.doctor import Finding
    from bunko.library import Status
    from bunko.types import Answer, Explanation

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
            (citation(hit), "bold cyan"),
            (f"   {found.mode} {hit.score:.3f}", "green"),
        )
        console.print(head)
        if hit.chunk.heading_path:
            console.print(Text("    " + " › ".join(hit.chunk.heading_path), style="magenta"))
        if hit.why is not None:
            console.print(Text("    " + _why(hit.why), style="yellow"))
        lines = [line for line in hit.chunk.text.splitlines() if line.strip()]
        for line in lines[:_MOST_LINES]:
            console.print(Text("    " + line, overflow="ellipsis"), soft_wrap=False)
        if len(lines) > _MOST_LINES:
            console.print(Text(f"    … {len(lines) - _MOST_LINES} more lines", style="dim"))
        console.print()
    console.print(Text(f"{len(found.hits)} of {found.total_chunks} chunks", style="dim"))


def _why(why: Explanation) -> str:
    parts = [f"lane {why.lane}"]
    if why.terms:
        parts.append("terms " + " ".join(why.terms))
    if why.expansions:
        parts.append("also " + " ".join(f"{term} ({kind})" for kind, term in why.expansions))
    if why.bm25:
        parts.append(f"bm25 {why.bm25.score:.3f} (rank {why.bm25.rank})")
    if why.vector:
        parts.append(f"vector {why.vector.score:.3f} (rank {why.vector.rank})")
    return "; ".join(parts)


def status(found: Status) -> None:
    """Show what a library holds."""
    console = Console(highlight=False)
    table = Table(title=f"Library {found.database}", title_justify="left")
    for name in ("tool", "state", "documents", "chunks", "vectors", "last import", "source"):
        table.add_column(name, justify="right" if name in ("documents", "chunks", "vectors") else "left")
    for one in found.tools:
        table.add_row(
            one.tool.name, "active" if one.tool.active else "disabled", f"{one.totals.documents:,}",
            f"{one.totals.chunks:,}", f"{one.totals.vectors:,}", one.tool.imported_at or "never", one.tool.source,
        )  # fmt: skip
    console.print(table)
    console.print(
        f"{size(found.bytes)} on disk, {size(found.derived_bytes)} derived, generation {found.generation}",
        style="dim",
    )
    for one in found.tools:
        for problem in one.problems:
            console.print(Text(f"{problem.uri}: {' '.join(problem.reason.splitlines())}", style="yellow"))


def findings(found: list[Finding]) -> None:
    """Show what was checked."""
    console = Console(highlight=False)
    table = Table()
    for name in ("", "part", "finding"):
        table.add_column(name)
    for one in found:
        hint = f"\n{one.hint}" if one.hint and one.state != "ok" else ""
        table.add_row(Text(one.state, style=_STATES[one.state]), one.subject, one.message + hint)
    console.print(table)


def settings(rows: list[tuple[str, str, str]]) -> None:
    """Show settings and their origins."""
    table = Table()
    for name in ("setting", "value", "origin"):
        table.add_column(name, overflow="fold")
    for key, value, origin in rows:
        table.add_row(Text(key), Text(value), Text(origin, style="dim" if origin == "default" else "cyan"))
    Console(highlight=False).print(table)
