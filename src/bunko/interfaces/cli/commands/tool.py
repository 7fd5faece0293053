"""The `bunko tool` commands: add, change, list and check tools."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.command_group import CommandGroup
from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.options import (
    PATH,
    SharedOptions,
    chunking_options,
    complete_tool_names,
    name_argument,
    shared_options,
)
from bunko.interfaces.cli.terminal.columns import Column, number
from bunko.interfaces.cli.terminal.printing import (
    confirm,
    escape_controls,
    is_terminal,
    print_json,
    print_labelled,
    print_stderr,
    replace_controls,
    say,
)
from bunko.interfaces.serialize_state import routing_to_dict, tool_to_dict
from bunko.interfaces.text import format_count
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.library.open import remove_new_library_on_error
from bunko.library.tools.assistant_names import assistant_name
from bunko.messages import translate
from bunko.runtime.observer import Observer
from bunko.sources import all_kinds, builtin_kind_names, find_kind
from bunko.types import Tool
from bunko.types.tool_options import Extract, ToolOptions

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.tools.routing import RoutingReport

_EXTRACT_CHOICE = click.Choice(["chunk", "section", "full"])
_name_option = click.option(
    "--name", "-n", required=True, metavar="NAME", help="Name of the tool.", shell_complete=complete_tool_names
)


class _KindChoice(click.Choice):  # type: ignore[type-arg]  # click 8.1 has no Choice[str]
    """The kinds of sources; those of installed packages are looked up only if no built-in kind has the name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            return click.Choice(list(all_kinds())).convert(value, param, ctx)
        return super().convert(value, param, ctx)


@click.group(name="tool", cls=CommandGroup)
def command() -> None:
    """Manage tools: the named folders that assistants search.

    \b
    Example:
      bunko tool add -n api-docs -d "API documentation for user authentication" -s ./docs/api
      bunko tool ls --all
      bunko tool check
    """


@command.command()
@_name_option
@click.option("--description", "-d", required=True, metavar="TEXT", help="What the documents are about.")
@click.option("--source", "-s", type=PATH, metavar="PATH", help="Folder, or file of entries; none for web pages.")
@click.option(
    "--kind",
    type=_KindChoice(builtin_kind_names()),
    default="folder",
    help="A folder of documents; memos or JSON lines, in a file or folder; or web pages. [folder]",
)
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Include only these files, of any type: '*.py'. May be repeated."
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="Exclude these files; may be repeated.")
@click.option("--extract", type=_EXTRACT_CHOICE, help="Default text returned for each hit. [chunk]")
@chunking_options
@shared_options
def add(
    name: str,
    description: str,
    source: Path | None,
    kind: str,
    include: Sequence[str],
    exclude: Sequence[str],
    extract: Extract | None,
    chunker: str | None,
    chunk_size: int | None,
    chunk_overlap: int | None,
    shared: SharedOptions,
) -> None:
    """Add a folder or file as a tool; import its documents with `bunko import`.

    `bunko add PATH` does both, and finds the kind, a name and a description by itself. A tool of web pages has no
    source: add its pages with `bunko web`.

    \b
    Example:
      bunko tool add -n api-docs -d "API documentation for user authentication" -s ./docs/api
      bunko tool add -n diary -d "What we did on which day" -s ~/ChangeLog --kind memos
    """
    source_kind = find_kind(kind)
    assert source_kind is not None
    if source is None and source_kind.root != "none":
        raise click.UsageError("Missing option '--source' / '-s'.")
    with shared.open() as library, remove_new_library_on_error(library):
        check_tool_name(library, name)
        tool_options = library.options_with_chunker(
            ToolOptions(tuple(include), tuple(exclude), extract), chunker, chunk_size, chunk_overlap
        )
        with record_command(library, "tool add", tools=[name], arguments={"source": source, "kind": kind}):
            tool = library.tools.add(name, description, source, kind=kind, options=tool_options)
        files = library.maintenance.count_importable(tool)
        alias = describe_alias(tool)
        arguments = f"-n {shlex.quote(name)}{shared.library_flags(library)}"
        noun, nouns = source_kind.noun
        if source_kind.root == "none":
            message = f"Added {name}.{alias} Add {nouns} with: {source_kind.import_command} {arguments}"
        else:
            count = format_count(files, noun, nouns)
            object_pronoun = "it" if files == 1 else "them"
            message = f"Added {name}: {count} to import.{alias} Import {object_pronoun} with: bunko import {arguments}"
        print_result(shared, tool, message, files=files, notices=library.maintenance.overlap_notices(tool))


