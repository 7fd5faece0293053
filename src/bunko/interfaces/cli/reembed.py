"""`bunko reembed`: tools in, the same documents with the vectors that the settings name now out."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.import_report import exit_on_failures, problem_lines, show_import_progress
from bunko.interfaces.cli.options import (
    complete_tool_names,
    format_count,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=complete_tool_names)
@click.option("--all", "everything", is_flag=True, help="All tools whose vectors were made by another embedder.")
@shared_options
def command(name: str | None, everything: bool, **options: Any) -> None:
    """Give tools the vectors of another embedder, from the texts they hold.

    Change embedding.provider or its model first. Nothing is read from the source, nothing is cut anew. The old vectors
    answer whoever still has the old settings until the new ones are whole. What was made before an interruption is not
    made or paid for again.

    \b
    Example:
      EMBEDDING_PROVIDER=gemini bunko reembed -n api-docs
      bunko reembed --all
    """
    if name is not None and everything:
        raise click.UsageError("Give --name or --all, not both.")
    asked = pop_shared_options(options)
    with asked.open(create=False) as library, show_import_progress("Embedding") as shown:
        names = [tool.name for tool in library.tools()] if everything else [library.resolve_tool(name).name]
        report = library.reembed(names, progress=shown, waiting=print_stderr, keep_going=everything)
    if asked.as_json:
        from bunko.interfaces.serialize import report_to_dict as payload

        print_json(payload(report))
    else:
        texts, rest = format_count(report.embedded, "text", number_format=","), report.unchanged
        known = f", {format_count(rest, 'document', number_format=',')} had the right vectors already" if rest else ""
        click.echo(
            f"{format_count(report.updated, 'document', number_format=',')} with new vectors, {texts} embedded{known}."
        )
        for line in problem_lines(report):
            print_stderr(line)
    exit_on_failures(report)
