"""The `bunko help` and `bunko completion` commands, and what bunko says at a terminal without a command."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.shell_completion import get_completion_class

from bunko.interfaces.cli.main import GROUPS, bunko
from bunko.interfaces.cli.options import SharedOptions, find_tool_names
from bunko.interfaces.cli.terminal.printing import print_json, replace_controls
from bunko.interfaces.text import format_count
from bunko.messages import translate

FIRST_STEPS = (
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
    formatter = ctx.make_formatter()
    formatter.write_text("Search your own documents in Japanese and English, on your own machine.")
    with formatter.section("Begin"):
        formatter.write_dl(FIRST_STEPS, col_max=40)
    with formatter.section("Commands"):
        other_groups = [(title, names) for title, names in GROUPS.items() if title != "Begin"]
        formatter.write_dl([(translate(title), ", ".join(names)) for title, names in other_groups])
    formatter.write_paragraph()
    if names := find_tool_names(SharedOptions()):
        more = ", …" if len(names) > _MAX_TOOLS else ""
        tools = f"{format_count(len(names), 'tool')}: {', '.join(names[:_MAX_TOOLS])}{more}"
        formatter.write_text(replace_controls(f"Your library has {tools}."))
    formatter.write_text("`bunko help COMMAND` explains a command, `bunko --help` lists them all.")
    return formatter.getvalue().rstrip("\n")


SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def completion(shell: str, as_json: bool) -> None:
    """Print a script that completes commands in your shell.

    \b
    To install it permanently, run one of these and open a new terminal:
      bash  echo 'eval "$(bunko completion bash)"' >> ~/.bashrc     (bash 4.4 or newer)
      zsh   echo 'eval "$(bunko completion zsh)"' >> ~/.zshrc       (after compinit)
      fish  bunko completion fish > ~/.config/fish/completions/bunko.fish

    \b
    Example:
      eval "$(bunko completion bash)"
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    script = completion_class(bunko, {}, "bunko", "_BUNKO_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
