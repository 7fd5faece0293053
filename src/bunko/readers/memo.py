"""What readers of files with many entries hand on: a memo with its lines, or a line that is none, and why."""

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
