"""Changelog memos, notes with front matter and JSONL files in, their dated and tagged entries out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from bunko import readers
from bunko.errors import SourceError
from bunko.readers.line_stream import Read, lines, mended
from bunko.readers.memo import Bad, Memo
from bunko.sources import jsonl
from bunko.sources.entries import Entries, Parsed, told
from bunko.sources.folder import Folder
from bunko.text.dates import iso
from bunko.types import Text

_MARKDOWN = (".md", ".markdown")
EXTENSIONS = (*_MARKDOWN, ".txt", ".text", ".changelog", *jsonl.EXTENSIONS)
_DATED = re.compile(r"(\d{4})([-_.]?)(\d\d)\2(\d\d)(?!\d)")
# What people call a file of memos without an ending; older ones are kept as ChangeLog.1 or ChangeLog-2019.
NAMES = r"(?:change_?log|clmemo|memos?|notes?|diary|journal|メモ|日記|日誌)(?:[-_.]\d{1,8})?"


def parse(file: BinaryIO, name: str, size: int, most: int) -> Parsed:
    """Return the entries of a changelog or of JSONL; any other file is one entry. A SourceError: it is not text.

    None has more than `most` characters, so that a file of any size can be read.
    """
    if name.casefold().endswith(jsonl.EXTENSIONS):
        return jsonl.parse(file, name, size, most)
    read = lines(file, size, most)
    return Parsed(read.codec, told(read, lambda found: _entries(file, name, size, most, found, read)))


def _entries(
    file: BinaryIO, name: str, size: int, most: int, found: Iterator[str], read: Read
) -> Iterator[Memo | Bad | Text]:
    from bunko.readers import changelog  # only here: most scans find that nothing changed, and its patterns take time

    may_be = True
    if name.casefold().endswith(_MARKDOWN):
        # In Markdown a line with a star is a bullet more often than a memo.
        above: list[str] = []
        for line in found:
            above.append(line)
            if line.strip() and not line.startswith("#"):
                break
        may_be, found = changelog.begins(above), chain(above, found)
    memos = changelog.memos(found, most) if may_be else iter(())
    first = next(memos, None)
    if first is not None:
        yield first
        yield from memos
    elif size > most:
        raise SourceError(
            f"It has {size:,} bytes and no dated entries, so that it is one memo: more than the limit of {most:,}.",
            hint="Raise scanner.max_file_bytes to index it.",
        )
    else:
        for _ in found:
            pass  # to its end, so that damaged lines are known
        file.seek(0)
        data = file.read()
        text = readers.read(mended(data, read.codec).encode() if read.is_damaged else data, name)
        if text.text.strip():
            yield text if text.date else replace(text, date=_date(name))


def _date(name: str) -> str:
    """Return the date that the name of a file begins with, as notes of a day are often called; else nothing."""
    match = _DATED.match(name.rpartition("/")[2])
    return iso("-".join(match.group(1, 3, 4))) if match else ""


def build(root: Path, files: Folder, most: int) -> Entries:
    """Index the memos in a file, or in the files below a folder."""
    return Entries(root, files, parse, most)
