"""`bunko export`: a tool in, one file that another machine can take in out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import (
    PATH,
    complete_tool_names,
    format_count,
    pop_shared_options,
    print_json,
    replace_controls,
    shared_options,
)


@click.command()
@click.option("--name", "-n", metavar="NAME", help="The tool. [the only one]", shell_complete=complete_tool_names)
@click.option("--output", "-o", type=PATH, metavar="FILE", help="The file to write, or a folder for it. [NAME.bunko]")
@shared_options
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
    asked = pop_shared_options(options)
    from bunko.interfaces.cli.status import format_size

    with asked.open(create=False, read_only=True) as library:
        tool, path, number = library.export_tool(name, output or Path())
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
            replace_controls(
                f"Wrote {path}: {format_count(totals.documents, 'document')}, {format_count(totals.chunks, 'chunk')},"
                f" {format_size(number)}."
                f" Take it in elsewhere with: bunko import-pack {shlex.quote(path.name)}"
            )
        )
