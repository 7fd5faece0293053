"""The `bunko build` command: import memos into the tool `memos`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.embedders import DEFAULT_PROVIDER, builtin_providers
from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.commands.import_tools import problem_lines
from bunko.interfaces.cli.options import PATH, SharedOptions, shared_options
from bunko.interfaces.cli.terminal.printing import confirm, print_json, print_stderr, replace_controls
from bunko.interfaces.cli.terminal.progress import show_import_progress
from bunko.interfaces.serialize import report_to_dict
from bunko.library.memos import choose_tools, import_memos, keep_both_hint, replaced_memos
from bunko.library.opening.last_build import remember_build
from bunko.library.tools.suggested_commands import vector_command
from bunko.messages import translate
from bunko.types import Report

if TYPE_CHECKING:
    from bunko.library.library import Library


@click.command()
@click.option(
    "--input",
    "-i",
    "paths",
    required=True,
    multiple=True,
    type=PATH,
    metavar="PATH",
    help="File or folder of memos; - for standard input. May be repeated.",
)
@click.option("--output", "-o", type=PATH, metavar="DIR", help="Library folder (same as --library).")
@click.option("--with-embeddings", is_flag=True, help="Compute embeddings (default).")
@click.option("--skip-embeddings", is_flag=True, help="Do not compute embeddings; search memos by keywords only.")
@click.option("--incremental", is_flag=True, help="Import only changes (default).")
@click.option("--force", is_flag=True, help="Rebuild the index from scratch.")
@click.option("--yes", "-y", is_flag=True, help="Replace the memos of another file or folder without asking.")
@shared_options
def command(
    paths: tuple[Path, ...],
    output: Path | None,
    with_embeddings: bool,
    skip_embeddings: bool,
    incremental: bool,
    force: bool,
    yes: bool,
    shared: SharedOptions,
) -> None:
    """Import memos into the library, or update them.

    The memos become the tool `memos`. They are changelogs (`* Title 2024-01-15`, or items below a date), notes with a
    heading for each day (`## 2024-01-15`), Markdown files with front matter, and JSON lines with title, date, tags and
    text. The tool has one source; each further one becomes a tool that is named after it and searched with the others.
    `bunko add FILE` does the same for one file.

    \b
    Example:
      bunko build --input ~/notes
      bunko build --input ~/ChangeLog --input ~/diary --output ~/memos --skip-embeddings
      jq -c '.[]' notes.json | bunko build --input -
    """
    if with_embeddings and skip_embeddings:
        raise click.UsageError("--with-embeddings and --skip-embeddings cannot be used together")
    if incremental and force:
        raise click.UsageError("--incremental and --force cannot be used together")
    if output is not None and shared.library is not None:
        raise click.UsageError("--output and --library cannot be used together")
    shared = replace(shared, library=output or shared.library)
    with shared.open() as library:
        sources = choose_tools(library, [sys.stdin.buffer if str(path) == "-" else path for path in paths])
        replaceable = {
            name for name, source in sources.items()
            if yes or (isinstance(source, Path) and _confirm_source(library, source, name))
        }  # fmt: skip
        report = Report()
        with show_import_progress() as observer, record_command(library, "build", tools=list(sources)) as record:
            for name, source in sources.items():
                imported = import_memos(
                    library,
                    source,
                    name=name,
                    vectors=not skip_embeddings,
                    rebuild=force,
                    replace_source=name in replaceable,
                    observer=observer,
                )
                report.include(imported, tool=name if len(sources) > 1 else "")
            record.add_report(report)
        remember_build(library.paths)
        if with_embeddings and (notice := _other_models(library, list(sources))):
            print_stderr(notice)
    if shared.as_json:
        print_json(report_to_dict(report))
        return
    click.echo("\n".join(f"{translate(label)}: {count}" for label, count in summary_counts(report).items()))
    for line in problem_lines(report):
        print_stderr(line)


def _other_models(library: Library, names: Sequence[str]) -> str:
    """Return which model was used and how to choose another, if it is the default and there is a key for another."""
    embedding = library.settings.embedding
    if embedding.provider != DEFAULT_PROVIDER or library.setting_origins.get("embedding.provider") != "default":
        return ""
    providers = [
        name
        for name, provider in builtin_providers().items()
        if any(option.secret and getattr(embedding, option.key) for option in provider.options)
    ]
    if not providers:
        return ""
    variables = " or ".join(f"EMBEDDING_PROVIDER={name}" for name in providers)
    commands = " && ".join(vector_command(library.paths, library.resolve_tool(name)) for name in names)
    return (
        f"The vectors of {', '.join(names)} come from the bundled model ({DEFAULT_PROVIDER})."
        f" To use {' or '.join(providers)}, set {variables} and run: {commands}"
    )


def _confirm_source(library: Library, source: Path, name: str) -> bool:
    """Ask at a terminal whether the memos of another source may be replaced; return whether the answer was yes."""
    sentence = replaced_memos(library, source, name)
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
