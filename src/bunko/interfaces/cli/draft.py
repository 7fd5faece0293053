"""Show at a terminal what a chat model does and writes, until its answer has been checked and replaces this."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bunko.interfaces.chat.answering import format_call
from bunko.interfaces.chat.conversation import ChatEvents, Confirm
from bunko.interfaces.cli.language import translate
from bunko.interfaces.cli.options import is_terminal, replace_controls

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_REFRESHES_PER_SECOND = 10
_MAX_STATUS_CHARS = 200
_MAX_ROWS, _MAX_CHARS = 12, 4000  # of the draft, the last ones


class Draft:
    """The words that a model has written so far, dimmed and marked as not checked, below what it is doing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text, self._status = "", translate("Thinking…")

    def events(self, live: Live, confirm: Confirm | None) -> ChatEvents:
        """Return what lets a conversation write into this draft; it makes room for questions to the user."""

        async def ask_user(name: str, arguments: Mapping[str, Any]) -> bool:
            if confirm is None:
                return False
            live.stop()
            try:
                return await confirm(name, arguments)
            finally:
                live.start()

        return ChatEvents(self._add, self._show_call, self._restart, ask_user if confirm else None)

    def _add(self, text: str) -> None:
        self._text += text

    def _restart(self) -> None:
        self._text = ""

    def _show_call(self, name: str, arguments: Mapping[str, Any]) -> None:
        query = arguments.get("query")
        if isinstance(query, str) and len(arguments) == 1:
            self._status = translate(f"Searching: {' '.join(query.split())[:_MAX_STATUS_CHARS]}")
        else:
            self._status = translate(f"Calling {format_call(name, arguments)}")

    def __rich__(self) -> RenderableType:
        """Return the draft as it is now."""
        from rich.text import Text

        from bunko.interfaces.cli.rows import wrap_rows

        width = max(20, self._console.width)
        text = replace_controls(self._text[-_MAX_CHARS:]).strip()
        status = translate("Not checked yet:") if text else replace_controls(self._status)
        rows = [text[row.start : row.end] for row in wrap_rows(text, width)] if text else []
        rows = rows[-min(_MAX_ROWS, max(1, self._console.height - 3)) :]
        return Text("\n".join([status, *rows]), style="dim", no_wrap=True, overflow="ellipsis")


@contextmanager
def show_draft(confirm: Confirm | None = None) -> Iterator[ChatEvents]:
    """Show what a model writes while the block runs, on stderr and at a terminal only; it is erased at the end."""
    if not (sys.stderr.isatty() and is_terminal()):
        yield ChatEvents(confirm=confirm)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    draft = Draft(console)
    with Live(draft, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND) as live:
        yield draft.events(live, confirm)
