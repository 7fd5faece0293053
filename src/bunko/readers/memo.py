"""What readers of files with many entries share: a memo with its lines, a line that is none, one kind of line end."""

from __future__ import annotations

from typing import NamedTuple


class Memo(NamedTuple):
    """One entry of a file: which lines it takes there, and what it says about itself."""

    first_line: int  # counted from 1, both included
    last_line: int
    title: str
    date: str
    tags: tuple[str, ...]
    text: str
    body: int = 0  # where the text begins that is not heading or tags
    key: str = ""  # what it is called by whoever wrote it


class Bad(NamedTuple):
    """A line that could not be used."""

    line: int
    reason: str
    text: str


def unified(text: str) -> str:
    r"""Return the text with \n as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
