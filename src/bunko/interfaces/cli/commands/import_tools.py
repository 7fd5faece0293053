"""The `bunko import`, `bunko reindex` and `bunko reembed` commands: bring tools up to date."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.main import EXIT_CODES
from bunko.interfaces.cli.options import (
    SharedOptions,
    chunking_options,
    cluster_option,
    complete_tool_names,
    shared_options,
)
from bunko.interfaces.cli.terminal.printing import escape_controls, print_json, print_stderr, say
from bunko.interfaces.cli.terminal.progress import show_import_progress
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.text import format_count
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.library.tools import catalog
from bunko.messages import translate, translate_reason

if TYPE_CHECKING:
    from bunko.library.importing.importer import ImportMode
    from bunko.library.library import Library
    from bunko.types import Report, Tool


@click.command(name="import")
@click.option("--name", "-n", metavar="NAME", help="Tool to import.", shell_complete=complete_tool_names)
@click.option("--all", "everything", is_flag=True, help="Import all active tools.")
@click.option(
    "--mode",
    "-m",
    type=click.Choice(["new", "replace", "update"]),
    help="First import, full rebuild, or only changes. [new; update with --all]",
)
@chunking_options
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Number of processes. [one per core]")
@cluster_option
@shared_options
def command(
    name: str | None,
    everything: bool,
    mode: ImportMode | None,
    chunker: str | None,
    chunk_size: int | None,
    chunk_overlap: int | None,
    workers: int | None,
    on: str | None,
    shared: SharedOptions,
) -> None:
    """Import a tool's documents into the library.

    With --all, tools that fail are reported and the rest are still imported. `bunko add PATH` adds and imports a tool,
    or imports its changes.

    \b
    Example:
      bunko import -n api-docs
      bunko import -n api-docs --mode update
      bunko import -n api-docs --mode replace --chunk-size 1024 --chunk-overlap 64
      bunko import -n api-docs --database ./custom.sqlite
      bunko import -n api-docs --on ray://cluster.example:10001
    """
    if name is None and not everything:
        raise click.UsageError("Specify --name or --all")
    if name is not None and everything:
        raise click.UsageError("--name and --all cannot be used together")
    with _open_library(shared, name) as library, show_import_progress() as observer:
        names = [tool.name for tool in library.local_tools()] if name is None else [name]
        import_mode: ImportMode = mode or ("update" if everything else "new")
        with record_command(library, "import", tools=names, arguments={"mode": import_mode}) as record:
            report = library.import_tools(
                names,
                import_mode,
                options_of=lambda tool: library.options_with_chunker(tool.options, chunker, chunk_size, chunk_overlap),
                workers=workers,
                on=on or library.settings.ingest.on,
                observer=observer,
                keep_going=everything,
            )
            record.add_report(report)
        report.notices += library.maintenance.search_problems(report.changed_tools)
    print_report(report, as_json=shared.as_json)


def _open_library(shared: SharedOptions, name: str | None) -> Library:
    """Open the library; a new --database file gets the tool's definition from the default library."""
    if shared.database is None or name is None:
        return shared.open(create=False)
    definition = None
    if not shared.library_paths().database.exists():
        # Looked up before the new file is created: an unknown tool must not leave one behind.
        definition = _tool_from_default_library(shared, name)
    library = shared.open()
    if catalog.find_tool(library.tools(), name) is None:
        definition = definition or _tool_from_default_library(shared, name)
        check_tool_name(library, definition.name)
        library.tools.copy(definition)
    return library


def _tool_from_default_library(shared: SharedOptions, name: str) -> Tool:
    with replace(shared, database=None).open(create=False, read_only=True) as library:
        return library.tools.get(name)


@click.command()
@click.option("--force", is_flag=True, help="Rebuild everything, for example after changing settings.")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Number of processes. [one per core]")
@cluster_option
@shared_options
def reindex(force: bool, name: str | None, workers: int | None, on: str | None, shared: SharedOptions) -> None:
    """Index a folder, or update its index.

    The index is kept in the folder. `bunko add DIR` does the same with your own library, beside other folders.

    \b
    Example:
      bunko reindex --docs-dir ~/notes
    """
    with shared.open(create=shared.docs_dir is not None) as library, show_import_progress() as observer:
        names = [tool.name for tool in library.local_tools()] if name is None else [name]
        with record_command(library, "reindex", tools=names, arguments={"rebuild": force}) as record:
            report = library.reindex(
                tool=name,
                rebuild=force,
                workers=workers,
                on=on or library.settings.ingest.on,
                observer=observer,
                keep_going=name is None and shared.docs_dir is None,
            )
            record.add_report(report)
    print_report(report, as_json=shared.as_json)


