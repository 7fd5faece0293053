"""The `bunko get` command: print a document, or the lines that a citation names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import (
    complete_tool_names,
    escape_controls,
    is_terminal,
    pop_shared_options,
    print_json,
    print_stderr,
    replace_controls,
    shared_options,
)

if TYPE_CHECKING:
    from bunko.library.find_document import FoundDocument
    from bunko.search.reading import Reading

# As git sets it: show colours, leave what fits the screen on it, and do not clear it.
_LESS_OPTIONS = "-FRX"


@click.command()
@click.argument("location", metavar="CITATION|PATH|URL|ID")
@click.option("--name", "-n", metavar="TOOL", help="Only this tool.", shell_complete=complete_tool_names)
@click.option("--lines", metavar="RANGE", help="Only these lines: 12 or 12-30.")
@click.option("--section", metavar="HEADING", help="Only the section of this heading.")
@click.option(
    "--around", type=click.IntRange(0, 100_000), default=0, metavar="N", help="Further lines before and after. [0]"
)
@click.option("--outline", is_flag=True, help="List the headings and their lines instead.")
@shared_options
def command(location: str, **options: Any) -> None:
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
    from bunko.interfaces.cli.locations import find_document
    from bunko.search.reading import ReadRequest, read_part

    shared = pop_shared_options(options)
    if sum(map(bool, (options["lines"], options["section"], options["outline"]))) > 1:
        raise click.UsageError("--lines, --section and --outline cannot be combined")
    with shared.open(create=shared.docs_dir is not None) as library:
        target = find_document(library, location, options["name"])
    if options["outline"]:
        _print_outline(target, as_json=shared.as_json)
        return
    request = ReadRequest(
        target.uri,
        lines=options["lines"] or "",
        section=options["section"] or "",
        context_lines=options["around"],
    )
    reading = read_part(target.tool.name, target.document, request, target.citation)
    if shared.as_json:
        print_json(_reading_to_dict(target, reading))
    elif is_terminal():
        _page(f"{_title_line(reading)}\n\n{replace_controls(reading.text)}")
    else:
        click.echo(reading.text, color=True)  # as it is: by default, click removes escape sequences


def _print_outline(target: FoundDocument, *, as_json: bool) -> None:
    from bunko.search.reading import outline

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


def _title_line(reading: Reading) -> str:
    facts = [
        translate(f"{reading.citation} of {reading.total_lines} lines"),
        reading.place,
        " ".join([reading.date[:16].replace("T", " "), *(f"#{tag}" for tag in reading.tags)]).strip(),
    ]
    details = "   ".join(escape_controls(fact) for fact in facts if fact)
    if not reading.title:
        return _bold(details)
    return f"{_bold(escape_controls(reading.title))}   {details}"


def _bold(text: str) -> str:
    return text if "NO_COLOR" in os.environ else click.style(text, bold=True)


def _page(text: str) -> None:
    """Show a text in the pager that is set, or in less."""
    os.environ.setdefault("LESS", _LESS_OPTIONS)
    os.environ.setdefault("LV", "-c")
    click.echo_via_pager(text)


def _reading_to_dict(target: FoundDocument, reading: Reading) -> dict[str, Any]:
    from bunko.interfaces.serialize import readable_address
    from bunko.library.assistant_names import assistant_name

    result: dict[str, Any] = {
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
