"""Print how `bunko tool check` routes questions to tools."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bunko.interfaces.cli.options import replace_controls

if TYPE_CHECKING:
    from bunko.library.tool_routing import Route, RoutingReport

# With more tools a matrix is wider than a terminal.
_MAX_MATRIX_TOOLS = 8


def routing_to_dict(routing: RoutingReport) -> dict[str, Any]:
    """Return a routing report as a plain dictionary."""
    accuracy = routing.accuracy
    right, matched = routing.matched_counts
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
                    for other, count in route.lost_to.most_common()
                ],
            }
            for route in routing.routes
        ],
        "warnings": [asdict(warning) for warning in routing.warnings],
    }


def format_routing(routing: RoutingReport, flags: str = "") -> str:
    """Return a routing report as lines for a pipe."""
    lines = []
    if routing.accuracy is not None:
        for route in routing.routes:
            lines.append(f"{route.tool}: {_format_share(route)}")
            for other, count in route.lost_to.most_common():
                lines.append(f"  {count} routed to {other}: {'; '.join(route.examples[other])}")
        lines.append(_accuracy_summary(routing))
    lines += [f"warn {warning.message}. {warning.hint}" for warning in routing.warnings]
    lines += [_no_questions_message(name) + flags for name in routing.empty_tools]
    if not routing.warnings:
        lines.append(_no_warnings_message(routing))
    return replace_controls("\n".join(lines))


def show_routing(routing: RoutingReport, flags: str = "") -> None:
    """Show a routing report on a terminal: which tool gets which questions, and warnings."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if routing.accuracy is not None:
        names = [route.tool for route in routing.routes]
        table = Table(title="Where questions are routed", title_justify="left")
        table.add_column("questions about")
        for name in (
            "right",
            *(names if len(names) <= _MAX_MATRIX_TOOLS else ["routed to others"]),
            "tied",
            "no match",
        ):
            table.add_column(Text(replace_controls(name)), justify="right", overflow="fold")
        for route in routing.routes:
            if len(names) <= _MAX_MATRIX_TOOLS:
                cells = [_matrix_cell(route, name) for name in names]
            else:
                cells = [", ".join(f"{other} {count}" for other, count in route.lost_to.most_common(3))]
            share = f"{route.share:.0%}" if route.questions else "–"
            row = [route.tool, share, *cells, str(route.tied), str(route.unmatched)]
            table.add_row(*(Text(replace_controls(cell)) for cell in row))
        console.print(table)
        console.print(Text(_accuracy_summary(routing), style="dim"))
    for warning in routing.warnings:
        console.print(Text(replace_controls(warning.message), style="yellow"))
        if len(warning.tools) == 2 and (examples := _misrouted_examples(routing, *warning.tools)):
            console.print(Text(replace_controls(f"    e.g. {'; '.join(examples)}"), style="dim"))
        console.print(Text(replace_controls(f"    {warning.hint}")))
    for name in routing.empty_tools:
        console.print(Text(replace_controls(_no_questions_message(name) + flags), style="dim"))
    if not routing.warnings:
        console.print(Text(_no_warnings_message(routing), style="green"))


def _matrix_cell(route: Route, name: str) -> str:
    return str(route.right) if name == route.tool else str(route.lost_to[name] or "·")


def _format_share(route: Route) -> str:
    if not route.questions:
        return "no questions"
    text = f"{route.share:.0%} of {route.questions} questions routed to it"
    counts = ((route.tied, "tied"), (route.unmatched, "without a match"))
    details = [f"{count} {label}" for count, label in counts if count]
    return f"{text} ({', '.join(details)})" if details else text


def _accuracy_summary(routing: RoutingReport) -> str:
    questions = sum(route.questions for route in routing.routes)
    right, matched = routing.matched_counts
    text = f"{routing.accuracy or 0:.0%} of {questions} questions, made from titles and headings, go to the right tool"
    if not matched or matched == questions:
        return f"{text}."
    return f"{text}; {right / matched:.0%} of the {matched} that share a word with a description."


def _no_questions_message(name: str) -> str:
    return (
        f"{name} has no titles or headings to make questions from; import it with: bunko import -n {shlex.quote(name)}"
    )


def _no_warnings_message(routing: RoutingReport) -> str:
    if not routing.routes:
        return "No active tools to check. Add one with bunko tool add, or enable one with bunko tool enable."
    return "An assistant can tell these tools apart." if len(routing.routes) > 1 else "The description is fine."


def _misrouted_examples(routing: RoutingReport, tool: str, other: str) -> list[str]:
    for route in routing.routes:
        if route.tool == tool:
            return route.examples.get(other, [])
    return []
