"""What readers of files with many entries share: a memo with its lines, a line that is none, one kind of line end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# Characters of one entry; a longer one is a file of another kind.
MAX_ENTRY_CHARS = 20_000_000
# A file with more bad lines is of another kind, or badly damaged: one sentence says so better than thousands.
_MAX_BAD_LINES = 100


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


class BadLine(NamedTuple):
    """A line that could not be used."""

    line: int
    reason: str
    text: str  # by which a change of it is seen


def collapse_line_ends(text: str) -> str:
    r"""Return the text with \n as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def oversized_entry(label: str, line: int, max_chars: int, text: str) -> BadLine:
    """Return what takes the place of an entry that would take too much memory."""
    return BadLine(line, f"{label} {line} has more than {max_chars:,} characters, the limit for one", text[:1000])


def note_damaged_lines(lines: Iterable[str], damaged: list[BadLine]) -> Iterator[str]:
    """Return lines as they are, and note those that hold what could not be read."""
    for number, line in enumerate(lines, 1):
        if "\ufffd" in line:
            reason = f"line {number} holds damaged characters; they are kept as \ufffd"
            damaged.append(BadLine(number, reason, line[:1000]))
        yield line


def limit_bad_lines(entries: Iterable[T | BadLine]) -> Iterator[T | BadLine]:
    """Return what was found, with at most a hundred bad lines: the last of them stands for all that follow."""
    last: BadLine | None = None
    number, rest = 0, hashlib.sha256()
    for one in entries:
        if not isinstance(one, BadLine):
            yield one
            continue
        number += 1
        if number < _MAX_BAD_LINES:
            yield one
            continue
        last = last or one
        rest.update(one.text.encode("utf-8", "surrogatepass"))
    if last is not None:
        more = number - _MAX_BAD_LINES
        reason = f"{last.reason}; {more} more lines cannot be used either" if more else last.reason
        yield BadLine(last.line, reason, rest.hexdigest())
