"""Show a command's output as a terminal of a given width would, and compare it with a kept picture."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from bunko.interfaces.cli.terminal.tables import cell_width
from tests.conftest import Run

PICTURES = Path(__file__).with_name("pictures")
# Read now: the fixture `run` removes all settings from the environment.
UPDATE = os.environ.get("BUNKO_UPDATE_SNAPSHOTS") == "1"
# Colours and links take no room on the screen. Anything else that controls a terminal stays, and fails the comparison.
_STYLES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")


@dataclass(frozen=True)
class Screen:
    """What a terminal received and the rows that it shows."""

    code: int
    written: str  # with colours and links
    rows: list[str]


Terminal = Callable[..., Screen]


class _Stream(io.StringIO):
    """A stream to the screen; stderr is not a terminal, so that progress bars stay out of the picture."""

    def __init__(self, written: list[str], *, is_terminal: bool) -> None:
        super().__init__()
        self._written, self._is_terminal = written, is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        count = super().write(text)  # refuses bytes, by which click tells what kind of stream this is
        self._written.append(text)
        return count


@pytest.fixture
def terminal(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Run a command at a terminal of `width` columns, in this process; the home folder is `tmp_path`."""

    def show(*arguments: str | Path, width: int) -> Screen:
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in (("TERM", "xterm-256color"), ("COLUMNS", str(width)), ("HOME", str(tmp_path))):
            monkeypatch.setenv(name, value)
        written: list[str] = []
        with (
            redirect_stdout(_Stream(written, is_terminal=True)),
            redirect_stderr(_Stream(written, is_terminal=False)),
        ):
            ran = run(*arguments)
        text = "".join(written)
        return Screen(ran.code, text, list(_rows(_STYLES.sub("", text), width)))

    return show


def check_picture(name: str, screen: Screen) -> None:
    """Compare the rows of a screen with `pictures/NAME.txt`; BUNKO_UPDATE_SNAPSHOTS=1 writes that file instead."""
    path = PICTURES / f"{name}.txt"
    picture = "".join(f"{row}\n" for row in screen.rows)
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(picture, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    assert picture == kept, (
        "The output looks different. If this is meant, run "
        f"`BUNKO_UPDATE_SNAPSHOTS=1 .venv/bin/python -m pytest tests/cli -k picture` and commit {path.name}."
    )


def _rows(text: str, width: int) -> Iterator[str]:
    """Yield the rows that a terminal shows: it breaks a line where the next character does not fit."""
    for line in text.splitlines():
        row = ""
        for char in line:
            if cell_width(row + char) > width:
                yield row.rstrip()
                row = ""
            row += char
        yield row.rstrip()
