"""The `bunko open` command: open a document in the editor, with the default program or in the browser."""

from __future__ import annotations

import os
import shlex
from typing import Any

import click

from bunko.interfaces.cli.options import (
    complete_tool_names,
    pop_shared_options,
    print_json,
    print_stderr,
    shared_options,
)


@click.command()
@click.argument("location", metavar="CITATION|PATH|URL|ID")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--print", "print_only", is_flag=True, help="Print the command instead of running it.")
@shared_options
def command(location: str, name: str | None, print_only: bool, **options: Any) -> None:
    """Open a document in your editor at the line, or in the browser.

    Give what `bunko get` takes. A text is opened in $VISUAL or $EDITOR at the line that is named, any other file with
    the default program of your desktop, and a collected page in $BROWSER or the default browser.

    \b
    Example:
      bunko open guide/setup.md:L12-L30
      bunko open manual.pdf:p12 -n manuals
      bunko open ~/notes/todo.md:7 --print
    """
    from bunko.interfaces.cli.locations import find_document
    from bunko.interfaces.cli.programs import open_command, run_program

    shared = pop_shared_options(options)
    with shared.open(create=shared.docs_dir is not None) as library:
        target = find_document(library, location, name)
        arguments = open_command(target, os.environ, library_flags=shared.library_flags(library))
    if print_only:
        if shared.as_json:
            print_json({"command": arguments})
        else:
            click.echo(shlex.join(arguments))
        return
    if target.place:
        print_stderr(f"The passage is at {target.place}.")
    run_program(arguments, is_browser=bool(target.url))
