"""The `bunko import-pack` command: import a tool from an exported file."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.audit import record_command
from bunko.interfaces.cli.import_report import show_import_progress
from bunko.interfaces.cli.options import (
    PATH,
    confirm,
    pop_shared_options,
    print_json,
    print_stderr,
    say,
    shared_options,
)
from bunko.interfaces.text import format_count

if TYPE_CHECKING:
    from bunko.library.pack import Pack
    from bunko.types import Report, Tool


@click.command(name="import-pack")
@click.argument("file", type=PATH)
@click.option("--name", "-n", metavar="NAME", help="Name of the tool in this library. [as in the file]")
@click.option("--description", "-d", metavar="TEXT", help="What the documents are about. [as in the file]")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="Folder to follow from now on. [none]")
@click.option("--replace", is_flag=True, help="Replace the existing tool of that name.")
@click.option("--yes", "-y", is_flag=True, help="Accept the name and description in the file without confirmation.")
@shared_options
def command(
    file: Path,
    name: str | None,
    description: str | None,
    source: Path | None,
    replace: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Import a tool from a file written by `bunko export`.

    The whole file is read and checked first. The tool is added in one step: if anything goes wrong, the library stays
    unchanged. The tool follows no folder unless you choose one with --source.

    Assistants read the name and the description of every tool. Those in the file are shown and must be confirmed;
    where nobody can be asked, use --yes, or give your own with --name and --description.

    \b
    Example:
      bunko import-pack api-docs.bunko
      bunko import-pack api-docs.bunko -n team-api -d "Our API for users" -s ~/work/api/docs
    """
    shared = pop_shared_options(options)
    from bunko.interfaces.serialize import report_to_dict
    from bunko.interfaces.text import format_size
    from bunko.interfaces.tools.toolsets import check_tool_name
    from bunko.library.open import remove_new_library_on_error
    from bunko.library.pack import open_pack

    # The pack is opened first: an unreadable or unwanted one must not create a library.
    with open_pack(file) as pack:
        if not yes and (name is None or description is None):
            _confirm_import(pack, name, description)
        with shared.open() as library, remove_new_library_on_error(library), show_import_progress() as observer:
            check_tool_name(library, name or pack.tool.name)
            names = [name or pack.tool.name]
            with record_command(library, "import-pack", tools=names, arguments={"replace": replace}) as record:
                tool, report = library.packs.import_pack(
                    pack,
                    name=name,
                    description=description,
                    source=source,
                    replace_existing=replace,
                    observer=observer,
                )
                record.add_report(report)
            flags = shared.library_flags(library)
    if shared.as_json:
        fields = {
            "name": tool.name,
            "description": tool.description,
            "source": tool.source,
            "active": tool.active,
            "bytes": pack.bytes,
            "made_by": pack.version,
        }
        print_json(fields | report_to_dict(report))
        return
    _print_result(tool, report, format_size(pack.bytes), flags)


def _print_result(tool: Tool, report: Report, size: str, flags: str) -> None:
    counts = f"{format_count(report.added, 'document')}, {format_count(report.total_chunks, 'chunk')}"
    say(
        f"Imported {tool.name}: {counts}, from {size}."
        f" Search it with: bunko search QUERY -n {shlex.quote(tool.name)}{flags}"
    )
    for notice in report.notices:
        print_stderr(notice)
    if tool.source:
        print_stderr(f"Searches pick up changes in {tool.source} from now on.")
    else:
        update = f"bunko tool update -n {shlex.quote(tool.name)} -s DIR{flags}"
        print_stderr(f"It follows no folder. Follow one with: {update}")


def _confirm_import(pack: Pack, name: str | None, description: str | None) -> None:
    """Show what assistants would read about the tool, and raise an error unless the user agrees."""
    from bunko.errors import SettingsError

    name, description = name or pack.tool.name, description or pack.tool.description
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingsError(
            f"Assistants would read this name and description from the file: {name!r}, {description!r}",
            hint="Accept them with --yes, or give your own with --name and --description.",
        )
    counts = f"{format_count(pack.documents, 'document')}, {format_count(pack.chunks, 'chunk')}"
    print_stderr(f"name:         {name}")
    print_stderr(f"description:  {description}")
    print_stderr(f"contents:     {counts}")
    if not confirm("Assistants read this name and description. Import the tool?"):
        raise click.ClickException("Nothing was imported")
