"""`bunko build`: a file or folder of memos in, the tool `memos` and what changed in it out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.import_report import problem_lines, show_import_progress
from bunko.interfaces.cli.options import PATH, pop_shared_options, print_json, print_stderr, shared_options

if TYPE_CHECKING:
    from bunko.types import Report


@click.command()
@click.option("--input", "-i", "source", required=True, type=PATH, metavar="PATH", help="A file or folder of memos.")
@click.option("--output", "-o", type=PATH, metavar="DIR", help="The library; the same as --library.")
@click.option("--with-embeddings", is_flag=True, help="Make vectors, as is done anyway.")
@click.option("--skip-embeddings", is_flag=True, help="Make no vectors: the memos are found by words alone.")
@click.option("--incremental", is_flag=True, help="Take in only what changed, as is done anyway.")
@click.option("--force", is_flag=True, help="Make the index anew.")
@shared_options
def command(
    source: Path,
    output: Path | None,
    with_embeddings: bool,
    skip_embeddings: bool,
    incremental: bool,
    force: bool,
    **options: Any,
) -> None:
    """Bring memos into the library, or take in what changed in them.

    They become its tool `memos`. Memos are changelogs (`* Title 2024-01-15`, or items below a date), Markdown files
    with front matter, and JSON lines with title, date, tags and text.

    \b
    Example:
      bunko build --input ~/notes
      bunko build --input ~/ChangeLog --output ~/memos --skip-embeddings
    """
    asked = pop_shared_options(options)
    if with_embeddings and skip_embeddings:
        raise click.UsageError("Give --with-embeddings or --skip-embeddings, not both.")
    if incremental and force:
        raise click.UsageError("Give --incremental or --force, not both.")
    if output is not None and asked.library is not None:
        raise click.UsageError("Give --output or --library, not both.")
    asked = replace(asked, library=output or asked.library)
    from bunko.library.memos import import_memos

    with asked.open() as library, show_import_progress() as shown:
        report = import_memos(
            library, source, vectors=not skip_embeddings, rebuild=force, progress=shown, waiting=print_stderr
        )
    if asked.as_json:
        from bunko.interfaces.serialize import report_to_dict as payload

        print_json(payload(report))
        return
    click.echo("\n".join(summary_lines(report)))
    for line in problem_lines(report):
        print_stderr(line)


def summary_lines(report: Report) -> list[str]:
    """Return what a build did, each number on its line."""
    told = {"Added": report.added, "Modified": report.updated, "Deleted": report.deleted}
    if report.moved:
        told["Moved"] = report.moved
    told |= {"Unchanged": report.unchanged, "Embeddings needed": report.embedded}
    return [f"{name}: {number}" for name, number in told.items()]
