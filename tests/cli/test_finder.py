"""`bunko find` searches while a person types, shows the newest answer only, and opens what was chosen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from bunko.errors import QueryError
from bunko.interfaces.cli.commands.find import Session
from bunko.interfaces.cli.terminal.finder import Finder, shorten_middle
from bunko.interfaces.cli.terminal.tables import cell_width
from bunko.types import Answer, Hit
from tests.conftest import Opener, Run

UP, DOWN, ENTER, ESCAPE, CTRL_Y = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x19"
MOST_SECONDS = 30


class Screen(DummyOutput):
    """A terminal of a given size that draws nothing."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._size = Size(rows, columns)

    def get_size(self) -> Size:
        return self._size


class User:
    """Types into a finder and sees what it draws."""

    def __init__(self, finder: Finder, keys: PipeInput) -> None:
        self.finder, self._keys = finder, keys
        self._drawn = asyncio.Event()
        finder.app.after_render += lambda _: self._drawn.set()

    def type(self, text: str) -> None:
        self._keys.send_text(text)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the screen shows something."""
        async with asyncio.timeout(MOST_SECONDS):
            while not condition():
                self._drawn.clear()
                await self._drawn.wait()

    def rows(self) -> list[str]:
        """Return what the screen shows, row by row."""
        screen = self.finder.app.renderer.last_rendered_screen
        if screen is None:
            return []
        size = self.finder.app.output.get_size()
        return [
            "".join(screen.data_buffer[row][column].char for column in range(size.columns)).rstrip()
            for row in range(size.rows)
        ]

    def shows(self, text: str) -> bool:
        return any(text in row for row in self.rows())


@contextmanager
def finder_with_keys(session: Any, *, columns: int = 80, **options: Any) -> Iterator[tuple[Finder, PipeInput]]:
    with create_pipe_input() as keys:
        yield (
            Finder(session.search, session.preview, session.open, input=keys, output=Screen(columns), **options),
            keys,
        )


def use(session: Any, script: Callable[[User], Awaitable[None]], **options: Any) -> Hit | None:
    """Let a person use a finder, and return what it returns."""

    async def run() -> Hit | None:
        with finder_with_keys(session, **options) as (finder, keys):
            user = User(finder, keys)
            running = asyncio.create_task(finder.run_async())
            await script(user)
            async with asyncio.timeout(MOST_SECONDS):
                return await running

    return asyncio.run(run())


@pytest.fixture
def session(notes: Path, open_docs: Opener) -> Session:
    return Session(open_docs(), None, "")


def test_typing_japanese_finds_and_shows_a_preview(session: Session) -> None:
    async def script(user: User) -> None:
        user.type("京都の寺")
        await user.until(lambda: user.shows("秋の京都で寺の庭を巡り"))
        rows = user.rows()
        assert rows[0] == "> 京都の寺"
        assert rows[2].startswith(" temple.md:L")
        assert "京都の寺" in rows[3]
        screen = user.finder.app.renderer.last_rendered_screen
        assert screen is not None
        cursor = screen.get_cursor_position(user.finder.app.layout.current_window)
        assert (cursor.x, cursor.y) == (2 + 2 * len("京都の寺"), 0), "an input method composes at the cursor"
        user.type(ESCAPE)

    assert use(session, script) is None


@pytest.mark.parametrize("columns", [80, 120])
def test_the_preview_is_below_or_beside_the_list_by_the_width(columns: int, session: Session) -> None:
    async def script(user: User) -> None:
        await user.until(lambda: user.shows("インストール手順") and user.shows("10 環境構築の方法"))
        first = next(row for row in user.rows() if "guide/setup.md:L" in row)
        assert ("│" in first) == (columns == 120)
        assert any(row.startswith("─" * columns) for row in user.rows()) == (columns == 80)
        user.type(ESCAPE)

    use(session, script, columns=columns, query="環境構築の方法")


def test_more_than_two_hits_of_a_document_come_after_those_of_others(docs: Path, open_docs: Opener) -> None:
    sections = (f"## 京都の寺 {number}\n\n京都の寺の庭を巡った。京都の寺に泊まった。\n" for number in range(6))
    (docs / "long.md").write_text("# 京都の寺\n\n" + "\n".join(sections), encoding="utf-8")
    (docs / "short.md").write_text(
        "# 旅\n\n奈良から京都へ行き、大きな寺を見て、その日のうちに帰った。\n", encoding="utf-8"
    )
    session = Session(open_docs(), None, "")
    uris = [hit.uri for hit in session.search("京都の寺").hits]
    assert uris[:3] == ["long.md", "long.md", "short.md"]
    assert uris.count("long.md") > 2, "but none is left out"


def test_arrows_choose_a_hit_and_ctrl_y_returns_it(session: Session) -> None:
    chosen = []

    async def script(user: User) -> None:
        user.type("環境")
        await user.until(lambda: len(user.finder.hits) > 1)
        chosen.append(user.finder.hits[1])
        user.type(UP + DOWN)
        await user.until(lambda: user.finder.chosen == 1 and user.shows(chosen[0].title or chosen[0].uri))
        user.type(DOWN * 20 + UP * 20 + DOWN + CTRL_Y)

    assert use(session, script) == chosen[0]


@pytest.mark.slow
def test_enter_opens_the_hit_at_its_line_and_the_screen_comes_back(
    session: Session, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "vim"
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> "{tmp_path / "arguments"}"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))

    async def script(user: User) -> None:
        user.type("インストール手順")
        await user.until(lambda: user.finder.hits)
        user.type(ENTER)
        await user.until(lambda: "Opened guide/setup.md:L" in user.finder.status)
        monkeypatch.setenv("VISUAL", "no-such-editor")
        user.type(ENTER)
        await user.until(lambda: user.shows("no program 'no-such-editor'"))
        user.type(ESCAPE)

    use(session, script)
    line, file = (tmp_path / "arguments").read_text().split("\n")[:2]
    assert file == str(notes / "guide" / "setup.md")
    assert int(line.removeprefix("+")) in range(1, 11)


class SlowSession:
    """A library that answers when a test lets it."""

    def __init__(self, slow_queries: set[str]) -> None:
        self.begun: list[str] = []
        self.release = threading.Event()
        self._slow_queries = slow_queries

    def search(self, query: str) -> Answer:
        self.begun.append(query)
        if query in self._slow_queries:
            assert self.release.wait(MOST_SECONDS)
        if query == "bad":
            raise QueryError("The query is bad", hint="Use another.")
        from bunko.types import Chunk

        chunk = Chunk(0, 0, 5, 1, 1, f"text of {query}")
        return Answer(query, "bm25", [Hit("notes", f"{query}.md", "", "", (), "", chunk, 1.0)], 1)

    def preview(self, hit: Hit, query: str) -> list[tuple[str, str]]:
        return [("", f"preview of {hit.uri}")]

    def open(self, hit: Hit, query: str) -> None:
        raise AssertionError("nothing is opened")


def test_a_slow_search_holds_up_neither_typing_nor_later_answers_and_its_own_is_dropped() -> None:
    session = SlowSession({"a"})

    async def script(user: User) -> None:
        user.type("a")
        await user.until(lambda: session.begun == ["a"] and user.shows("Searching…"))
        user.type("b")
        await user.until(lambda: user.rows()[0] == "> ab")
        await user.until(lambda: user.shows("preview of ab.md"))
        session.release.set()
        searches = [task for task in asyncio.all_tasks() if "_run_search" in repr(task.get_coro())]
        assert len(searches) == 1
        await asyncio.wait(searches, timeout=MOST_SECONDS)
        assert [hit.uri for hit in user.finder.hits] == ["ab.md"]
        user.type("c")
        await user.until(lambda: user.shows("preview of abc.md"))
        user.type(ESCAPE)

    use(session, script)


def test_keys_typed_in_one_go_are_one_search() -> None:
    session = SlowSession(set())

    async def script(user: User) -> None:
        user.type("検索の言葉")
        await user.until(lambda: user.shows("preview of 検索の言葉.md"))
        user.type(ESCAPE)

    use(session, script, delay=0.05)
    assert session.begun == ["検索の言葉"]


def test_an_error_is_shown_and_the_next_search_works() -> None:
    session = SlowSession(set())

    async def script(user: User) -> None:
        user.type("bad")
        await user.until(lambda: user.shows("The query is bad. Use another."))
        user.type(ENTER + CTRL_Y)  # there is nothing to open or to print
        user.type("ger")
        await user.until(lambda: user.shows("preview of badger.md"))
        user.type("\x15")  # Ctrl-U clears the line
        await user.until(lambda: user.shows("Type to search."))
        assert not user.finder.hits
        user.type("\x03")

    assert use(session, script) is None


def test_a_document_cannot_steer_the_screen(docs: Path, open_docs: Opener) -> None:
    (docs / "evil.md").write_text("# 京都 \x1b]0;owned\x07\n\n京都の寺 \x1b[2J \x9b31m です。\n", encoding="utf-8")

    async def script(user: User) -> None:
        user.type("京都")
        await user.until(lambda: user.shows("です。"))
        assert not {"\x1b", "\x9b", "\x07"} & set("".join(user.rows()))
        user.type(ESCAPE)

    use(Session(open_docs(), None, ""), script)


@pytest.mark.parametrize("width", [10, 17, 30])
def test_a_long_citation_keeps_its_beginning_and_its_lines(width: int) -> None:
    short = shorten_middle("guide/とても長い名前の手引き.md:L12-L30", width)
    assert cell_width(short) <= width
    assert short.endswith("L30")
    assert "…" in short


def test_without_a_terminal_the_error_names_bunko_search(run: Run, notes: Path) -> None:
    ran = run("find", "京都", "--docs-dir", notes)
    assert (ran.code, ran.out) == (1, "")
    assert "needs a terminal" in ran.err
    assert "bunko search" in ran.err
    assert run("find", "--json", "--docs-dir", notes).code == 2
