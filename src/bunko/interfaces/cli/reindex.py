"""`bunko reindex`: a folder in, an up-to-date index and a summary out."""

from __future__ import annotations

from typing import Any

import click

from bunko.interfaces.cli.import_report import print_report, show_import_progress
from bunko.interfaces.cli.options import complete_tool_names, pop_shared_options, print_stderr, shared_options


@click.command()
@click.option("--force", is_flag=True, help="Rebuild everything, as after a change of settings.")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool of the library.", shell_complete=complete_tool_names)
@click.option("--workers", type=click.IntRange(1, 64), metavar="N", help="Processes to use. [one a core]")
@shared_options
def command(force: bool, name: str | None, workers: int | None, **options: Any) -> None:
    """Make a folder searchable, or bring it up to date.

    \b
    Example:
      bunko reindex --docs-dir ~/notes
    """
    asked = pop_shared_options(options)
    with asked.open(create=asked.docs_dir is not None) as library, show_import_progress() as shown:
        report = library.reindex(
            tool=name,
            rebuild=force,
            workers=workers,
            progress=shown,
            waiting=print_stderr,
            keep_going=name is None and asked.docs_dir is None,
        )
    print_report(report, as_json=asked.as_json)
