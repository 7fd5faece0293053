"""Print how `bunko tool check` routes questions to tools."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import replace_controls

if TYPE_CHECKING:
    from bunko.library.tool_routing import Route, RoutingReport


def format_routing(routing: RoutingReport, flags: str = "") -> str:
    """Return a routing report as lines for a pipe."""
    lines = []
    if routing.accuracy is not None:
        for route in routing.routes:
            lines.append(f"{route.tool}: {translate(_format_share(route))}")
            for other, count in route.lost_to.most_common():
                lines.append(translate(f"  {count} routed to {other}: {'; '.join(route.examples[other])}"))
        lines.append(translate(_accuracy_summary(routing)))
    lines += [f"warn {translate(f'{warning.message}. {warning.hint}')}" for warning in routing.warnings]
    lines += [translate(_no_questions_message(name) + flags) for name in routing.empty_tools]
    if not routing.warnings:
        lines.append(translate(_no_warnings_message(routing)))
    return replace_controls("\n".join(lines))


def show_routing(routing: RoutingReport, flags: str = "") -> None:
    """Show a routing report on a terminal: which tool gets which questions, and warnings."""
    from bunko.interfaces.cli.tables import Column, new_console, number, print_message, show_table

    console = new_console()
    if routing.accuracy is not None:
        columns = (
            Column("questions about", min_width=24),
            number("right"),
            Column("routed to others", priority=2, min_width=20),
            number("tied", 3),
            number("no match", 3),
        )
        rows = (
            (
                route.tool,
                f"{route.share:.0%}" if route.questions else "–",
                ", ".join(f"{other} ({count})" for other, count in route.lost_to.most_common()),
                str(route.tied),
                str(route.unmatched),
            )
            for route in routing.routes
        )
        show_table(columns, rows, title="Where questions are routed", console=console)
        console.print()
        print_message(_accuracy_summary(routing), "dim", console=console)
    for warning in routing.warnings:
        print_message(warning.message, "yellow", console=console)
        if len(warning.tools) == 2 and (examples := _misrouted_examples(routing, *warning.tools)):
            print_message(f"  {translate('e.g.')} {'; '.join(examples)}", "dim", console=console)
        print_message(f"  {warning.hint}", console=console)
    for name in routing.empty_tools:
        print_message(_no_questions_message(name) + flags, "dim", console=console)
    if not routing.warnings:
        print_message(_no_warnings_message(routing), "green", console=console)


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
    if not matched:
        return f"{text} by chance: none of them shares a word with a description."
    if matched == questions:
        return f"{text}."
    return f"{text}; {right / matched:.0%} of the {matched} that share a word with a description."


def _no_questions_message(name: str) -> str:
    return (
        f"{name} has no titles or headings to make questions from; import it with: bunko import -n {shlex.quote(name)}"
    )


def _no_warnings_message(routing: RoutingReport) -> str:
    if not routing.routes:
        return "No active tools to check. Add one with bunko add, or enable one with bunko tool enable."
    return "An assistant can tell these tools apart." if len(routing.routes) > 1 else "The description is fine."


def _misrouted_examples(routing: RoutingReport, tool: str, other: str) -> list[str]:
    for route in routing.routes:
        if route.tool == tool:
            return route.examples.get(other, [])
    return []
