"""The `bunko build` command: import memos into the tool `memos`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.import_report import problem_lines, show_import_progress
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    PATH,
    confirm,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.types import Report


@click.command()
@click.option(
    "--input",
    "-i",
    "source",
    required=True,
    type=PATH,
    metavar="PATH",
    help="File or folder of memos; - for standard input.",
)
@click.option("--output", "-o", type=PATH, metavar="DIR", help="Library folder (same as --library).")
@click.option("--with-embeddings", is_flag=True, help="Compute embeddings (default).")
@click.option("--skip-embeddings", is_flag=True, help="Do not compute embeddings; search memos by keywords only.")
@click.option("--incremental", is_flag=True, help="Import only changes (default).")
@click.option("--force", is_flag=True, help="Rebuild the index from scratch.")
@click.option("--yes", "-y", is_flag=True, help="Replace the memos of another file or folder without asking.")
@shared_options
def command(
    source: Path,
    output: Path | None,
    with_embeddings: bool,
    skip_embeddings: bool,
    incremental: bool,
    force: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Import memos into the library, or update them.

    The memos become the tool `memos`. They are changelogs (`* Title 2024-01-15`, or items below a date), notes with a
    heading for each day (`## 2024-01-15`), Markdown files with front matter, and JSON lines with title, date, tags and
    text. The tool has one source. `bunko add FILE` does the same with a tool named after the file, beside other ones;
    for a second folder of memos, use `bunko tool add --kind memos`.

    \b
    Example:
      bunko build --input ~/notes
      bunko build --input ~/ChangeLog --output ~/memos --skip-embeddings
      jq -c '.[]' notes.json | bunko build --input -
    """
    shared = pop_shared_options(options)
    if with_embeddings and skip_embeddings:
        raise click.UsageError("--with-embeddings and --skip-embeddings cannot be used together")
    if incremental and force:
        raise click.UsageError("--incremental and --force cannot be used together")
    if output is not None and shared.library is not None:
        raise click.UsageError("--output and --library cannot be used together")
    shared = replace(shared, library=output or shared.library)
    from bunko.library.memos import MEMOS_TOOL, import_memos

    memos = sys.stdin.buffer if str(source) == "-" else source
    with shared.open() as library:
        replace_source = yes or (isinstance(memos, Path) and _confirm_source(library, memos))
        with show_import_progress() as observer, record_command(library, "build", tools=[MEMOS_TOOL]) as record:
            report = import_memos(
                library,
                memos,
                vectors=not skip_embeddings,
                rebuild=force,
                replace_source=replace_source,
                observer=observer,
            )
            record.add_report(report)
    if shared.as_json:
        from bunko.interfaces.serialize import report_to_dict

        print_json(report_to_dict(report))
        return
    labels = translate if is_terminal() else str
    click.echo("\n".join(f"{labels(label)}: {count}" for label, count in summary_counts(report).items()))
    for line in problem_lines(report):
        print_stderr(line)


def _confirm_source(library: Library, source: Path) -> bool:
    """Ask at a terminal whether the memos of another source may be replaced; return whether the answer was yes."""
    from bunko.library.memos import keep_both_hint, replaced_memos

    sentence = replaced_memos(library, source)
    if not sentence or not sys.stdin.isatty():
        return False
    question = f"The tool {sentence}. Replace?"
    try:
        confirmed = confirm(question)
    except click.Abort:
        confirmed = False
        click.echo(err=True)
    if not confirmed:
        raise click.ClickException(replace_controls(f"Nothing was imported\n{keep_both_hint(library, source)}"))
    return True


def summary_counts(report: Report) -> dict[str, int]:
    """Return the counts of a build by their labels."""
    counts = {"Added": report.added, "Modified": report.updated, "Deleted": report.deleted}
    if report.moved:
        counts["Moved"] = report.moved
    return counts | {"Unchanged": report.unchanged, "Embeddings needed": report.embedded}
