"""`bunko reembed`: tools in, the same documents with the vectors that the settings name now out."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.import_report import failures, problems, progress
from bunko.interfaces.cli.options import chosen, counted, print_json, say, shared, tool_names


@click.command()
@click.option("--name", "-n", metavar="TOOL", help="The tool. [the only one]", shell_complete=tool_names)
@click.option("--all", "everything", is_flag=True, help="All tools whose vectors were made by another embedder.")
@shared
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
    asked = chosen(options)
    with asked.open(create=False) as library, progress("Embedding") as shown:
        names = [tool.name for tool in library.tools()] if everything else [library.only(name).name]
        report = library.reembed(names, progress=shown, waiting=say, going_on=everything)
    if asked.as_json:
        from bunko.interfaces.serialize import report as payload

        print_json(payload(report))
    else:
        texts, rest = counted(report.embedded, "text", form=","), report.unchanged
        known = f", {counted(rest, 'document', form=',')} had the right vectors already" if rest else ""
        click.echo(f"{counted(report.updated, 'document', form=',')} with new vectors, {texts} embedded{known}.")
        for line in problems(report):
            say(line)
    failures(report)
