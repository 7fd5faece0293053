"""The `bunko export` and `bunko import-pack` commands: a tool in one file, for another machine."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.errors import SettingsError
from bunko.interfaces.cli.commands.audit import record_command
from bunko.interfaces.cli.options import PATH, SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.printing import confirm, print_json, print_stderr, say
from bunko.interfaces.cli.terminal.progress import show_import_progress
from bunko.interfaces.serialize import report_to_dict
from bunko.interfaces.text import format_count, format_size
from bunko.interfaces.tools.toolsets import check_tool_name
from bunko.library.open import remove_new_library_on_error
from bunko.library.packs.pack import open_pack

if TYPE_CHECKING:
    from bunko.library.packs.pack import Pack
    from bunko.types import Report, Tool


@click.command()
@click.option("--name", "-n", metavar="NAME", help="Tool name. [the only tool]", shell_complete=complete_tool_names)
@click.option("--output", "-o", type=PATH, metavar="FILE", help="File to write, or its folder. [NAME.bunko]")
@shared_options
def export(name: str | None, output: Path | None, shared: SharedOptions) -> None:
    """Export a tool to one file, to import it on another machine.

    The file contains the tool's definition, documents and index: the other machine does not need the folder and
    embeds nothing again. It contains no settings and no keys, but it contains all texts: share it only with people
    who may read the folder.

    \b
    Example:
      bunko export -n api-docs
      bunko export -n api-docs -o /media/stick
      bunko import-pack api-docs.bunko
    """
    with shared.open(create=False, read_only=True) as library:
        tool, path, size = library.packs.export_tool(name, output or Path())
        totals = library.stats.totals(tool.id)
    if shared.as_json:
        print_json(
            {
                "name": tool.name,
                "file": str(path),
                "bytes": size,
                "documents": totals.documents,
                "chunks": totals.chunks,
                "vectors": totals.vectors,
            }
        )
    else:
        say(
            f"Wrote {path}: {format_count(totals.documents, 'document')}, {format_count(totals.chunks, 'chunk')},"
            f" {format_size(size)}. Import it on another machine with: bunko import-pack {shlex.quote(path.name)}"
        )


@click.command(name="import-pack")
@click.argument("file", type=PATH)
@click.option("--name", "-n", metavar="NAME", help="Name of the tool in this library. [as in the file]")
@click.option("--description", "-d", metavar="TEXT", help="What the documents are about. [as in the file]")
@click.option("--source", "-s", type=PATH, metavar="DIR", help="Folder to follow from now on. [none]")
@click.option("--replace", is_flag=True, help="Replace the existing tool of that name.")
@click.option("--yes", "-y", is_flag=True, help="Accept the name and description in the file without confirmation.")
@shared_options
def import_pack(
    file: Path,
    name: str | None,
    description: str | None,
    source: Path | None,
    replace: bool,
    yes: bool,
    shared: SharedOptions,
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
