"""The `bunko reembed` command: recompute the vectors of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.import_report import exit_on_failures, problem_lines, show_import_progress
from bunko.interfaces.cli.options import (
    complete_tool_names,
    pop_shared_options,
    print_json,
    print_stderr,
    say,
    shared_options,
)
from bunko.interfaces.text import format_count

if TYPE_CHECKING:
    from bunko.types import Report


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="Tool name. [the only tool]", shell_complete=complete_tool_names)
@click.option("--all", "everything", is_flag=True, help="All tools whose vectors come from another embedder.")
@shared_options
def command(name: str | None, everything: bool, **options: Any) -> None:
    """Embed the texts of tools again with the current embedder.

    Change embedding.provider or its model first. The stored texts are used: sources are not read and documents are not
    split again. Processes with the old settings search the old vectors until the new ones are complete. After an
    interruption, finished vectors are not computed or paid for again.

    \b
    Example:
      EMBEDDING_PROVIDER=gemini bunko reembed -n api-docs
      bunko reembed --all
    """
    if name is not None and everything:
        raise click.UsageError("--name and --all cannot be used together")
    shared = pop_shared_options(options)
    with shared.open(create=False) as library, show_import_progress("Embedding") as observer:
        names = [tool.name for tool in library.tools()] if everything else [library.resolve_tool(name).name]
        with record_command(library, "reembed", tools=names) as record:
            report = library.reembed(names, observer=observer, keep_going=everything)
            record.add_report(report)
    if shared.as_json:
        from bunko.interfaces.serialize import report_to_dict

        print_json(report_to_dict(report))
    else:
        say(_summary_line(report))
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)


def _summary_line(report: Report) -> str:
    documents = format_count(report.updated, "document", number_format=",")
    texts = format_count(report.embedded, "text", number_format=",")
    summary = f"{documents} with new vectors, {texts} embedded"
    if report.unchanged:
        summary += f", {format_count(report.unchanged, 'document', number_format=',')} already up to date"
    return f"{summary}."
