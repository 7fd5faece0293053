"""The `bunko help` command, and what bunko says at a terminal without a command."""

from __future__ import annotations

from collections.abc import Sequence

import click

from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import find_tool_names, replace_controls
from bunko.interfaces.text import format_count

_FIRST_STEPS = (
    ("bunko add ~/notes", "Add a folder, a memo file or a web page."),
    ('bunko search "release plan"', "Search all that you have added."),
    ("bunko connect claude-code", "Let an assistant search it."),
    ("bunko ui", "Search and manage it in your browser."),
)
_MAX_TOOLS = 5


@click.command(name="help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(ctx: click.Context, names: Sequence[str]) -> None:
    """Explain a command.

    \b
    Example:
      bunko help search
      bunko help tool add
    """
    context = ctx.find_root()
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.info_name} has no commands of its own", context)
        _, subcommand, _ = group.resolve_command(context, [name])
        assert subcommand is not None  # an unknown name is an error above
        context = click.Context(subcommand, parent=context, info_name=name)
    click.echo(context.get_help())


def start_page(ctx: click.Context) -> str:
    """Return the commands to begin with, the others by group, and what the library holds."""
    from bunko.interfaces.cli.main import GROUPS

    formatter = ctx.make_formatter()
    formatter.write_text("Search your own documents in Japanese and English, on your own machine.")
    with formatter.section("Begin"):
        formatter.write_dl(_FIRST_STEPS, col_max=40)
    with formatter.section("Commands"):
        other_groups = [(title, names) for title, names in GROUPS.items() if title != "Begin"]
        formatter.write_dl([(translate(title), ", ".join(names)) for title, names in other_groups])
    formatter.write_paragraph()
    if tools := _describe_tools():
        formatter.write_text(tools)
    formatter.write_text("`bunko help COMMAND` explains a command, `bunko --help` lists them all.")
    return formatter.getvalue().rstrip("\n")


def _describe_tools() -> str:
    """Return a sentence that names the tools of the library; empty if there are none."""
    names = find_tool_names()
    if not names:
        return ""
    more = ", …" if len(names) > _MAX_TOOLS else ""
    return replace_controls(
        f"Your library has {format_count(len(names), 'tool')}: {', '.join(names[:_MAX_TOOLS])}{more}."
    )
