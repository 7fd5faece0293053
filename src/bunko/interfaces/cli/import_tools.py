"""The `bunko import` command: import the documents of tools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.import_report import print_report, show_import_progress
from bunko.interfaces.cli.options import (
    SharedOptions,
    chunking_options,
    cluster_option,
    complete_tool_names,
    pop_shared_options,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.import_mode import ImportMode
    from bunko.library.library import Library
    from bunko.types import Tool


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
    **options: Any,
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
    shared = pop_shared_options(options)
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
    print_report(report, as_json=shared.as_json)


def _open_library(shared: SharedOptions, name: str | None) -> Library:
    """Open the library; a new --database file gets the tool's definition from the default library."""
    if shared.database is None or name is None:
        return shared.open(create=False)
    from bunko.interfaces.tools.toolsets import check_tool_name
    from bunko.library import catalog

    definition = None
    if not shared.library_paths().database.exists():
        # Looked up before the new file is created: an unknown tool must not leave one behind.
        definition = _tool_from_default_library(shared, name)
    library = shared.open()
    if catalog.find_tool(library.tools(), name) is None:
        definition = definition or _tool_from_default_library(shared, name)
        check_tool_name(library, definition.name)
        catalog.copy_tool(library.store, definition)
    return library


def _tool_from_default_library(shared: SharedOptions, name: str) -> Tool:
    from bunko.library import catalog

    with replace(shared, database=None).open(create=False, read_only=True) as library:
        return catalog.get_tool(library.store, name)
