"""Read questions at a terminal: several lines, with history, completion of commands and input methods."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from bunko.interfaces.cli.commands.chat_session import COMMANDS, EndOfChat, is_command, run_command
from bunko.interfaces.cli.terminal.printing import print_stderr
from bunko.messages import translate

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from bunko.interfaces.cli.commands.chat_session import ChatSession

_log = logging.getLogger("bunko.chat")

_PROMPT, _CONTINUATION = "> ", "  "
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse ansibrightblack", "prompt": "bold"})
# How long to wait for the rest of Alt+Enter, which a terminal sends as Esc and Enter.
_ESCAPE_SECONDS = 0.1


class ChatPrompt:
    """The input line of a conversation."""

    def __init__(self, history_file: Path | None, *, input: Input | None = None, output: Output | None = None) -> None:
        self.status = ""  # what the line below the input says
        self._lines: PromptSession[str] = PromptSession(
            history=_open_history(history_file),
            multiline=True,
            key_bindings=_build_keys(),
            prompt_continuation=_CONTINUATION,
            completer=_CommandCompleter(),
            complete_while_typing=Condition(lambda: is_command(self._lines.default_buffer.text)),
            bottom_toolbar=lambda: self.status,
            style=_STYLE,
            input=input,
            output=output,
        )
        self._lines.app.ttimeoutlen = _ESCAPE_SECONDS
        self._answers: PromptSession[str] = PromptSession(input=input, output=output)

    async def read(self) -> str:
        """Return what was typed; raise EOFError at Ctrl-D and KeyboardInterrupt at Ctrl-C."""
        return await self._lines.prompt_async([("class:prompt", _PROMPT)])

    async def ask_user(self, question: str) -> str:
        """Return the answer to a question; Ctrl-C and Ctrl-D answer nothing. It is not part of the history."""
        try:
            return await self._answers.prompt_async(question)
        except (EOFError, KeyboardInterrupt):
            return ""


def _open_history(path: Path | None) -> History:
    """Return the history in a file that only its owner may read; without a file, one that ends with the process."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        _log.warning("Questions are not kept: %s", error)
        return InMemoryHistory()
    return FileHistory(str(path))


def _build_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def submit(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":  # as in a shell
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _CommandCompleter(Completer):
    """Completes the names of commands."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if is_command(text) and " " not in text:
            for name, command in COMMANDS.items():
                if name.startswith(text[1:].lower()):
                    meta = translate(command.help)
                    yield Completion(f"/{name}", start_position=-len(text), display_meta=meta)


async def converse(session: ChatSession, prompt: ChatPrompt) -> None:
    """Answer what is typed until the user ends the conversation."""
    while True:
        model = session.answerer.model
        prompt.status = f" {model.label if model is not None else translate('no model')}   {translate(_KEYS)}"
        try:
            line = (await prompt.read()).strip()
            if is_command(line):
                await run_command(session, line)
            elif line:
                await session.ask(line)
                print_stderr("")
        except KeyboardInterrupt:
            continue
        except (EOFError, EndOfChat):
            return


_KEYS = "/help   Alt+Enter new line   Ctrl-D end"
