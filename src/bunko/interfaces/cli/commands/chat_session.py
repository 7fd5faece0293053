"""A conversation about the library, at a terminal or in a pipe."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import os
import shutil
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bunko.errors import BunkoError
from bunko.interfaces.answers import answer_text, is_answered, visible_sources
from bunko.interfaces.chat.answering import Answerer, format_call, open_answerer
from bunko.interfaces.chat.consent import describe_server, refuse
from bunko.interfaces.chat.conversation import Permission
from bunko.interfaces.chat.private_files import write_private
from bunko.interfaces.chat.saved_chats import SavedChat, SavedChats, SavedExchange, chat_folder, to_markdown
from bunko.interfaces.chat.server_config import ServerConfig
from bunko.interfaces.chat.server_connection import mute_server_log
from bunko.interfaces.chat.setup import build_chat_server
from bunko.interfaces.cli.commands.get import find_document
from bunko.interfaces.cli.terminal.answers import print_answer
from bunko.interfaces.cli.terminal.columns import Column, number
from bunko.interfaces.cli.terminal.notices import print_notice, print_notices
from bunko.interfaces.cli.terminal.printing import (
    confirm,
    escape_controls,
    is_terminal,
    print_stderr,
    replace_controls,
    say,
)
from bunko.interfaces.cli.terminal.progress import show_search_progress
from bunko.interfaces.cli.terminal.render_answer import show_draft, show_sources
from bunko.interfaces.cli.terminal.tables import print_message, show_table, wrap_rows
from bunko.interfaces.programs import open_command, run_program
from bunko.messages import translate

if TYPE_CHECKING:
    from bunko.interfaces.cli.commands.chat import ChatOptions
    from bunko.library.library import Library
    from bunko.types.answers import AnswerSource, CheckedAnswer

NO_MODEL = (
    "No chat model is set, so answers are quoted from your documents. "
    "Set chat.provider and chat.model to use one, for example: bunko config set chat.provider ollama"
)
NO_PROVIDER_HINT = "Choose openrouter, openai, lmstudio or ollama, for example: bunko config set chat.provider ollama"
_MAX_CALL_CHARS = 2000
_HISTORY_NAME = "questions"
_RECALLED_EXCHANGES = 3  # shown when a conversation is resumed
ReadLine = Callable[[str], Awaitable[str]]  # shows a prompt and returns what was typed


class ChatSession:
    """A conversation with its settings: whether it is strict, where it is kept, who can be asked about calls."""

    def __init__(
        self,
        library: Library,
        answerer: Answerer,
        *,
        strict: bool = False,
        chats: SavedChats | None = None,  # None: nothing is kept
        library_flags: str = "",
        read_line: ReadLine | None = None,  # None: there is no user to ask
    ) -> None:
        self.library, self.answerer, self.strict, self.chats = library, answerer, strict, chats
        self.library_flags, self._read_line = library_flags, read_line
        self.chat = SavedChat("") if chats is None else chats.new()
        self.sources: dict[int, AnswerSource] = {}  # by the numbers that the reader has seen last
        self.last_answer: CheckedAnswer | None = None
        self._always_allowed: set[str] = set()
        self._known_notices: set[str] = set()

    async def ask(self, question: str) -> bool:
        """Answer a question, unless Ctrl-C cancels it; return whether the library answers it."""
        answer: CheckedAnswer | None = None
        with cancel_on_interrupt() as scope:
            try:
                with show_search_progress() as observer:
                    observer = replace(observer, is_cancelled=lambda: scope.cancel_called)
                    await self.answerer.prepare(question, observer)
                with show_draft(self._confirm if self._read_line is not None else None) as events:
                    answer = await self.answerer.ask(question, events)
            except BunkoError as error:
                print_error(error)
        if answer is None:
            if scope.cancel_called:
                print_stderr("Cancelled.")
            return False
        self._keep(answer)
        self._show(answer)
        return is_answered(answer, strict=self.strict)

    def _show(self, answer: CheckedAnswer) -> None:
        # What is wrong with a server is said once, not with every answer.
        print_notices(self.library, [notice for notice in answer.notices if notice not in self._known_notices])
        self._known_notices.update(self._standing_notices())
        print_answer(answer, {tool.name: tool for tool in self.library.tools()}, strict=self.strict)
        if answer.model and self._read_line is not None:
            cost = f", cost {answer.cost:.4f}" if answer.cost else ""
            print_stderr(f"{answer.prompt_tokens:,} tokens read, {answer.answer_tokens:,} written{cost}")

    def _standing_notices(self) -> list[str]:
        manager = self.answerer.tools.manager
        return [f"{problem}." for problem in manager.problems.values()] if manager is not None else []

    def _keep(self, answer: CheckedAnswer) -> None:
        self.last_answer = answer
        self.sources |= {source.number: source for source in answer.sources}
        conversation, shown = self.answerer.conversation, self._plain(answer)
        if answer.model and conversation is not None:
            latest = conversation.exchanges[-1]
            exchange = SavedExchange(answer.question, latest.answer, shown, latest.first_source, answer.model)
            self.chat.sources |= {source.number: source for source in answer.sources}
        else:
            exchange = SavedExchange(answer.question, answer_text(answer), shown, max(self.chat.sources, default=0) + 1)
        self.chat.exchanges.append(exchange)
        if self.chats is not None:
            self.chats.save(self.chat)

    def _plain(self, answer: CheckedAnswer) -> str:
        """Return an answer as it is printed into a pipe."""
        sources = visible_sources(answer, strict=self.strict)
        lines = [f"- [{source.number}] {escape_controls(source.location)}" for source in sources]
        text = replace_controls(answer_text(answer, strict=self.strict, translate=translate))
        return "\n".join([text, *(["", *lines] if lines else [])])

    async def _confirm(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Ask the user whether a tool that changes something may be called."""
        if name in self._always_allowed:
            return True
        if self._read_line is None:
            return False
        call = escape_controls(format_call(name, arguments, max_chars=_MAX_CALL_CHARS))
        reply = (await self._read_line(translate(f"May bunko call {call}? [y/N/always]") + " ")).strip().lower()
        if reply == "always":
            self._always_allowed.add(name)
        return reply in ("y", "yes", "always", "はい")

    def start_again(self) -> None:
        """Begin a new conversation."""
        self.answerer.start_again()
        self.chat = SavedChat("") if self.chats is None else self.chats.new()
        self.sources, self.last_answer = {}, None
        self._always_allowed.clear()

    def resume(self, chat: SavedChat) -> None:
        """Continue an earlier conversation, and show its end."""
        self.start_again()
        self.chat = chat
        self.sources = dict(chat.sources)
        if self.answerer.conversation is not None:
            exchanges = [exchange.exchange() for exchange in chat.exchanges]
            self.answerer.conversation.restore(exchanges, chat.sources.values())
        recalled = chat.exchanges[-_RECALLED_EXCHANGES:] if self._read_line is not None else []  # not into a pipe
        for exchange in recalled:
            width = shutil.get_terminal_size().columns
            for line in replace_controls(f"> {' '.join(exchange.question.split())}\n\n{exchange.shown}\n").split("\n"):
                click.echo("\n".join(line[row.start : row.end] for row in wrap_rows(line, width)))

    def open_source(self, number: int) -> None:
        """Open a source as `bunko open` does."""
        source = self.sources.get(number)
        if source is None:
            numbers = ", ".join(map(str, sorted(self.sources))) or translate("none yet")
            raise BunkoError(f"There is no source {number}", hint=f"Sources: {numbers}.")
        if source.server:
            raise BunkoError(
                f"{source.citation} is on the MCP server {source.server}", hint="Only documents of the library open."
            )
        target = find_document(self.library, source.citation, source.tool or None)
        arguments = open_command(target, os.environ, library_flags=self.library_flags)
        run_program(arguments, is_browser=bool(target.url))


