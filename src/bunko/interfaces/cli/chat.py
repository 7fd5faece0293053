"""The `bunko chat` command: a conversation about the library, at a terminal or in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from bunko.errors import BunkoError
from bunko.interfaces.cli.options import is_terminal, names_option, pop_shared_options, print_stderr, shared_options

if TYPE_CHECKING:
    from bunko.interfaces.cli.chat_session import ChatSession, ReadLine
    from bunko.library.library import Library

_NOTHING_FOUND_EXIT_CODE = 1  # as for bunko ask
_HISTORY_NAME = "questions"


@click.command()
@names_option("Answer only from this tool")
@click.option("--model", metavar="NAME", help="Chat model of the provider in the settings. [chat.model]")
@click.option("--resume", is_flag=True, help="Continue the last conversation.")
@click.option("--strict", is_flag=True, help="Leave out sentences that the sources do not support.")
@shared_options
def command(**options: Any) -> None:
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
    shared = pop_shared_options(options)
    if shared.as_json:
        raise click.UsageError("bunko chat has no JSON output; use bunko ask --json")
    with shared.open(create=shared.docs_dir is not None) as library:
        if not library.tools():
            raise BunkoError("The library is empty", hint="Add documents first: bunko add FOLDER")
        import anyio

        if not anyio.run(_run, library, options, shared.library_flags(library)):
            click.get_current_context().exit(_NOTHING_FOUND_EXIT_CODE)


async def _run(library: Library, options: dict[str, Any], library_flags: str) -> bool:
    """Hold the conversation; return whether any line of a pipe was answered."""
    from bunko.interfaces.chat.answering import open_answerer
    from bunko.interfaces.chat.consent import refuse
    from bunko.interfaces.chat.saved_chats import SavedChats, chat_folder
    from bunko.interfaces.chat.setup import build_chat_server
    from bunko.interfaces.cli.ask import mute_server_log, print_notice
    from bunko.interfaces.cli.chat_session import NO_MODEL, ChatSession, answer_lines
    from bunko.interfaces.cli.server_consent import ask_about_servers

    mute_server_log()
    is_interactive = sys.stdin.isatty() and is_terminal()
    folder = chat_folder(library.paths) if library.settings.chat.keep_history else None
    model = build_chat_server(library.settings, options["model"])
    if options["model"] and model is None:
        raise BunkoError("No chat provider is set", hint="Set chat.provider first: see docs/chat.md.")
    approve = ask_about_servers if is_interactive else refuse
    async with open_answerer(library, model, names=options["names"], approve=approve) as answerer:
        for problem in answerer.tools.problems:
            print_notice(problem)
        if model is None:
            print_notice(NO_MODEL)

        def build_session(read_line: ReadLine | None) -> ChatSession:
            chats = SavedChats(folder) if folder is not None else None
            session = ChatSession(
                library, answerer, strict=options["strict"], chats=chats, library_flags=library_flags,
                read_line=read_line,
            )  # fmt: skip
            if options["resume"]:
                _resume(session)
            return session

        if not is_interactive:
            return await answer_lines(build_session(None), sys.stdin) > 0
        from bunko.interfaces.cli.chat_prompt import ChatPrompt, converse

        prompt = ChatPrompt(folder / _HISTORY_NAME if folder is not None else None)
        await converse(build_session(prompt.ask_user), prompt)
    return True


def _resume(session: ChatSession) -> None:
    chats = session.chats.latest(1) if session.chats is not None else []
    if chats:
        session.resume(chats[0])
    else:
        print_stderr("There are no earlier conversations.")