@click.command()
@click.option(
    "--name",
    "-n",
    "names",
    multiple=True,
    metavar="TOOL",
    help="Tool name; may be repeated. [the only tool]",
    shell_complete=complete_tool_names,
)
@click.option("--all", "everything", is_flag=True, help="All tools whose vectors come from another embedder.")
@shared_options
def reembed(names: tuple[str, ...], everything: bool, shared: SharedOptions) -> None:
    """Embed the texts of tools again with the current embedder.

    Change embedding.provider or its model first. The stored texts are used: sources are not read and documents are not
    split again. Processes with the old settings search the old vectors until the new ones are complete. After an
    interruption, finished vectors are not computed or paid for again.

    \b
    Example:
      EMBEDDING_PROVIDER=gemini bunko reembed -n api-docs
      bunko reembed --all
    """
    if names and everything:
        raise click.UsageError("--name and --all cannot be used together")
    with shared.open(create=False) as library, show_import_progress("Embedding") as observer:
        chosen = library.tools() if everything else [library.resolve_tool(name) for name in names or (None,)]
        tools = [tool.name for tool in chosen]
        with record_command(library, "reembed", tools=tools) as record:
            report = library.reembed(tools, observer=observer, keep_going=everything)
            record.add_report(report)
    if shared.as_json:
        print_json(report_to_dict(report))
    else:
        documents = format_count(report.updated, "document", number_format=",")
        texts = format_count(report.embedded, "text", number_format=",")
        summary = f"{documents} with new vectors, {texts} embedded"
        if report.unchanged:
            summary += f", {format_count(report.unchanged, 'document', number_format=',')} already up to date"
        say(f"{summary}.")
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


_MAX_PROBLEMS = 10
_MAX_SKIPPED = 3


def print_report(report: Report, *, as_json: bool) -> None:
    """Print the summary to stdout and problems to stderr; exit with an error code if a tool failed."""
    if as_json:
        print_json(report_to_dict(report))
    else:
        say(summary_line(report))
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


def exit_on_failures(report: Report) -> None:
    """Print why tools failed, and exit with the code of the first failure if there is one."""
    for failure in report.failures:
        print_stderr(f"{translate('Error')}: {failure.tool}: {translate(failure.message)}")
        if failure.hint:
            print_stderr(failure.hint)
    if report.failures:
        sys.exit(EXIT_CODES[report.failures[0].code])


def summary_line(report: Report) -> str:
    """Return the counts of an import in one line."""
    parts = [f"{report.added} added", f"{report.updated} updated", f"{report.deleted} deleted"]
    if report.moved:
        parts.append(f"{report.moved} moved")
    parts += [f"{report.unchanged} unchanged", f"{format_count(report.total_chunks, 'chunk')} in total"]
    return ", ".join(parts)


def problem_lines(report: Report) -> Iterator[str]:
    """Yield the notices and the first problems of an import, and the number of further problems."""
    yield from report.notices
    if report.problems:
        count = sum(problem.files for problem in report.problems)
        yield f"{format_count(count, 'document', number_format=',')} not indexed, or only in part:"
    for problem in report.problems[:_MAX_PROBLEMS]:
        tool = f"{problem.tool}: " if problem.tool else ""
        yield f"  {tool}{escape_controls(problem.uri)}: {translate_reason(problem.reason)}"
    if len(report.problems) > _MAX_PROBLEMS:
        yield f"  … and {len(report.problems) - _MAX_PROBLEMS} more; use --json to list all."
    if report.skipped_folders:
        yield skipped_line(report.skipped_folders)


def skipped_line(folders: Sequence[str]) -> str:
    """Return how many folders were skipped by their names, the first of them, and how to read one."""
    named = ", ".join(escape_controls(folder) for folder in folders[:_MAX_SKIPPED])
    more = f", … and {len(folders) - _MAX_SKIPPED} more" if len(folders) > _MAX_SKIPPED else ""
    count = "1 folder by its name" if len(folders) == 1 else f"{len(folders):,} folders by their names"
    return (
        f"Skipped {count} (scanner.exclude_dirs): {named}{more}."
        f" To read one, add it by itself: bunko add {shlex.quote(escape_controls(folders[0]))}"
    )
