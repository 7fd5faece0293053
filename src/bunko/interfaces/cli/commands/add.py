"""The `bunko add` command: add folders, files and web pages, and import them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.commands.import_tools import problem_lines, summary_line
from bunko.interfaces.cli.commands.web import report_problems, result_to_dict
from bunko.interfaces.cli.options import TEXT_PATH, SharedOptions, complete_tool_names, library_options
from bunko.interfaces.cli.terminal.printing import escape_controls, print_json, print_labelled, print_stderr, say
from bunko.interfaces.cli.terminal.progress import show_fetch_progress, show_import_progress
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.serialize_state import tool_to_dict
from bunko.interfaces.text import format_count
from bunko.interfaces.tools.additions import describe_addition
from bunko.interfaces.tools.toolsets import check_tool_name, is_reserved
from bunko.library.add import import_addition, plan_addition
from bunko.library.tools.assistant_names import assistant_name
from bunko.library.tools.nothing_found import describe_unread
from bunko.messages import translate
from bunko.sources import section_of
from bunko.sources.detect import detect_sources

if TYPE_CHECKING:
    from bunko.library.add import Addition
    from bunko.library.library import Library
    from bunko.library.web.collector import CollectResult
    from bunko.sources.detect import DetectedSource
    from bunko.types import Report, Tool


@click.command()
@click.argument("targets", nargs=-1, required=True, type=TEXT_PATH, metavar="PATH_OR_URL...")
@click.option(
    "--name", "-n", metavar="NAME", help="Name of the tool. [after its path]", shell_complete=complete_tool_names
)
@click.option("--description", "-d", metavar="TEXT", help="What the documents are about. [from the documents]")
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Include only these files, of any type: '*.py'. May be repeated."
)
@click.option("--exclude", multiple=True, metavar="GLOB", help="Exclude these files; may be repeated.")
@library_options
def command(
    targets: Sequence[str],
    name: str | None,
    description: str | None,
    include: Sequence[str],
    exclude: Sequence[str],
    shared: SharedOptions,
) -> None:
    """Add a folder, a file or a web page, and import it.

    A folder may be a vault of Obsidian or Logseq. A file may be a ChangeLog memo, notes with a heading for each day,
    JSON lines, or a single document. Each path becomes a tool of its own, the documents of one folder one tool
    together; web pages become part of the tool `knowledge`. Adding a path again updates it.

    \b
    Example:
      bunko add ~/notes
      bunko add ~/ChangeLog ~/papers/report.pdf
      bunko add ~/code/parser -n parser -d "The parser and its tests" --include '*.py'
      bunko add https://example.com/guide
    """
    urls = [target for target in targets if target.lower().startswith(("http://", "https://"))]
    for target in targets:
        if "://" in target and target not in urls:
            raise click.UsageError(f"{target} cannot be added: only http:// and https:// addresses can")
    # Every path is checked before anything is created.
    sources = detect_sources([Path(target) for target in targets if target not in urls])
    count = len(sources) + bool(urls)
    if count > 1 and (name is not None or description is not None):
        option = "--name" if name is not None else "--description"
        raise click.UsageError(f"{option} is for one tool, but these are {count}: add them one by one")
    if [*include, *exclude] and (urls or any(source.files or not source.path.is_dir() for source in sources)):
        raise click.UsageError("--include and --exclude are for folders")
    results: list[dict[str, object]] = []
    from bunko.library.open import remove_new_library_on_error  # loads the search engine

    with shared.open() as library, remove_new_library_on_error(library):
        additions = _plan(library, sources, name, description, include, exclude)
        phrase, is_new = "", False
        for addition in additions:
            result, example = _add_source(library, addition, shared)
            results.append(result)
            phrase, is_new = phrase or example, is_new or addition.is_new
        if urls:
            collected = _add_pages(library, urls, name, description, shared)
            results.append(
                {"name": collected.tool, "kind": "web", "added": bool(collected.outcome.added), "found": "web pages"}
                | {"pages": result_to_dict(collected)}
            )
            is_new = is_new or bool(collected.outcome.added)
        if shared.as_json:
            print_json({"tools": results})
        elif is_new:
            _print_next_steps(shared, library, phrase, urls)
        if urls:
            report_problems(collected, exit_on_problem=True)


def _plan(
    library: Library,
    sources: Sequence[DetectedSource],
    name: str | None,
    description: str | None,
    include: Sequence[str],
    exclude: Sequence[str],
) -> list[Addition]:
    """Return what adding each source does; an error in one of them leaves all as they are."""
    if name is not None:
        check_tool_name(library, name)
    additions: list[Addition] = []
    for source in sources:
        additions.append(
            plan_addition(
                library,
                source,
                name=name,
                description=description,
                include=include,
                exclude=exclude,
                is_reserved=is_reserved,
                used_names=[addition.tool.name for addition in additions],
            )
        )
    return additions


def _add_source(library: Library, addition: Addition, shared: SharedOptions) -> tuple[dict[str, object], str]:
    """Import a source and say so; return it for JSON output, and a phrase to search for."""
    summary = describe_addition(addition)
    if not shared.as_json:
        say(f"{escape_controls(addition.source.label)}: {translate(summary)}")
        if addition.contents.survey.unread:
            say(f"  Not read: {describe_unread(addition.contents.survey)}")
    arguments = {"source": addition.source.label}
    with show_import_progress() as observer, record_command(library, "add", arguments=arguments) as record:
        tool, report, phrase = import_addition(library, addition, observer=observer)
        record.tools = [tool.name]
        record.add_report(report)
    report.notices += library.maintenance.search_problems(report.changed_tools)
    if not shared.as_json:
        say(_summary(library, addition, tool, report))
        for line in (*problem_lines(report), *(library.maintenance.overlap_notices(tool) if addition.is_new else ())):
            print_stderr(line)
    contents = addition.contents
    return (
        tool_to_dict(tool)
        | {
            "added": addition.is_new,
            "found": summary,
            "documents": contents.documents,
            "formats": contents.formats,
            "not_read": dict(contents.survey.unread),
            "import": report_to_dict(report),
        }
    ), phrase


def _summary(library: Library, addition: Addition, tool: Tool, report: Report) -> str:
    if not addition.is_new:
        return f"Updated {tool.name}: {summary_line(report)}"
    documents = library.stats.totals(tool.id).documents
    noun = ("entry", "entries") if section_of(tool.kind) == "memos" else ("document", "documents")
    chunks = format_count(report.total_chunks, "chunk", number_format=",")
    counts = f"{format_count(documents, *noun, number_format=',')}, {chunks}"
    if unread := sum(problem.files for problem in report.problems if problem.package):
        counts = ", ".join((counts, f"{unread:,} {'file' if unread == 1 else 'files'} not read"))
    name = assistant_name(tool)
    alias = f". Assistants see it as {name}" if name != tool.name else ""
    return f"Added {tool.name}: {counts}{alias}"


def _add_pages(
    library: Library, urls: Sequence[str], name: str | None, description: str | None, shared: SharedOptions
) -> CollectResult:
    """Fetch and import web pages and say so, as `bunko web add` does."""
    arguments = {"urls": list(urls)}
    with show_fetch_progress("Fetching") as observer, record_command(library, "add", arguments=arguments) as record:
        result = library.web.add_pages(urls, tool=name, observer=observer)
        record.tools = [result.tool]
        record.add_pages(result)
    outcome = result.outcome
    if outcome.stored_urls and description is not None:
        library.tools.update(result.tool, description=description)
    if not shared.as_json:
        for url in outcome.stored_urls:
            say(f"{escape_controls(url)}: {translate('a web page')}")
        pages = format_count(len(outcome.stored_urls), "page")
        chunks = format_count(sum(result.chunk_counts.values()), "chunk")
        state = "" if outcome.added else f", {len(outcome.updated)} updated, {len(outcome.unchanged)} unchanged"
        if outcome.stored_urls:
            verb = "Added to" if outcome.added else "Updated"
            say(f"{verb} {result.tool}: {pages}, {chunks}{state}")
    return result


def _print_next_steps(shared: SharedOptions, library: Library, phrase: str, urls: Sequence[str]) -> None:
    """Print what to type next: commands that work as they are, with the options of this library."""
    flags = shared.library_flags(library)
    query = f'"{phrase}"' if phrase and not set(phrase) & set('"\\$`!') else '"…"'
    steps = [("Search", f"bunko search {query}{flags}")]
    if urls:
        steps.append(("Add the pages that it links to", f"bunko web crawl {shlex.quote(urls[0])}{flags}"))
    steps.append(("Connect an assistant", f"bunko connect claude-code{flags}"))
    click.echo()
    print_labelled({label: f" {command_line}" for label, command_line in steps})
