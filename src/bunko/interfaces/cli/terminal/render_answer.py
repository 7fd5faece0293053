"""Render an answer for a terminal with Rich: a draft while a model writes it, then sentences, remarks and sources."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.style import Style
from rich.text import Text

from bunko.interfaces.answers import (
    ADDED_NOTE,
    NOTHING_FOUND,
    citation_marks,
    introduction,
    readable_sentences,
    remarks,
    split_end,
    visible_sources,
)
from bunko.interfaces.chat.answering import format_call
from bunko.interfaces.chat.conversation import ChatEvents, Confirm
from bunko.interfaces.cli.terminal.printing import escape_controls, is_terminal, replace_controls
from bunko.interfaces.cli.terminal.tables import (
    Row,
    cell_width,
    new_console,
    print_message,
    shorten_path,
    shorten_text,
    wrap_rows,
)
from bunko.interfaces.result_fields import Tools, source_link
from bunko.messages import translate

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bunko.types.answers import AnswerSource, CheckedAnswer, CheckedSentence

_STATUS_COLORS = {"partly": "yellow", "unsupported": "red"}
_MIN_LOCATION_CELLS = 20
_BOLD = Style(bold=True)
_NEAREST_SOURCES = 3
_NOTHING_BUT = "The library does not say. The nearest passages:"
_HEADING_MARK = re.compile(r"#+[ \t]*")
_INLINE_MARKDOWN = re.compile(r"\*\*(?P<strong>\S[^*\n]*?)\*\*|`[^`\n]+`")


def show_answer(answer: CheckedAnswer, tools: Tools, *, strict: bool = False) -> None:
    """Show an answer, then its numbered sources."""
    console = new_console()
    sentences = readable_sentences(answer, strict=strict)
    if not sentences:
        nearest = answer.sources[:_NEAREST_SOURCES]
        print_message(_NOTHING_BUT if nearest else NOTHING_FOUND, "yellow", console=console)
        show_sources(nearest, tools, console=console)
        return
    print_message(introduction(answer, strict=strict), "dim", console=console)
    console.print()
    for paragraph in _paragraphs(sentences):
        for row in wrap_rows(paragraph.plain, max(20, console.width)) or [Row(0, 0)]:
            console.print(paragraph[row.start : row.end], no_wrap=True, overflow="ellipsis")
    sources = visible_sources(answer, strict=strict)
    if sources:
        console.print()
    show_sources(sources, tools, console=console)
    if any(citation.added for sentence in sentences for citation in sentence.citations):
        print_message(ADDED_NOTE, "dim", console=console)


def show_sources(sources: Iterable[AnswerSource], tools: Tools, *, console: Console | None = None) -> None:
    """Show numbered sources, as links that open them."""
    console = console or new_console()
    for source in sources:
        number = f"[{source.number}] "
        heading = shorten_text(
            escape_controls(source.headings[-1] if source.headings else source.title), console.width // 3
        )
        room = console.width - len(number) - cell_width(heading) - 3
        location = shorten_path(escape_controls(source.location), max(room, _MIN_LOCATION_CELLS))
        link = source_link("" if source.server else source.tool, source.uri, tools)
        row = Text.assemble((number, "bold"), (location, Style(bold=True, color="cyan", link=link or None)))
        if heading:
            row.append(f"   {heading}", "magenta")
        console.print(row, no_wrap=True, overflow="ellipsis")


def _paragraphs(sentences: list[CheckedSentence]) -> Iterator[Text]:
    """Yield the sentences as they were laid out, line by line."""
    line = Text()
    for sentence in sentences:
        before = sentence.before.replace("\t", " ")
        if "\n" in before:
            if line.plain.strip():
                yield line
                yield from [Text()] * (before.count("\n") > 1)
            line = Text()
            before = before.rpartition("\n")[2]
        is_heading = "#" in before
        line.append(_HEADING_MARK.sub("", before))
        color = _STATUS_COLORS.get(sentence.status)
        style = Style(color=color, bold=is_heading or None)
        text, space, end = split_end(replace_controls(sentence.text))
        # Append a sentence with its **strong words** in bold, but not those in code.
        position = 0
        for match in _INLINE_MARKDOWN.finditer(text) if not text.startswith(("```", "~~~")) else ():
            line.append(text[position : match.start()], style)
            line.append(match["strong"] or match[0], style + _BOLD if match["strong"] else style)
            position = match.end()
        line.append(text[position:], style)
        if marks := citation_marks(sentence):
            line.append(f"{space}{marks}", "cyan")
            space = " "
        if notes := "; ".join(map(translate, remarks(sentence))):
            line.append(f"{space}({replace_controls(notes)})", Style(color=color or "yellow", italic=True))
        line.append(end, style)
    if line.plain.strip():
        yield line


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
    console = Console(stderr=True, highlight=False)
    draft = Draft(console)
    with Live(draft, console=console, transient=True, refresh_per_second=_REFRESHES_PER_SECOND) as live:
        yield draft.events(live, confirm)
