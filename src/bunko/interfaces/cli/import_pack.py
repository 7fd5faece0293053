"""The `bunko import-pack` command: import a tool from an exported file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.import_report import show_import_progress
from bunko.interfaces.cli.options import (
    PATH,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)
from bunko.interfaces.text import format_count


@click.command(name="import-pack")
@click.argument("file", type=PATH)
@click.option("--name", "-n", metavar="NAME", help="Name of the tool in this library. [as in the file]")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="Folder to follow on this machine. [as in the file]")
@click.option("--replace", is_flag=True, help="Replace the existing tool of that name.")
@shared_options
def command(file: Path, name: str | None, source: Path | None, replace: bool, **options: Any) -> None:
    """Import a tool from a file written by `bunko export`.

    The whole file is read and checked first. The tool is added in one step: if anything goes wrong, the library stays
    unchanged. If the tool's folder does not exist on this machine, searches use the imported documents.

    \b
    Example:
      bunko import-pack api-docs.bunko
      bunko import-pack api-docs.bunko -n team-api -s ~/work/api/docs
    """
    shared = pop_shared_options(options)
    from bunko.interfaces.cli.status import format_size
    from bunko.interfaces.serialize import report_to_dict
    from bunko.interfaces.tools.toolsets import check_tool_name
    from bunko.library.open import remove_new_library_on_error
    from bunko.library.pack import open_pack

    # The pack is opened first: an unreadable one must not create a library.
    with (
        open_pack(file) as pack,
        shared.open() as library,
        remove_new_library_on_error(library),
        show_import_progress() as observer,
    ):
        check_tool_name(library, name or pack.tool.name)
        tool, report = library.import_pack(pack, name=name, source=source, replace_existing=replace, observer=observer)
        flags = shared.library_flags(library)
    source_exists = Path(tool.source).is_dir()
    if shared.as_json:
        fields = {"name": tool.name, "source": tool.source, "source_exists": source_exists, "active": tool.active}
        print_json(fields | {"bytes": pack.bytes, "made_by": pack.version} | report_to_dict(report))
        return
    counts = f"{format_count(report.added, 'document')}, {format_count(report.total_chunks, 'chunk')}"
    click.echo(
        replace_controls(
            f"Imported {tool.name}: {counts}, from {format_size(pack.bytes)}."
            f" Search it with: bunko search QUERY -n {shlex.quote(tool.name)}{flags}"
        )
    )
    for notice in report.notices:
        print_stderr(notice)
    if source_exists:
        print_stderr(f"Searches pick up changes in {tool.source} from now on.")
    else:
        update = f"bunko tool update -n {shlex.quote(tool.name)} -s DIR{flags}"
        print_stderr(
            f"{tool.source} does not exist on this machine: searches use the imported documents."
            f" Follow a folder with: {update}"
        )
