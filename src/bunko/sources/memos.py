"""Changelog memos, notes with front matter and JSONL files in, their dated and tagged entries out."""

from __future__ import annotations

from pathlib import Path

from bunko import readers
from bunko.readers.encoding import decode
from bunko.sources import jsonl
from bunko.sources.entries import Entries, Parsed
from bunko.sources.folder import Folder

_MARKDOWN = (".md", ".markdown")
EXTENSIONS = (*_MARKDOWN, ".txt", ".text", ".changelog", *jsonl.EXTENSIONS)


def parse(data: bytes, name: str) -> Parsed:
    """Return the entries of a changelog or of JSONL; any other file is one entry. A SourceError: it is not text."""
    from bunko.readers import changelog  # only here: most scans find that nothing changed, and its patterns take time

    ending = name.casefold()
    if ending.endswith(jsonl.EXTENSIONS):
        return jsonl.parse(data, name)
    text, encoding = decode(data)
    # In Markdown a line with a star is a bullet more often than a memo.
    may_be = changelog.begins(text) if ending.endswith(_MARKDOWN) else True
    if may_be and (memos := changelog.memos(text)):
        return Parsed(encoding, memos)
    return Parsed(encoding, whole=readers.read(data, name)) if text.strip() else Parsed(encoding)


def build(root: Path, files: Folder) -> Entries:
    """Index the memos in a file, or in the files below a folder."""
    return Entries(root, files, parse)