def print_error(error: BunkoError) -> None:
    """Print an error that does not end the conversation."""
    print_notice(f"{translate('Error')}: {translate(error.message)}")
    if error.hint:
        print_notice(error.hint)


async def answer_lines(session: ChatSession, lines: Iterable[str]) -> int:
    """Answer questions from a pipe, one on each line; return how many of them got an answer."""
    answered = 0
    for line in lines:
        if question := line.strip():
            click.echo(replace_controls(f"> {question}\n"))
            answered += await session.ask(question)
            click.echo()
    return answered


@contextmanager
def cancel_on_interrupt() -> Iterator[anyio.CancelScope]:
    """Cancel the block at Ctrl-C; whether that happened is `cancel_called` of the scope."""
    with anyio.CancelScope() as scope:
        if threading.current_thread() is not threading.main_thread():  # signals go to the main thread only
            yield scope
            return
        loop = asyncio.get_running_loop()
        previous = signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(scope.cancel))
        try:
            yield scope
        finally:
            signal.signal(signal.SIGINT, previous)


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
    rows = [(f"/{name} {command.argument}".rstrip(), translate(command.help)) for name, command in COMMANDS.items()]
    show_table([Column("command", "keep"), Column("what it does", "wrap")], rows)
    print_message("Alt+Enter or \\ at the end begins a new line. Ctrl-C cancels an answer, Ctrl-D ends.")


