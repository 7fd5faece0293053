"""A group of commands whose help and errors are the same with every version of click."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click

from bunko.interfaces.cli.help_formatter import first_sentence
from bunko.interfaces.cli.terminal.printing import replace_controls
from bunko.messages import translate

_MIN_SIMILARITY = 0.7


class CommandGroup(click.Group):
    """A group whose help has the whole first sentence of each command; click would cut it to one line."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the arguments in the usage, with a command in brackets if the group works without one."""
        subcommand = "[COMMAND] [ARGS]..." if self.invoke_without_command else "COMMAND [ARGS]..."
        return ["[OPTIONS]", subcommand]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(command)) for name, command in commands if command])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; a group that needs a command and gets none prints its help."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown name, suggest the closest ones."""
        name = args[0]
        is_option = name.startswith("-")
        if not is_option and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            matches = get_close_matches(name, self.list_commands(ctx), cutoff=_MIN_SIMILARITY)
            raise click.UsageError(f"No such command {name!r}.{suggest(matches)}", ctx)
        return super().resolve_command(ctx, args)


def show_click_error(error: click.ClickException) -> None:
    """Print an error of click to stderr, with the usage of the command if that is at fault."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = translate(f"Try '{error.ctx.command_path} --help' for help.")
        click.echo(f"{error.ctx.get_usage()}\n{hint}\n", err=True)
    # The message about a value comes after the option that it was given to.
    is_value = isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
    text = describe_click_error(error)
    head, separator, message = text.partition(": ") if is_value else ("", "", text)
    click.echo(replace_controls(f"{translate('Error')}: {translate(head)}{separator}{translate(message)}"), err=True)


def describe_click_error(error: click.ClickException) -> str:
    """Return what is wrong, in English."""
    if isinstance(error, click.NoSuchOption):
        return f"No such option {error.option_name!r}.{suggest(error.possibilities or ())}"
    return error.format_message()


def suggest(names: Sequence[str]) -> str:
    """Return the end of a message that suggests what was meant; empty without names."""
    quoted = ", ".join(map(repr, sorted(names)))
    if len(names) > 1:
        return f" (Did you mean one of: {quoted}?)"
    return f" Did you mean {quoted}?" if names else ""