@command.command()
@name_argument
@click.option("--description", "-d", metavar="TEXT", help="New description.")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="New folder.")
@click.option("--include", multiple=True, metavar="GLOB", help="Include only these files from now on; '' for all.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Exclude these files from now on; '' for none.")
@click.option("--extract", type=_EXTRACT_CHOICE, help="New default text returned for each hit.")
@shared_options
def update(
    name: str,
    description: str | None,
    source: Path | None,
    include: Sequence[str],
    exclude: Sequence[str],
    extract: Extract | None,
    shared: SharedOptions,
) -> None:
    """Change a tool's description, folder or file filters.

    To change how documents are split into chunks, use `bunko import`.

    \b
    Example:
      bunko tool update api-docs -d "How users sign in, and what the API answers"
    """
    if description is None and source is None and not include and not exclude and extract is None:
        raise click.UsageError("Specify --description, --source, --include, --exclude or --extract")
    with _open_library(shared) as library:
        with record_command(library, "tool update", tools=[name], arguments={"source": source}):
            tool = library.tools.update(
                name,
                description=description,
                source=source,
                include=[glob for glob in include if glob] if include else None,
                exclude=[glob for glob in exclude if glob] if exclude else None,
                extract=extract,
            )
            if include:
                library.maintenance.remember_include(tool)
        message = f"Updated {name}."
        if source is not None or include or exclude:
            flags = shared.library_flags(library)
            message += f" Update its documents with: bunko import -n {shlex.quote(name)} --mode update{flags}"
        notices = library.maintenance.overlap_notices(tool) if source is not None else []
        print_result(shared, tool, message, notices=notices)


@command.command()
@click.argument("name", metavar="OLD", shell_complete=complete_tool_names)
@click.argument("new_name", metavar="NEW")
@shared_options
def rename(name: str, new_name: str, shared: SharedOptions) -> None:
    """Give a tool another name; nothing is imported again.

    Running servers announce the new name to their assistants. Commands and scripts that use the old name have to be
    changed.

    \b
    Example:
      bunko tool rename notes 日記
    """
    from bunko.evaluation.judge import rename_judgements  # loads the search engine

    with _open_library(shared) as library:
        tool = library.tools.get(name)
        check_tool_name(library, new_name)
        with record_command(library, "tool rename", tools=[tool.name], arguments={"new_name": new_name}):
            renamed = library.rename_tool(tool.name, new_name, observer=Observer(on_wait=print_stderr))
        rename_judgements(library, tool, renamed)
        print_result(shared, renamed, f"Renamed {tool.name} to {renamed.name}.{describe_alias(renamed)}")


@command.command()
@name_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@shared_options
def delete(name: str, yes: bool, shared: SharedOptions) -> None:
    """Delete a tool and its index; the files in its folder are kept.

    \b
    Example:
      bunko tool delete api-docs
    """
    with _open_library(shared) as library:
        tool = library.tools.get(name)
        totals = library.stats.totals(tool.id)
        counts = f"{format_count(totals.documents, 'document')} and {format_count(totals.chunks, 'chunk')}"
        if not yes:
            consequence = "its web pages are deleted too" if tool.kind == "web" else "only a pack can restore them"
            if tool.source:
                consequence = f"the files in {tool.source} are kept"
            try:
                confirmed = confirm(f"This deletes {counts} from the index; {consequence}. Delete {name}?")
            except click.Abort:  # Ctrl-C, or stdin is closed
                click.echo(err=True)
                raise click.ClickException("Nothing was deleted; use -y to delete without confirmation") from None
            if not confirmed:
                raise click.ClickException("Nothing was deleted")
        with record_command(library, "tool delete", tools=[tool.name]):
            library.delete_tool(name, observer=Observer(on_wait=print_stderr))
        print_result(shared, tool, f"Deleted {name}: {counts}.")


@command.command()
@name_argument
@shared_options
def enable(name: str, shared: SharedOptions) -> None:
    """Show a tool to assistants.

    \b
    Example:
      bunko tool enable api-docs
    """
    _set_active(shared, name, active=True)


@command.command()
@name_argument
@shared_options
def disable(name: str, shared: SharedOptions) -> None:
    """Hide a tool from assistants; its index is kept.

    \b
    Example:
      bunko tool disable api-docs
    """
    _set_active(shared, name, active=False)


@command.command(name="ls")
@click.option("--all", "everything", is_flag=True, help="List disabled tools too, with details.")
@click.option("--format", "form", type=click.Choice(["json", "table"]), help="Output format.")
@shared_options
def ls(everything: bool, form: str | None, shared: SharedOptions) -> None:
    """List tools.

    \b
    Example:
      bunko tool ls --all
    """
    with _open_library(shared) as library:
        tools = [tool for tool in library.tools() if everything or tool.active]
        if not tools:
            has_disabled = bool(library.tools())
            print_stderr("No active tools; --all lists the others." if has_disabled else "No tools yet.")
        form = "json" if shared.as_json else form
        if form is None and not everything:
            for tool in tools:
                click.echo(tool.name)
            return
        if (form or library.settings.display.default_format) == "json":
            print_json([tool_to_dict(tool) for tool in tools])
        elif tools and is_terminal():
            terminal.render.show_tools(tools)
        else:
            for tool in tools:
                state = "active" if tool.active else "disabled"
                click.echo("\t".join(map(escape_controls, (tool.name, state, tool.source, tool.description))))


