"""JSONL files in, an entry for each of their lines out."""

from __future__ import annotations

from pathlib import Path

from bunko.readers import jsonl
from bunko.readers.encoding import decode
from bunko.sources.entries import Entries, Parsed
from bunko.sources.folder import Folder

EXTENSIONS = (".jsonl", ".ndjson")


def parse(data: bytes, name: str) -> Parsed:
    """Return the entries of a JSONL file; a SourceError says why it is not text."""
    text, encoding = decode(data)
    memos, bad = jsonl.memos(text)
    return Parsed(encoding, memos, bad)


def build(root: Path, files: Folder) -> Entries:
    """Index the lines of a JSONL file, or of those below a folder."""
    return Entries(root, files, parse)
