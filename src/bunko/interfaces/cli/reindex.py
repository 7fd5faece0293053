"""The `bunko reindex` command: index a folder, or update its index."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.import_report import print_report, show_import_progress
from bunko.interfaces.cli.options import cluster_option, complete_tool_names, pop_shared_options, shared_options


@click.command()
@click.option("--force", is_flag=True, help="Rebuild everything, for example after changing settings.")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Number of processes. [one per core]")
@cluster_option
@shared_options
def command(force: bool, name: str | None, workers: int | None, on: str | None, **options: Any) -> None:
    """Index a folder, or update its index.

    The index is kept in the folder. `bunko add DIR` does the same with your own library, beside other folders.

    \b
    Example:
      bunko reindex --docs-dir ~/notes
    """
    shared = pop_shared_options(options)
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
