"""JSONL files in, an entry for each of their lines out."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from bunko.readers import jsonl
from bunko.readers.line_stream import lines
from bunko.sources.entries import Entries, Parsed, told
from bunko.sources.folder import Folder

EXTENSIONS = (".jsonl", ".ndjson")


def parse(file: BinaryIO, name: str, size: int, most: int) -> Parsed:
    """Return the entries of a JSONL file, each of at most so many characters; a SourceError says why it is not text."""
    read = lines(file, size, most)
    return Parsed(read.codec, told(read, lambda found: jsonl.memos(found, most)))


def build(root: Path, files: Folder, most: int) -> Entries:
    """Index the lines of a JSONL file, or of those below a folder."""
    return Entries(root, files, parse, most)
