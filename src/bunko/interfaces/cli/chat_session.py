"""Hold a conversation at a terminal or in a pipe: ask, show the checked answers, keep them, and obey commands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from bunko.errors import BunkoError
from bunko.interfaces.answers import answer_text, is_answered, visible_sources
from bunko.interfaces.chat.answering import Answerer, format_call
from bunko.interfaces.chat.saved_chats import SavedChat, SavedChats, SavedExchange
from bunko.interfaces.cli.ask import print_answer, print_notice, print_notices
from bunko.interfaces.cli.draft import show_draft
from bunko.interfaces.cli.import_report import show_search_progress
from bunko.interfaces.cli.interrupts import cancel_on_interrupt
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import escape_controls, print_stderr, replace_controls

if TYPE_CHECKING:
    from bunko.library.library import Library
    from bunko.types.answers import AnswerSource, CheckedAnswer

NO_MODEL = (
    "No chat model is set, so answers are quoted from your documents. "
    "Set chat.provider and chat.model to use one: see docs/chat.md."
)
_MAX_CALL_CHARS = 2000
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
        read_line: ReadLine | None = None,  # None: nobody can be asked
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
            _print_wrapped(f"> {' '.join(exchange.question.split())}\n\n{exchange.shown}\n")

    def open_source(self, number: int) -> None:
        """Open a source as `bunko open` does."""
        from bunko.interfaces.cli.locations import find_document
        from bunko.interfaces.cli.programs import open_command, run_program

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


def _print_wrapped(text: str) -> None:
    """Print lines that may be longer than those of the terminal, which would break them within words."""
    from bunko.interfaces.cli.rows import wrap_rows

    width = shutil.get_terminal_size().columns
    for line in replace_controls(text).split("\n"):
        click.echo("\n".join(line[row.start : row.end] for row in wrap_rows(line, width)))


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
