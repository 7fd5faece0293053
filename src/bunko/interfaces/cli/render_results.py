"""Render a page of search results for a terminal with Rich."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bunko.interfaces.cli.options import escape_controls, replace_controls
from bunko.interfaces.serialize import explanation_text
from bunko.interfaces.text import format_count

if TYPE_CHECKING:
    from bunko.library.page import Page

# Enough of a hit to recognise it; --json prints all of it.
_MAX_LINES = 8


def show_page(page: Page, *, show_tool_names: bool = False) -> None:
    """Show a page of results, best first, with the names of their tools if there are several."""
    console = Console(highlight=False)
    if not page.results:
        console.print(f"No results among {page.total_chunks} chunks.", style="yellow")
        return
    for rank, (item, text) in enumerate(zip(page.results, page.display_texts(), strict=True), 1):
        hit = item.passage.hit
        head = Text.assemble(
            (f"{rank:>2}  ", "bold"),
            (escape_controls(item.passage.citation), "bold cyan"),
            (f"   {page.mode} {hit.score:.3f}", "green"),
            (f"   {replace_controls(hit.tool)}" if show_tool_names else "", "magenta"),
            (f"   {hit.trust}, fetched {_local_time(hit.fetched_at)}" if hit.trust else "", "yellow"),
        )
        console.print(head)
        if hit.chunk.heading_path:
            console.print(_plain_text("    " + " › ".join(hit.chunk.heading_path), style="magenta"))
        if hit.explanation is not None:
            console.print(_plain_text("    " + explanation_text(hit.explanation), style="yellow"))
        lines = [line for line in text.splitlines() if line.strip()]
        for line in lines[:_MAX_LINES]:
            console.print(Padding.indent(_plain_text(line), 4))
        if hidden := len(lines[_MAX_LINES:]):
            console.print(Text(f"    … {format_count(hidden, 'more line')}", style="dim"))
        console.print()
    console.print(Text(f"{len(page.results)} of {page.total_chunks} chunks", style="dim"))


def _local_time(timestamp: str) -> str:
    # In the user's time zone, and to the minute: a line has little room.
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return timestamp


def _plain_text(text: str, *, style: str = "") -> Text:
    # Rich parses a plain string as markup, in which [/x] in a file name would be an error.
    return Text(replace_controls(text), style=style)
