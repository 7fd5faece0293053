"""Keep memos that came from standard input as a file of the library, so that later imports can read them again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from bunko.errors import LibraryReadOnly, SourceError
from bunko.library.opening.paths import LibraryPaths
from bunko.readers.line_stream import read_lines

_MAX_LINE_CHARS = 1_000_000  # of the lines that show the format
_PARTIAL_SUFFIX = ".partial"
_PARTIAL_SECONDS = 3600  # an older file was left by a process that was killed


def input_folder(paths: LibraryPaths) -> Path:
    """Return the folder for memos from standard input."""
    return paths.database.with_name(f"{paths.database.name}.stdin") if paths.is_file_path else paths.folder / "stdin"


def store_input(paths: LibraryPaths, stream: BinaryIO) -> Path:
    """Copy a stream to a file named by its format, in the place of the one before; raise SourceError if it is empty."""
    folder = input_folder(paths)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(suffix=_PARTIAL_SUFFIX, dir=folder)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "w+b") as file:
                shutil.copyfileobj(stream, file)
                path = folder / f"stdin{_detect_suffix(file)}"
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        for other in folder.iterdir():
            is_left_over = other.suffix == _PARTIAL_SUFFIX and other.stat().st_mtime < time.time() - _PARTIAL_SECONDS
            if is_left_over or (other.stem == path.stem and other != path):
                other.unlink(missing_ok=True)
    except OSError as error:
        raise LibraryReadOnly(
            f"{folder} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder and whether its disk is full, or choose another library with --output.",
        ) from error
    return path


def _detect_suffix(file: BinaryIO) -> str:
    """Return the suffix for the format of a file: JSON lines, Markdown, or text such as a changelog."""
    size = file.tell()
    file.seek(0)
    first_line = ""
    for line in read_lines(file, size, _MAX_LINE_CHARS).lines if size else ():
        stripped = line.strip()
        first_line = first_line or stripped
        if stripped and not stripped.startswith("#"):
            if stripped.startswith("{"):
                return ".jsonl"
            return ".md" if first_line.startswith(("#", "---", "+++")) else ".txt"
    if not first_line:
        raise SourceError("Standard input is empty", hint="Pipe memos into it: bunko build --input - < ~/ChangeLog.")
    return ".md"
