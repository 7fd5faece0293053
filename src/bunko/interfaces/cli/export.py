"""The `bunko export` command: write a tool to one file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.options import (
    PATH,
    complete_tool_names,
    pop_shared_options,
    print_json,
    say,
    shared_options,
)
from bunko.interfaces.text import format_count


@click.command()
@click.option("--name", "-n", metavar="NAME", help="Tool name. [the only tool]", shell_complete=complete_tool_names)
@click.option("--output", "-o", type=PATH, metavar="FILE", help="File to write, or its folder. [NAME.bunko]")
@shared_options
def command(name: str | None, output: Path | None, **options: Any) -> None:
    """Export a tool to one file, to import it on another machine.

    The file contains the tool's definition, documents and index: the other machine does not need the folder and
    embeds nothing again. It contains no settings and no keys, but it contains all texts: share it only with people
    who may read the folder.

    \b
    Example:
      bunko export -n api-docs
      bunko export -n api-docs -o /media/stick
      bunko import-pack api-docs.bunko
    """
    shared = pop_shared_options(options)
    from bunko.interfaces.text import format_size

    with shared.open(create=False, read_only=True) as library:
        tool, path, size = library.packs.export_tool(name, output or Path())
        totals = library.store.stats.totals(tool.id)
    if shared.as_json:
        print_json(
            {
                "name": tool.name,
                "file": str(path),
                "bytes": size,
                "documents": totals.documents,
                "chunks": totals.chunks,
                "vectors": totals.vectors,
            }
        )
    else:
        say(
            f"Wrote {path}: {format_count(totals.documents, 'document')}, {format_count(totals.chunks, 'chunk')},"
            f" {format_size(size)}. Import it on another machine with: bunko import-pack {shlex.quote(path.name)}"
        )
