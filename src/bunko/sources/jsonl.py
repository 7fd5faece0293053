"""Read each line of JSONL files as an entry."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from bunko.readers import jsonl
from bunko.readers.line_stream import read_lines
from bunko.sources.entries import EntryFiles, ParsedFile, iter_items
from bunko.sources.folder import Folder
from bunko.sources.kind import SourceKind, SourceSpec

EXTENSIONS = (".jsonl", ".ndjson")


def parse(file: BinaryIO, name: str, size: int, max_chars: int) -> ParsedFile:
    """Return the entries of a JSONL file, each of at most `max_chars`; raise SourceError if it is not text."""
    read = read_lines(file, size, max_chars)
    return ParsedFile(read.codec, iter_items(read, lambda lines: jsonl.memos(lines, max_chars)))


def build(root: Path, files: Folder, max_chars: int) -> EntryFiles:
    """Index the lines of a JSONL file, or of those below a folder."""
    return EntryFiles(root, files, parse, max_chars)


def build_source(spec: SourceSpec) -> EntryFiles:
    """Return the source of a tool."""
    return build(spec.root, spec.entry_folder(EXTENSIONS), spec.max_file_bytes)


# A line is one thought: it is split only if it is too long.
KIND = SourceKind(build_source, section="memos", chunker="entry", label="JSON lines")
