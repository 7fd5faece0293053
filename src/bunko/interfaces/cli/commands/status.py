"""The `bunko status` command: show what a library or a tool contains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bunko.interfaces.cli import terminal
from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, shared_options
from bunko.interfaces.cli.terminal.printing import is_terminal, print_json, replace_controls
from bunko.interfaces.cli.terminal.status_text import details_lines, status_lines
from bunko.interfaces.serialize_state import LibraryFields, details_to_dict
from bunko.library.admin.status import LibraryStatus

if TYPE_CHECKING:
    from bunko.library.admin.status import ToolDetails

_PAGE_SIZE = 20


@click.command()
@click.option(
    "--name",
    "-n",
    metavar="TOOL",
    help="Show details of this tool: documents, chunks and changes.",
    shell_complete=complete_tool_names,
)
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="Page of the document list. [1]")
@click.option("--page-size", type=click.IntRange(1, 1000), metavar="N", help=f"Documents per page. [{_PAGE_SIZE}]")
@shared_options
def command(name: str | None, page: int | None, page_size: int | None, shared: SharedOptions) -> None:
    """Show what is indexed.

    A tool's size is the bytes of its texts, terms, chunks, vectors and derived files, without the overhead of SQLite.
    With --name, the source is checked for changes, but nothing is imported.

    \b
    Example:
      bunko status --docs-dir ~/notes
      bunko status -n documents --page 2 --docs-dir ~/notes
    """
    if name is None and (page is not None or page_size is not None):
        raise click.UsageError("--page and --page-size require --name")
    with shared.open(create=False) as library:
        if name is None:
            result: LibraryStatus | ToolDetails = library.status()
        else:
            result = library.tool_status(name, page=page or 1, page_size=page_size or _PAGE_SIZE)
        flags = shared.library_flags(library)
    if shared.as_json:
        print_json(LibraryFields.fill(result) if isinstance(result, LibraryStatus) else details_to_dict(result))
    elif is_terminal():
        if isinstance(result, LibraryStatus):
            terminal.render.show_status(result, flags)
        else:
            terminal.render.show_details(result, flags)
    else:
        lines = status_lines(result, flags) if isinstance(result, LibraryStatus) else details_lines(result, flags)
        click.echo(replace_controls("\n".join(lines)))
