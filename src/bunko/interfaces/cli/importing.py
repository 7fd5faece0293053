"""`bunko import`: a tool's folder in, its documents in the library out."""

from __future__ import annotations

from typing import Any

import click

from bunko.errors import LibraryError
from bunko.interfaces.cli.options import chosen, print_json, say, shared
from bunko.interfaces.cli.reindex import problems, progress, summary


@click.command(name="import")
@click.option("--name", "-n", metavar="NAME", help="The tool.")
@click.option("--all", "everything", is_flag=True, help="All active tools, differentially.")
@click.option(
    "--mode",
    "-m",
    type=click.Choice(["new", "replace", "update"]),
    help="For the first time, all over again, or only what changed. [new; update with --all]",
)
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes to use. [one a core]")
@shared
def command(name: str | None, everything: bool, mode: str | None, workers: int | None, **options: Any) -> None:
    """Bring a tool's documents into the library.

    \b
    Example:
      bunko import -n api-docs
      bunko import -n api-docs --mode update
    """
    if (name is None) != everything:
        raise click.UsageError("Give --name or --all.")
    asked = chosen(options)
    mode = mode or ("update" if everything else "new")
    from bunko.payload import report as payload

    with asked.open(create=False) as library, progress() as shown:
        for one in [tool.name for tool in library.tools() if tool.active] if everything else [name]:
            _check_new(library.imported(one), one, mode)
        report = library.reindex(tool=name, everything=mode == "replace", workers=workers, progress=shown, waiting=say)
    if asked.as_json:
        print_json(payload(report))
    else:
        click.echo(summary(report))
        for line in problems(report):
            say(line)


def _check_new(imported: bool, name: str | None, mode: str) -> None:
    if mode == "new" and imported:
        raise LibraryError(
            f"{name} is imported already",
            hint="Use --mode update to take in what changed, or --mode replace to do it all over.",
        )