@command.command()
@name_argument
@click.option("--write", is_flag=True, help="Save the proposal as the tool's description.")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Language of the proposal. [that of most documents]")
@shared_options
def describe(name: str, write: bool, language: Literal["ja", "en"] | None, shared: SharedOptions) -> None:
    """Propose a description based on the tool's documents.

    \b
    Example:
      bunko tool describe api-docs
      bunko tool describe api-docs --write
    """
    with _open_library(shared) as library:
        flags = shared.library_flags(library)
        proposal = library.maintenance.propose_description(name, language=language)
        if write:
            library.tools.update(name, description=proposal.description)
    if shared.as_json:
        print_json(
            {
                "name": name,
                "language": proposal.language,
                "present": proposal.tool.description,
                "proposal": proposal.description,
                "phrases": [asdict(phrase) for phrase in proposal.phrases],
                "written": write,
            }
        )
        return
    phrases = ", ".join(phrase.text for phrase in proposal.phrases)
    facts = {
        "current": proposal.tool.description or translate("none"),
        "proposal": proposal.description,
        "phrases": phrases,
    }
    print_labelled(facts)
    update = f"bunko tool update -n {shlex.quote(name)} -d TEXT{flags}"
    print_stderr(f"Updated {name}." if write else f"Save it with --write, or write your own with: {update}")


@command.command()
@shared_options
def check(shared: SharedOptions) -> None:
    """Check that assistants can tell the active tools apart by their descriptions.

    Questions made from each tool's titles and headings are routed to the tool whose name and description match best.
    Exits with 1 if there is a warning.

    \b
    Example:
      bunko tool check
    """
    with _open_library(shared) as library:
        routing, flags = library.maintenance.measure_routing(), shared.library_flags(library)
    if shared.as_json:
        print_json(routing_to_dict(routing))
    elif is_terminal():
        show_routing(routing, flags)
    else:
        click.echo(format_routing(routing, flags))
    if routing.warnings:
        sys.exit(1)


def _set_active(shared: SharedOptions, name: str, *, active: bool) -> None:
    with _open_library(shared) as library:
        with record_command(library, "tool enable" if active else "tool disable", tools=[name]):
            tool = library.tools.set_active(name, active=active)
        print_result(shared, tool, f"{'Enabled' if active else 'Disabled'} {name}.")


def _open_library(shared: SharedOptions) -> Library:
    return shared.open(create=shared.docs_dir is not None)


def describe_alias(tool: Tool) -> str:
    """Return a sentence about the name that assistants see, if it is another one."""
    seen_name = assistant_name(tool)
    return f" Assistants see it as {seen_name}." if seen_name != tool.name else ""


def print_result(
    shared: SharedOptions, tool: Tool, message: str, *, notices: Sequence[str] = (), **fields: Any
) -> None:
    """Print a tool as JSON, or the message about it and notices."""
    if shared.as_json:
        print_json(tool_to_dict(tool) | fields | ({"notices": notices} if notices else {}))
        return
    say(message)
    for notice in notices:
        print_stderr(notice)


def format_routing(routing: RoutingReport, flags: str = "") -> str:
    """Return a routing report as lines for a pipe."""
    lines = []
    if routing.accuracy is not None:
        for route in routing.routes:
            text = (
                f"{route.share:.0%} of {route.questions} questions routed to it" if route.questions else "no questions"
            )
            counts = ((route.tied, "tied"), (route.unmatched, "without a match")) if route.questions else ()
            details = ", ".join(f"{count} {label}" for count, label in counts if count)
            lines.append(f"{route.tool}: {translate(f'{text} ({details})' if details else text)}")
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
    console = terminal.tables.new_console()
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
        terminal.tables.show_table(columns, rows, title="Where questions are routed", console=console)
        console.print()
        terminal.tables.print_message(_accuracy_summary(routing), "dim", console=console)
    for warning in routing.warnings:
        terminal.tables.print_message(warning.message, "yellow", console=console)
        examples: list[str] = []
        if len(warning.tools) == 2:
            tool, other = warning.tools
            examples = next((route.examples.get(other, []) for route in routing.routes if route.tool == tool), [])
        if examples:
            terminal.tables.print_message(f"  {translate('e.g.')} {'; '.join(examples)}", "dim", console=console)
        terminal.tables.print_message(f"  {warning.hint}", console=console)
    for name in routing.empty_tools:
        terminal.tables.print_message(_no_questions_message(name) + flags, "dim", console=console)
    if not routing.warnings:
        terminal.tables.print_message(_no_warnings_message(routing), "green", console=console)


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
