"""What readers of files with many entries share: a memo with its lines, a line that is none, one kind of line end."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# Characters of one entry; a longer one is a file of another kind.
MOST = 20_000_000
# A file with more bad lines is of another kind, or badly damaged: one sentence says so better than thousands.
_MOST_BAD = 100


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
    text: str  # by which a change of it is seen


def unified(text: str) -> str:
    r"""Return the text with \n as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def too_long(what: str, line: int, most: int, text: str) -> Bad:
    """Return what takes the place of an entry that would take too much memory."""
    return Bad(line, f"{what} {line} has more than {most:,} characters, the limit for one", text[:1000])


def with_damage(lines: Iterable[str], damaged: list[Bad]) -> Iterator[str]:
    """Return lines as they are, and note those that hold what could not be read."""
    for number, line in enumerate(lines, 1):
        if "\ufffd" in line:
            reason = f"line {number} holds damaged characters; they are kept as \ufffd"
            damaged.append(Bad(number, reason, line[:1000]))
        yield line


def few_bad(found: Iterable[T | Bad]) -> Iterator[T | Bad]:
    """Return what was found, with at most a hundred bad lines: the last of them stands for all that follow."""
    last: Bad | None = None
    number, rest = 0, hashlib.sha256()
    for one in found:
        if not isinstance(one, Bad):
            yield one
            continue
        number += 1
        if number < _MOST_BAD:
            yield one
            continue
        last = last or one
        rest.update(one.text.encode("utf-8", "surrogatepass"))
    if last is not None:
        more = number - _MOST_BAD
        reason = f"{last.reason}; {more} more lines cannot be used either" if more else last.reason
        yield Bad(last.line, reason, rest.hexdigest())
