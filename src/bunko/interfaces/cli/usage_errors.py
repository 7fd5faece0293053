"""Show what is wrong with a command line, as click does, in the user's language."""

from __future__ import annotations

import click

from bunko.interfaces.cli.language import language, translate
from bunko.interfaces.cli.options import replace_controls


def show_click_error(error: click.ClickException) -> None:
    """Print an error of click to stderr, with the usage of the command if that is at fault."""
    if language() == "en" or isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        hint = translate(f"Try '{error.ctx.command_path} --help' for help.")
        click.echo(f"{error.ctx.get_usage()}\n{hint}\n", err=True)
    click.echo(replace_controls(f"{translate('Error')}: {_describe(error)}"), err=True)


def _describe(error: click.ClickException) -> str:
    """Return the message of an error; that of a value comes after the option that it was given to."""
    is_value = isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter)
    head, separator, message = error.format_message().partition(": ") if is_value else ("", "", error.format_message())
    return f"{translate(head)}{separator}{translate(message)}"
