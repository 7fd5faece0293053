"""`bunko import`: a tool's folder in, its documents in the library out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.import_report import print_report, show_import_progress
from bunko.interfaces.cli.options import (
    SharedOptions,
    chunking_options,
    complete_tool_names,
    pop_shared_options,
    print_stderr,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.library import ImportMode, Library
    from bunko.types import Tool


@click.command(name="import")
@click.option("--name", "-n", metavar="NAME", help="The tool.", shell_complete=complete_tool_names)
@click.option("--all", "everything", is_flag=True, help="All active tools, differentially.")
@click.option(
    "--mode",
    "-m",
    type=click.Choice(["new", "replace", "update"]),
    help="For the first time, all over again, or only what changed. [new; update with --all]",
)
@chunking_options
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes to use. [one a core]")
@shared_options
def command(
    name: str | None,
    everything: bool,
    mode: ImportMode | None,
    chunker: str | None,
    chunk_size: int | None,
    chunk_overlap: int | None,
    workers: int | None,
    **options: Any,
) -> None:
    """Bring a tool's documents into the library.

    With --all, a tool that cannot be imported is told of, and the others are.

    \b
    Example:
      bunko import -n api-docs
      bunko import -n api-docs --mode update
      bunko import -n api-docs --mode replace --chunk-size 1024 --chunk-overlap 64
      bunko import -n api-docs --database ./custom.sqlite
    """
    if (name is None) != everything:
        raise click.UsageError("Give --name or --all." if name is None else "Give --name or --all, not both.")
    asked = pop_shared_options(options)
    with _open_library(asked, name) as library, show_import_progress() as shown:
        report = library.import_tools(
            [tool.name for tool in library.tools() if tool.active] if name is None else [name],
            mode or ("update" if everything else "new"),
            chunker_options=lambda tool: library.chunker_options(chunker, chunk_size, chunk_overlap, tool=tool),
            workers=workers,
            progress=shown,
            waiting=print_stderr,
            keep_going=everything,
        )
    print_report(report, as_json=asked.as_json)


def _open_library(shared: SharedOptions, name: str | None) -> Library:
    """Open the library that is meant; a file named for the first time takes a tool's definition from the usual one."""
    if shared.database is None or name is None:
        return shared.open(create=False)
    from bunko.library import catalog

    known = None
    if not shared.library_paths().database.exists():
        known = _tool_from_default_library(shared, name)  # before a file is made that nobody needs
    library = shared.open()
    if all(tool.name != name for tool in library.tools()):
        catalog.copy_tool(library.store, known or _tool_from_default_library(shared, name))
    return library


def _tool_from_default_library(shared: SharedOptions, name: str) -> Tool:
    from bunko.library import catalog

    with replace(shared, database=None).open(create=False, read_only=True) as library:
        return catalog.get_tool(library.store, name)
