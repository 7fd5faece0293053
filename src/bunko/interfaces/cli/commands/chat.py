"""The `bunko chat` command: a conversation about the library, at a terminal or in a pipe."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import click

from bunko.errors import BunkoError
from bunko.interfaces.cli.options import SharedOptions, gather_options, names_option, shared_options

_NOTHING_FOUND_EXIT_CODE = 1  # as for bunko ask


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What `bunko chat` was asked for."""

    names: tuple[str, ...]
    model: str | None
    resume: bool
    strict: bool


@click.command()
@names_option("Answer only from this tool")
@click.option("--model", metavar="NAME", help="Chat model of the provider in the settings. [chat.model]")
@click.option("--resume", is_flag=True, help="Continue the last conversation.")
@click.option("--strict", is_flag=True, help="Leave out sentences that the sources do not support.")
@gather_options(ChatOptions)
@shared_options
def command(options: ChatOptions, shared: SharedOptions) -> None:
    """Talk about your documents, with sources.

    Questions are answered as by `bunko ask`, and later ones may refer to earlier answers. `/help` lists the commands:
    open a source, list the tools, use another model, resume an earlier conversation. Alt+Enter begins a new line,
    Ctrl-C cancels an answer, Ctrl-D ends.

    In a pipe, each line is a question. The exit code is then 1 if none of them got an answer.

    \b
    Example:
      bunko chat
      bunko chat -n notes --resume
      bunko chat < questions.txt
    """
    if shared.as_json:
        raise click.UsageError("bunko chat has no JSON output; use bunko ask --json")
    from bunko.interfaces.cli.commands.chat_session import hold_conversation  # loads what asks chat models

    with shared.open(create=shared.docs_dir is not None) as library:
        if not library.tools():
            raise BunkoError("The library is empty", hint="Add documents first: bunko add FOLDER")
        if not anyio.run(hold_conversation, library, options, shared.library_flags(library)):
            click.get_current_context().exit(_NOTHING_FOUND_EXIT_CODE)