async def _tools(session: ChatSession, argument: str) -> None:
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
        raise BunkoError("No chat provider is set", hint=NO_PROVIDER_HINT)
    session.answerer.use_model(server)
    say(f"The model is {server.label} from now on.")


def _sources(session: ChatSession, argument: str) -> None:
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


async def hold_conversation(library: Library, options: ChatOptions, library_flags: str) -> bool:
    """Converse at a terminal, or answer the lines of a pipe; return whether any line of a pipe was answered."""
    mute_server_log()
    is_interactive = sys.stdin.isatty() and is_terminal()
    folder = chat_folder(library.paths) if library.settings.chat.keep_history else None
    model = build_chat_server(library.settings, options.model)
    if options.model and model is None:
        raise BunkoError("No chat provider is set", hint=NO_PROVIDER_HINT)
    approve = ask_about_servers if is_interactive else refuse
    async with open_answerer(library, model, names=options.names, approve=approve) as answerer:
        for problem in answerer.tools.problems:
            print_notice(problem)
        if model is None:
            print_notice(NO_MODEL)

        def build_session(read_line: ReadLine | None) -> ChatSession:
            chats = SavedChats(folder) if folder is not None else None
            session = ChatSession(
                library, answerer, strict=options.strict, chats=chats, library_flags=library_flags,
                read_line=read_line,
            )  # fmt: skip
            if options.resume:
                if earlier := chats.latest(1) if chats is not None else []:
                    session.resume(earlier[0])
                else:
                    print_stderr("There are no earlier conversations.")
            return session

        if not is_interactive:
            return await answer_lines(build_session(None), sys.stdin) > 0
        from bunko.interfaces.cli.commands.chat_prompt import ChatPrompt, converse

        prompt = ChatPrompt(folder / _HISTORY_NAME if folder is not None else None)
        await converse(build_session(prompt.ask_user), prompt)
    return True


def ask_about_servers(path: Path, servers: Sequence[ServerConfig]) -> bool:
    """Show what a list in the current folder runs, and ask whether it may be used."""
    print_notice(f"{escape_controls(str(path))} names MCP servers. Using them runs these commands:")
    for server in servers:
        command, *details = [escape_controls(line) for line in describe_server(server)]
        print_stderr(f"  {escape_controls(server.name)}: {command}")
        for detail in details:
            print_stderr(f"    {detail}")
    return confirm("Do you trust this file and want to use them?")
