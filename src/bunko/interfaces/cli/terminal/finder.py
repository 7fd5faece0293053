"""Draw the screen of `bunko find`: an input line, a list of hits and a preview of the chosen one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples, fragment_list_width
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    Dimension,
    DynamicContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import create_output
from prompt_toolkit.styles import Style

from bunko.errors import BunkoError
from bunko.interfaces.cli.terminal.printing import escape_controls, replace_controls
from bunko.interfaces.text import format_count
from bunko.messages import translate
from bunko.search.passages import split_author

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from bunko.types import Answer, Hit

Fragments = StyleAndTextTuples
_Result = TypeVar("_Result")

# From this width on, a list and a preview side by side are both wide enough to read.
_MIN_SIDE_BY_SIDE_COLUMNS = 100
_LINES_PER_HIT, _HITS_PER_PAGE = 2, 10
# Searches and previews: a slow one must not hold up those of later keys.
_THREADS = 4
# How long to wait for the rest of an escape sequence before a lone Esc counts.
_ESCAPE_SECONDS = 0.1
_KEYS = " Enter open   ↑↓ choose   Ctrl-Y print citation   Esc leave"
_STYLE = Style.from_dict(
    {
        "citation": "bold ansicyan",
        "chosen": "reverse",
        "detail": "ansibrightblack",
        "tool": "ansimagenta",
        "title": "bold",
        "number": "ansibrightblack",
        "context": "ansibrightblack",
        "hit": "",
        "match": "bold ansiyellow",
        "error": "ansired",
        "status": "ansigreen",
        "rule": "ansibrightblack",
    }
)


class Finder:
    """Search in the background while a person types, and show the newest answer only."""

    def __init__(
        self,
        search: Callable[[str], Answer],
        preview: Callable[[Hit, str], Fragments],
        open_hit: Callable[[Hit, str], None],
        *,
        query: str = "",
        delay: float = 0.0,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._search, self._preview, self._open_hit, self._delay = search, preview, open_hit, delay
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="bunko-find")
        self._search_number = self._preview_number = 0  # of the newest request: answers to earlier ones are dropped
        self._answer_query = ""
        self._preview_fragments: Fragments = []
        self._status: tuple[str, str] = ("", "")
        self._output = output or create_output(always_prefer_tty=True)
        self.hits: list[Hit] = []
        self.chosen = 0
        self.buffer = Buffer(document=Document(query), multiline=False, on_text_changed=lambda _: self._start_search())
        self.app: Application[Hit | None] = Application(
            layout=self._build_layout(),
            key_bindings=self._build_keys(),
            style=_STYLE,
            full_screen=True,
            input=input or create_input(always_prefer_tty=True),
            output=self._output,
        )
        self.app.ttimeoutlen = _ESCAPE_SECONDS

    @property
    def query(self) -> str:
        """What has been typed."""
        return self.buffer.text.strip()

    @property
    def status(self) -> str:
        """What the line below the input says."""
        return self._status[1]

    def run(self) -> Hit | None:
        """Show the screen until the person leaves; return the hit whose citation is to be printed."""
        return asyncio.run(self.run_async())

    async def run_async(self) -> Hit | None:
        """Show the screen, as `run` does."""
        try:
            return await self.app.run_async(pre_run=self._start_search)
        finally:
            self._search_number += 1
            self._executor.shutdown(cancel_futures=True)

    # Searching

    def _start_search(self) -> None:
        self._search_number += 1
        self.app.create_background_task(self._run_search(self._search_number, self.query))

    async def _run_search(self, number: int, query: str) -> None:
        if not query:
            self._show_answer(query, [], ("class:detail", translate("Type to search.")))
            return
        await asyncio.sleep(self._delay)
        if number != self._search_number:
            return
        self._set_status("class:detail", translate("Searching…"))
        try:
            answer = await self._run_in_thread(lambda: self._search(query) if number == self._search_number else None)
        except BunkoError as error:
            if number == self._search_number:
                self._show_answer(query, [], ("class:error", _error_text(error)))
            return
        if answer is None or number != self._search_number:
            return
        count = translate(format_count(len(answer.hits), "hit") if answer.hits else "No hits.")
        notice = f"   {translate(answer.notices[0])}" if answer.notices else ""
        self._show_answer(query, answer.hits, ("class:status", replace_controls(count + notice)))

    def _show_answer(self, query: str, hits: list[Hit], status: tuple[str, str]) -> None:
        self._answer_query, self.hits, self.chosen = query, hits, 0
        self._set_status(*status)
        self._start_preview()

    def _choose(self, position: int) -> None:
        if self.hits:
            self.chosen = min(max(position, 0), len(self.hits) - 1)
            self._start_preview()

    def _start_preview(self) -> None:
        self._preview_number += 1
        if not self.hits:
            self._preview_fragments = []
            return
        hit = self.hits[self.chosen]
        self.app.create_background_task(self._run_preview(self._preview_number, hit, self._answer_query))

    async def _run_preview(self, number: int, hit: Hit, query: str) -> None:
        try:
            fragments = await self._run_in_thread(
                lambda: self._preview(hit, query) if number == self._preview_number else None
            )
        except BunkoError as error:
            fragments = [("class:error", _error_text(error))]
        if fragments is not None and number == self._preview_number:
            self._preview_fragments = fragments
            self.app.invalidate()

    async def _run_in_thread(self, function: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

    def _set_status(self, style: str, text: str) -> None:
        self._status = style, text
        self.app.invalidate()

    # Keys

    def _build_keys(self) -> KeyBindings:
        keys = KeyBindings()

        def choose_with(steps: int, *names: str) -> None:
            for name in names:
                keys.add(name)(lambda _: self._choose(self.chosen + steps))

        choose_with(-1, "up", "c-p")
        choose_with(1, "down", "c-n")
        choose_with(-_HITS_PER_PAGE, "pageup")
        choose_with(_HITS_PER_PAGE, "pagedown")

        @keys.add("enter")
        def open_chosen(event: KeyPressEvent) -> None:
            if self.hits:
                event.app.create_background_task(self._open(self.hits[self.chosen]))

        @keys.add("c-y")
        def print_citation(event: KeyPressEvent) -> None:
            if self.hits:
                event.app.exit(result=self.hits[self.chosen])

        # At once, although Esc also begins the keys that are typed with Alt.
        @keys.add("escape", eager=True)
        @keys.add("c-c")
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        return keys

    async def _open(self, hit: Hit) -> None:
        def open_or_report() -> tuple[str, str]:
            try:
                self._open_hit(hit, self._answer_query)
            except BunkoError as error:
                return "class:error", _error_text(error)
            return "class:status", translate(f"Opened {escape_controls(hit.citation)}")

        self._set_status(*await run_in_terminal(open_or_report))

    # The screen

    def _build_layout(self) -> Layout:
        input_line = Window(
            BufferControl(self.buffer, input_processors=[BeforeInput("> ", style="class:title")]), height=1
        )
        hit_list = Window(
            FormattedTextControl(
                self._list_fragments,
                show_cursor=False,
                get_cursor_position=lambda: Point(0, self.chosen * _LINES_PER_HIT),
            ),
            height=Dimension(min=_LINES_PER_HIT, weight=1),
            width=Dimension(weight=1),
        )
        preview = Window(
            FormattedTextControl(lambda: self._preview_fragments, show_cursor=False),
            wrap_lines=True,
            height=Dimension(weight=1),
            width=Dimension(weight=1),
        )
        side_by_side = VSplit([hit_list, Window(width=1, char="│", style="class:rule"), preview])
        stacked = HSplit([hit_list, Window(height=1, char="─", style="class:rule"), preview])

        def body() -> AnyContainer:
            return side_by_side if self._is_wide() else stacked

        root = HSplit(
            [
                input_line,
                Window(FormattedTextControl(lambda: [self._status]), height=1),
                DynamicContainer(body),
                Window(FormattedTextControl([("class:detail", translate(_KEYS))]), height=1),
            ]
        )
        return Layout(root, focused_element=input_line)

    def _is_wide(self) -> bool:
        return self._output.get_size().columns >= _MIN_SIDE_BY_SIDE_COLUMNS

    def _list_fragments(self) -> Fragments:
        columns = self._output.get_size().columns
        width = (columns // 2 if self._is_wide() else columns) - 2
        several_tools = len({hit.tool for hit in self.hits}) > 1
        fragments: Fragments = []
        for index, hit in enumerate(self.hits):
            chosen = " class:chosen" if index == self.chosen else ""
            tool = f"  {escape_controls(hit.tool)}" if several_tools else ""
            citation = shorten_middle(escape_controls(hit.citation), max(10, width - _cell_width(tool)))
            detail = " › ".join(split_author(hit)[1]) or hit.title or hit.text[:200]
            more = f"   {translate(f'{hit.more_in_document} more in this document')}" if hit.more_in_document else ""
            fragments += [
                (f"class:citation{chosen}", f" {citation}"),
                (f"class:tool{chosen}", tool),
                ("", "\n"),
                ("class:detail", f"   {' '.join(replace_controls(detail).split())}{more}"),
                ("", "\n" if index < len(self.hits) - 1 else ""),
            ]
        return fragments


def shorten_middle(text: str, width: int) -> str:
    """Return a text that is at most so many cells wide, with an ellipsis in its middle if it is cut."""
    if _cell_width(text) <= width:
        return text
    head, tail = "", ""
    # The end of a citation names the file and its lines, so that it keeps more.
    for char in text:
        if _cell_width(head + char) > (width - 1) // 3:
            break
        head += char
    for char in reversed(text):
        if _cell_width(head) + 1 + _cell_width(char + tail) > width:
            break
        tail = char + tail
    return f"{head}…{tail}"


def _cell_width(text: str) -> int:
    return fragment_list_width([("", text)])


def _error_text(error: BunkoError) -> str:
    return replace_controls(translate(f"{error.message}. {error.hint}" if error.hint else error.message))
