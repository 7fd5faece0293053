"""A measured routing in, JSON, lines for a pipe or tables for a person out."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bunko.interfaces.cli.options import visible

if TYPE_CHECKING:
    from bunko.library.tool_routing import Route, Routing

# With more tools a matrix is wider than a terminal.
_WIDEST = 8


def payload(routing: Routing) -> dict[str, Any]:
    """Return a routing as a plain dictionary."""
    accuracy = routing.accuracy
    right, matched = routing.matched
    return {
        "accuracy": None if accuracy is None else round(accuracy, 4),
        "matched": {"questions": matched, "right": round(right, 2)},
        "tools": [
            {
                "name": route.tool,
                "questions": route.questions,
                "share": round(route.share, 4) if route.questions and accuracy is not None else None,
                "right": route.right,
                "tied": route.tied,
                "unmatched": route.unmatched,
                "taken": [
                    {"tool": other, "questions": count, "examples": route.examples[other]}
                    for other, count in route.taken.most_common()
                ],
            }
            for route in routing.routes
        ],
        "warnings": [asdict(warned) for warned in routing.warnings],
    }


def plain(routing: Routing, flags: str = "") -> str:
    """Return a routing as lines for a pipe."""
    lines = []
    if routing.accuracy is not None:
        for route in routing.routes:
            lines.append(f"{route.tool}: {_shares(route)}")
            for other, count in route.taken.most_common():
                lines.append(f"  {other} takes {count}: {'; '.join(route.examples[other])}")
        lines.append(_total(routing))
    lines += [f"warn {warned.message}. {warned.hint}" for warned in routing.warnings]
    lines += [_silence(name) + flags for name in routing.silent]
    if not routing.warnings:
        lines.append(_fine(routing))
    return visible("\n".join(lines))


def show(routing: Routing, flags: str = "") -> None:
    """Show a routing at a terminal: who gets whose questions, and what is wrong."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if routing.accuracy is not None:
        names = [route.tool for route in routing.routes]
        table = Table(title="Which tool gets whose questions", title_justify="left")
        table.add_column("questions of")
        for name in ("right", *(names if len(names) <= _WIDEST else ["taken by"]), "tied", "no match"):
            table.add_column(Text(visible(name)), justify="right", overflow="fold")
        for route in routing.routes:
            if len(names) <= _WIDEST:
                cells = [_cell(route, name) for name in names]
            else:
                cells = [", ".join(f"{other} {count}" for other, count in route.taken.most_common(3))]
            share = f"{route.share:.0%}" if route.questions else "–"
            row = [route.tool, share, *cells, str(route.tied), str(route.unmatched)]
            table.add_row(*(Text(visible(cell)) for cell in row))
        console.print(table)
        console.print(Text(_total(routing), style="dim"))
    for warned in routing.warnings:
        console.print(Text(visible(warned.message), style="yellow"))
        if len(warned.tools) == 2 and (examples := _examples(routing, *warned.tools)):
            console.print(Text(visible(f"    e.g. {'; '.join(examples)}"), style="dim"))
        console.print(Text(visible(f"    {warned.hint}")))
    for name in routing.silent:
        console.print(Text(visible(_silence(name) + flags), style="dim"))
    if not routing.warnings:
        console.print(Text(_fine(routing), style="green"))


def _cell(route: Route, name: str) -> str:
    return str(route.right) if name == route.tool else str(route.taken[name] or "·")


def _shares(route: Route) -> str:
    if not route.questions:
        return "no questions"
    text = f"{route.share:.0%} of {route.questions} questions routed to it"
    more = [f"{count} {what}" for count, what in ((route.tied, "tied"), (route.unmatched, "without a match")) if count]
    return f"{text} ({', '.join(more)})" if more else text


def _total(routing: Routing) -> str:
    asked = sum(route.questions for route in routing.routes)
    right, matched = routing.matched
    text = f"{routing.accuracy or 0:.0%} of {asked} questions, made from titles and headings, go to the right tool"
    if not matched or matched == asked:
        return f"{text}."
    return f"{text}; {right / matched:.0%} of the {matched} that share a word with a description."


def _silence(name: str) -> str:
    return f"{name} has no titles or headings to ask about; import it with: bunko import -n {shlex.quote(name)}"


def _fine(routing: Routing) -> str:
    if not routing.routes:
        return "There are no active tools to check. Add one with bunko tool add, or show one with bunko tool enable."
    return "An assistant can tell these tools apart." if len(routing.routes) > 1 else "The description is fine."


def _examples(routing: Routing, tool: str, other: str) -> list[str]:
    for route in routing.routes:
        if route.tool == tool:
            return route.examples.get(other, [])
    return []
