"""`bunko import-pack`: a file made by `bunko export` in, its tool in the library out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from bunko.interfaces.cli.import_report import show_import_progress
from bunko.interfaces.cli.options import (
    PATH,
    format_count,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)


@click.command(name="import-pack")
@click.argument("file", type=PATH)
@click.option("--name", "-n", metavar="NAME", help="What to call the tool here. [as in the file]")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="The folder it follows here. [as in the file]")
@click.option("--replace", is_flag=True, help="Replace the tool of that name.")
@shared_options
def command(file: Path, name: str | None, source: Path | None, replace: bool, **options: Any) -> None:
    """Take in a tool that `bunko export` wrote, ready to be searched.

    The file is read to its end and checked first. The tool is there in one step: until then, and if anything goes
    wrong, the library stays as it was. If its folder is not on this machine, searches answer from what came in.

    \b
    Example:
      bunko import-pack api-docs.bunko
      bunko import-pack api-docs.bunko -n team-api -s ~/work/api/docs
    """
    asked = pop_shared_options(options)
    from bunko.interfaces.cli.status import format_size
    from bunko.interfaces.serialize import report_to_dict as payload
    from bunko.library.open import remove_new_library_on_error
    from bunko.library.pack import open_pack

    # The pack first: a library must not come to be for one that cannot be read.
    with (
        open_pack(file) as packed,
        asked.open() as library,
        remove_new_library_on_error(library),
        show_import_progress() as shown,
    ):
        tool, report = library.import_pack(
            packed, name=name, source=source, replace_existing=replace, progress=shown, waiting=print_stderr
        )
        place = asked.library_flags(library)
    there = Path(tool.source).is_dir()
    if asked.as_json:
        about = {"name": tool.name, "source": tool.source, "source_exists": there, "active": tool.active}
        print_json(about | {"bytes": packed.bytes, "made_by": packed.version} | payload(report))
        return
    click.echo(
        replace_controls(
            f"Took in {tool.name}: {format_count(report.added, 'document')}, {format_count(report.total_chunks, 'chunk')},"  # noqa: E501
            f" from {format_size(packed.bytes)}."
            f" Search it with: bunko search QUERY -n {shlex.quote(tool.name)}{place}"
        )
    )
    for notice in report.notices:
        print_stderr(notice)
    if there:
        print_stderr(f"Searches follow {tool.source} from now on.")
    else:
        follow = f"bunko tool update -n {shlex.quote(tool.name)} -s DIR{place}"
        print_stderr(
            f"{tool.source} is not on this machine: searches answer from what came in. Follow a folder with: {follow}"
        )
