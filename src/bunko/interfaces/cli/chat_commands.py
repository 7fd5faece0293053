"""The commands of `bunko chat`, which begin with a slash."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError
from bunko.interfaces.chat.conversation import Permission
from bunko.interfaces.chat.private_files import write_private
from bunko.interfaces.chat.saved_chats import to_markdown
from bunko.interfaces.chat.setup import build_chat_server
from bunko.interfaces.cli.ask import print_notice
from bunko.interfaces.cli.chat_session import NO_MODEL, print_error
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import escape_controls, say

if TYPE_CHECKING:
    from bunko.interfaces.cli.chat_session import ChatSession

_SLASHES = ("/", "／")  # the second is what an input method for Japanese types
_LISTED_CHATS = 10
_PERMISSIONS: dict[Permission, str] = {"yes": "yes", "ask": "asks first", "no": "no"}


class EndOfChat(Exception):
    """The user ends the conversation."""


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """A command: what may follow its name, what it does, and the function that does it."""

    argument: str
    help: str
    run: Callable[[ChatSession, str], Awaitable[None] | None]


def is_command(line: str) -> bool:
    """Return whether a line is a command and not a question."""
    return line.startswith(_SLASHES)


async def run_command(session: ChatSession, line: str) -> None:
    """Run the command of a line; an error is printed, and the conversation goes on."""
    name, _, argument = line[1:].strip().partition(" ")
    command = COMMANDS.get(name.lower())
    try:
        if command is None:
            close = difflib.get_close_matches(name.lower(), COMMANDS, 1)
            hint = f"Did you mean /{close[0]}?" if close else "/help lists the commands."
            raise BunkoError(f"There is no command /{escape_controls(name)[:40]}", hint=hint)
        result = command.run(session, argument.strip())
        if inspect.isawaitable(result):
            await result
    except BunkoError as error:
        print_error(error)


def _help(session: ChatSession, argument: str) -> None:
    from bunko.interfaces.cli.tables import Column, print_message, show_table

    rows = [(f"/{name} {command.argument}".rstrip(), translate(command.help)) for name, command in COMMANDS.items()]
    show_table([Column("command", "keep"), Column("what it does", "wrap")], rows)
    print_message("Alt+Enter or \\ at the end begins a new line. Ctrl-C cancels an answer, Ctrl-D ends.")


async def _tools(session: ChatSession, argument: str) -> None:
    from bunko.interfaces.cli.tables import Column, show_table

    manager, conversation = session.answerer.tools.manager, session.answerer.conversation
    if manager is None or conversation is None:
        say(NO_MODEL)
        return
    tools = await manager.tools()
    rows = [
        (tool.name, tool.server, translate(_PERMISSIONS[conversation.permission(tool)]), tool.tool.description)
        for tool in tools
    ]
    show_table(
        [Column("tool", "keep"), Column("server", "cut", 2), Column("may be called", "keep"), Column("description")],
        rows,
    )
    for sentence in (*manager.announcements(), *(f"{problem}." for problem in manager.problems.values())):
        print_notice(sentence)


def _model(session: ChatSession, argument: str) -> None:
    model = session.answerer.model
    if not argument:
        say(f"The model is {model.label}." if model is not None else NO_MODEL)
        return
    server = build_chat_server(session.library.settings, argument)
    if server is None:
        raise BunkoError("No chat provider is set", hint="Set chat.provider first: see docs/chat.md.")
    session.answerer.use_model(server)
    say(f"The model is {server.label} from now on.")


def _sources(session: ChatSession, argument: str) -> None:
    from bunko.interfaces.cli.render_answer import show_sources

    answer = session.last_answer
    sources = answer.sources if answer is not None else list(session.sources.values())
    if not sources:
        say("There are no sources yet.")
        return
    show_sources(sources, {tool.name: tool for tool in session.library.tools()})


def _open(session: ChatSession, argument: str) -> None:
    number = argument.strip("[]［］ ")
    if not number.isdecimal():
        raise BunkoError("The number of a source is missing", hint="Type it as in: /open 2")
    session.open_source(int(number))


def _clear(session: ChatSession, argument: str) -> None:
    session.start_again()
    say("A new conversation begins.")


def _save(session: ChatSession, argument: str) -> None:
    if not argument:
        raise BunkoError("The name of a file is missing", hint="Type it as in: /save answers.md")
    if not session.chat.exchanges:
        raise BunkoError("There is nothing to save yet", hint="Ask a question first.")
    path = Path(argument).expanduser()
    if path.exists():
        raise BunkoError(f"{path} exists", hint="Choose another name.")
    try:
        write_private(path, to_markdown(session.chat.exchanges))
    except OSError as error:
        raise BunkoError(
            f"{path} cannot be written: {error.strerror}", hint="Choose another name or folder."
        ) from error
    say(f"Saved to {path}.")


def _strict(session: ChatSession, argument: str) -> None:
    session.strict = not session.strict
    say(
        "Sentences that the sources do not support are left out from now on."
        if session.strict
        else "Sentences that the sources do not support are shown and marked from now on."
    )


def _resume(session: ChatSession, argument: str) -> None:
    from bunko.interfaces.cli.tables import Column, number, show_table

    chats = session.chats.latest(_LISTED_CHATS) if session.chats is not None else []
    if not chats:
        say("There are no earlier conversations.")
    elif not argument:
        rows = [(str(position), chat.started_at, chat.title) for position, chat in enumerate(chats, 1)]
        show_table([number("number"), Column("begun", "keep"), Column("first question")], rows)
        say("Resume one as in: /resume 1")
    elif argument.isdecimal() and 1 <= int(argument) <= len(chats):
        session.resume(chats[int(argument) - 1])
    else:
        raise BunkoError(f"There is no conversation {argument[:20]}", hint="/resume lists them.")


def _exit(session: ChatSession, argument: str) -> None:
    raise EndOfChat


COMMANDS = {
    "help": ChatCommand("", "List the commands.", _help),
    "sources": ChatCommand("", "List the passages that were read for the last answer.", _sources),
    "open": ChatCommand("N", "Open a source in your editor or browser.", _open),
    "strict": ChatCommand("", "Leave out what the sources do not support, or show it again.", _strict),
    "tools": ChatCommand("", "List the tools, their servers, and which may be called.", _tools),
    "model": ChatCommand("[NAME]", "Show the model, or use another one of the same provider.", _model),
    "clear": ChatCommand("", "Begin a new conversation.", _clear),
    "resume": ChatCommand("[N]", "List earlier conversations, or continue one.", _resume),
    "save": ChatCommand("FILE", "Save the conversation as Markdown.", _save),
    "exit": ChatCommand("", "End the conversation.", _exit),
}
