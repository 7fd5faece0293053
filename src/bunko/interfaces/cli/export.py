"""`bunko export`: a tool in, one file that another machine can take in out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import PATH, chosen, counted, print_json, shared, tool_names, visible


@click.command()
@click.option("--name", "-n", metavar="NAME", help="The tool. [the only one]", shell_complete=tool_names)
@click.option("--output", "-o", type=PATH, metavar="FILE", help="The file to write, or a folder for it. [NAME.bunko]")
@shared
def command(name: str | None, output: Path | None, **options: Any) -> None:
    """Write a tool into one file that another machine can take in.

    The file holds the tool's definition, its documents and their index, so that the folder is not needed there and
    nothing is embedded again. It holds no settings and no keys, but all the texts: give it only to whom you would
    give the folder.

    \b
    Example:
      bunko export -n api-docs
      bunko export -n api-docs -o /media/stick
      bunko import-pack api-docs.bunko
    """
    asked = chosen(options)
    from bunko.interfaces.cli.status import size

    with asked.open(create=False, read_only=True) as library:
        tool, path, number = library.export(name, output or Path())
        totals = library.store.totals(tool.id)
    if asked.as_json:
        print_json(
            {
                "name": tool.name,
                "file": str(path),
                "bytes": number,
                "documents": totals.documents,
                "chunks": totals.chunks,
                "vectors": totals.vectors,
            }
        )
    else:
        click.echo(
            visible(
                f"Wrote {path}: {counted(totals.documents, 'document')}, {counted(totals.chunks, 'chunk')},"
                f" {size(number)}."
                f" Take it in elsewhere with: bunko import-pack {shlex.quote(path.name)}"
            )
        )
