"""Define memo entries and bad lines, and limit how many bad lines are reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

T = TypeVar("T")

# Characters per entry; a longer one means that the file is not a memo log.
MAX_ENTRY_CHARS = 20_000_000
# A file with more bad lines has another format or is badly damaged: one message says so better than thousands.
_MAX_BAD_LINES = 100


class Memo(NamedTuple):
    """An entry of a memo file: its line range, metadata and text."""

    first_line: int  # counted from 1, both included
    last_line: int
    title: str
    date: str
    tags: tuple[str, ...]
    text: str
    body: int = 0  # offset in text after the heading and the tags
    key: str = ""  # the id that its author gave it
    media_type: str = "text/plain"


class BadLine(NamedTuple):
    """A line that could not be used."""

    line: int
    reason: str
    text: str  # shows whether the line has changed


def collapse_line_ends(text: str) -> str:
    r"""Return the text with \n as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def oversized_entry(label: str, line: int, max_chars: int, text: str) -> BadLine:
    """Return the bad line that replaces an entry that is too large to hold in memory."""
    return BadLine(line, f"{label} {line} has more than {max_chars:,} characters, the limit for an entry", text[:1000])


def note_damaged_lines(lines: Iterable[str], damaged: list[BadLine]) -> Iterator[str]:
    """Yield the lines unchanged and append those with undecodable characters to `damaged`."""
    for number, line in enumerate(lines, 1):
        if "\ufffd" in line:
            reason = f"line {number} holds damaged characters, which are replaced with \ufffd"
            damaged.append(BadLine(number, reason, line[:1000]))
        yield line


def limit_bad_lines(entries: Iterable[T | BadLine]) -> Iterator[T | BadLine]:
    """Yield the entries with at most a hundred bad lines; the last bad line stands for all that follow it."""
    last: BadLine | None = None
    bad_count, digest = 0, hashlib.sha256()
    for entry in entries:
        if not isinstance(entry, BadLine):
            yield entry
            continue
        bad_count += 1
        if bad_count < _MAX_BAD_LINES:
            yield entry
            continue
        last = last or entry
        digest.update(entry.text.encode("utf-8", "surrogatepass"))
    if last is not None:
        more = bad_count - _MAX_BAD_LINES
        reason = f"{last.reason}; {more} more lines cannot be read either" if more else last.reason
        yield BadLine(last.line, reason, digest.hexdigest())
