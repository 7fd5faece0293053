"""The `bunko get` and `bunko open` commands: print a document that a person names, or open it where it is read."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bunko.errors import UnknownName
from bunko.interfaces.cli.options import SharedOptions, complete_tool_names, gather_options, shared_options
from bunko.interfaces.cli.terminal.printing import (
    escape_controls,
    is_terminal,
    print_json,
    print_stderr,
    replace_controls,
)
from bunko.interfaces.programs import open_command, run_program
from bunko.interfaces.serialize import readable_address
from bunko.library.tools.assistant_names import assistant_name
from bunko.messages import translate
from bunko.search.reading import ReadRequest, outline, read_part

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.library.reading.find_document import FoundDocument
    from bunko.search.reading import Reading

# As git sets it: show colours, leave what fits the screen on it, and do not clear it.
_LESS_OPTIONS = "-FRX"


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Which part of a document is wanted."""

    lines: str | None
    section: str | None
    around: int
    outline: bool


@click.command()
@click.argument("location", metavar="CITATION|PATH|URL|ID")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--lines", metavar="RANGE", help="Only these lines: 12 or 12-30.")
@click.option("--section", metavar="HEADING", help="Only the section of this heading.")
@click.option(
    "--around", type=click.IntRange(0, 100_000), default=0, metavar="N", help="Further lines before and after. [0]"
)
@click.option("--outline", is_flag=True, help="List the headings and their lines instead.")
@gather_options(PartOptions)
@shared_options
def command(location: str, name: str | None, options: PartOptions, shared: SharedOptions) -> None:
    """Print a document, or the lines that a citation names.

    Give what a search printed, such as guide/setup.md:L12-L30 or manual.pdf:p12; a path on this machine, with a line
    (path:12) or a heading (path#heading); the URL of a collected page; the id of a memo; or a [[wiki link]]. On a
    terminal the text is shown in $PAGER.

    \b
    Example:
      bunko get guide/setup.md:L12-L30 --around 10
      bunko get ~/notes/guide/setup.md --section Installation
      bunko get setup --outline
    """
    if sum(map(bool, (options.lines, options.section, options.outline))) > 1:
        raise click.UsageError("--lines, --section and --outline cannot be combined")
    with shared.open(create=shared.docs_dir is not None) as library:
        target = find_document(library, location, name)
    if options.outline:
        _print_outline(target, as_json=shared.as_json)
        return
    request = ReadRequest(
        target.uri,
        lines=options.lines or "",
        section=options.section or "",
        context_lines=options.around,
    )
    reading = read_part(target.tool.name, target.document, request, target.citation)
    if shared.as_json:
        print_json(_reading_to_dict(target, reading))
    elif is_terminal():
        facts = [
            translate(f"{reading.citation} of {reading.total_lines} lines"),
            reading.place,
            " ".join([reading.date[:16].replace("T", " "), *(f"#{tag}" for tag in reading.tags)]).strip(),
        ]
        details = "   ".join(escape_controls(fact) for fact in facts if fact)
        title = f"{_bold(escape_controls(reading.title))}   {details}" if reading.title else _bold(details)
        _page(f"{title}\n\n{replace_controls(reading.text)}")
    else:
        click.echo(reading.text, color=True)  # as it is: by default, click removes escape sequences


def _print_outline(target: FoundDocument, *, as_json: bool) -> None:
    headings = outline(target.document)
    if as_json:
        fields = [{"heading": heading.title, "level": heading.level, "line": heading.line} for heading in headings]
        print_json({"tool": target.tool.name, "file_path": target.uri, "title": target.title, "headings": fields})
        return
    if not headings:
        print_stderr(f"{target.uri} has no headings.")
    rows = [(str(heading.line), f"{'#' * heading.level} {escape_controls(heading.title)}") for heading in headings]
    if is_terminal() and rows:
        width = max(len(line) for line, _ in rows)
        _page("\n".join(f"{line:>{width}}  {title}" for line, title in rows))
    else:
        for row in rows:
            click.echo("\t".join(row))


def _bold(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def _page(text: str) -> None:
    """Show a text in the pager that is set, or in less."""
    os.environ.setdefault("LESS", _LESS_OPTIONS)
    os.environ.setdefault("LV", "-c")
    click.echo_via_pager(text)


def _reading_to_dict(target: FoundDocument, reading: Reading) -> dict[str, object]:
    result: dict[str, object] = {
        "tool": reading.tool,
        "file_path": reading.uri,
        "absolute_path": str(target.file) if target.file else "",
        "citation": reading.citation,
        "place": reading.place,
        "line_start": reading.first_line,
        "line_end": reading.last_line,
        "total_lines": reading.total_lines,
        "title": reading.title,
        "date": reading.date,
        "tags": list(reading.tags),
        "media_type": reading.media_type,
        "text": reading.text,
        "hash": reading.hash,
        "uri": readable_address(assistant_name(target.tool), reading.uri),
    }
    return {name: value for name, value in result.items() if value or name in ("title", "date", "tags", "text")}


# What may follow a path: lines, a page or cells after a colon, or a heading after a hash.
_SUFFIX_START = re.compile(r"[:#]")


def find_document(library: Library, location: str, tool: str | None) -> FoundDocument:
    """Return the document of a citation, path, URL, memo id or wiki link, and say if other tools have it too.

    A path is first understood as a search prints it, then as a path on this machine; one that begins with a dot, a
    tilde or a slash is a path on this machine.
    """
    path = _path_on_this_machine(location)
    try:
        target = library.documents.find(path if path and is_local_path(location) else location, tool=tool)
    except UnknownName:
        if path is None:
            raise
        try:
            target = library.documents.find(path, tool=tool)
        except UnknownName as error:
            if not Path(path).exists():
                raise
            raise UnknownName(
                f"{path} is not indexed",
                hint="No tool has its folder, or the file is left out."
                " See what is indexed with: bunko status, bunko ls",
            ) from error
    if target.other_tools:
        other_names = ", ".join(target.other_tools)
        print_stderr(f"{target.uri} of {target.tool.name} is meant. Choose another tool with -n: {other_names}")
    return target


def is_local_path(text: str) -> bool:
    """Return whether a text can only be a path on this machine: absolute, or from this folder or a home."""
    return text in (".", "..") or text.startswith(("./", "../", ".\\", "..\\", "~")) or Path(text).is_absolute()


def _path_on_this_machine(location: str) -> str | None:
    """Return a location that begins with a path of an existing file, with that path made absolute; else None."""
    ends = [len(location), *(match.start() for match in reversed(list(_SUFFIX_START.finditer(location))))]
    for end in ends:
        path = Path(location[:end]).expanduser() if location[:end] else None
        try:
            if path is not None and path.is_file():
                return f"{path.resolve()}{location[end:]}"
        except (OSError, ValueError, RuntimeError):  # too long for a path, or the home of no user
            continue
    return None


@click.command()
@click.argument("location", metavar="CITATION|PATH|URL|ID")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--print", "print_only", is_flag=True, help="Print the command instead of running it.")
@shared_options
def open_document(location: str, name: str | None, print_only: bool, shared: SharedOptions) -> None:
    """Open a document in your editor at the line, or in the browser.

    Give what `bunko get` takes. A text is opened in $VISUAL or $EDITOR at the line that is named, any other file with
    the default program of your desktop, and a collected page in $BROWSER or the default browser.

    \b
    Example:
      bunko open guide/setup.md:L12-L30
      bunko open manual.pdf:p12 -n manuals
      bunko open ~/notes/todo.md:7 --print
    """
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
