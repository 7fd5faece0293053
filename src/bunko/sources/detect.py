"""Recognise the kind of a path: a folder, a file of memos or JSON lines, or a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path

from bunko.errors import SourceError
from bunko.readers.memo import Memo
from bunko.sources import jsonl, memos

_MEMO_NAME = re.compile(memos.NAME_PATTERN, re.IGNORECASE)
# A text of any name may be a document or a log of memos; without an ending, it is not a document.
_TEXT_SUFFIXES = tuple(suffix for suffix in memos.EXTENSIONS if suffix not in (*jsonl.EXTENSIONS, ".changelog"))
_GLOB_CHARS = re.compile(r"([\\*?\[]| \Z)")
# Enough to find two dated entries behind any preface, and little enough to read at once.
_SNIFFED_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class DetectedSource:
    """A path as a tool can take it: its kind, and the documents of the folder if it is not all of it."""

    path: Path  # of the folder or file, absolute
    kind: str  # of source: folder, memos or jsonl
    label: str  # the path as it was given
    files: tuple[str, ...] = ()  # names of the documents in the folder that were given; empty: all of it

    def patterns(self) -> tuple[str, ...]:
        """Return the patterns that include only these documents."""
        return tuple("/" + _GLOB_CHARS.sub(r"\\\1", name) for name in self.files)


def detect_sources(paths: Iterable[Path]) -> list[DetectedSource]:
    """Return the sources that paths name, in order; documents of one folder are one. A missing path is an error."""
    detected: dict[tuple[Path, bool], DetectedSource] = {}
    for given in paths:
        try:
            path = given.expanduser().resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise _missing_path_error(given, error) from error
        source = _detect_source(path, str(given))
        key = source.path, bool(source.files)
        if key in detected and source.files:
            files = dict.fromkeys((*detected[key].files, *source.files))
            source = DetectedSource(source.path, source.kind, str(given.parent), tuple(files))
        detected[key] = source
    return list(detected.values())


def read_as(source: DetectedSource, kind: str) -> DetectedSource:
    """Return a source as one of another kind: a folder as memos, or a file of memos as a document."""
    if kind == source.kind:
        return source
    path = source.path.joinpath(*source.files[:1])
    if kind == "folder" and path.is_file():
        return DetectedSource(path.parent, kind, source.label, (path.name,))
    return DetectedSource(path, kind, source.label)


def _detect_source(path: Path, label: str) -> DetectedSource:
    if path.is_dir():
        return DetectedSource(path, "folder", label)
    if not path.is_file():
        raise SourceError(f"{label} is neither a folder nor a regular file", hint="Add a folder or a file.")
    name = path.name.casefold()
    if name.endswith(jsonl.EXTENSIONS):
        return DetectedSource(path, "jsonl", label)
    is_text = name.endswith(_TEXT_SUFFIXES)
    if _has_entries(path) if is_text else not path.suffix or _MEMO_NAME.fullmatch(path.name):
        return DetectedSource(path, "memos", label)
    return DetectedSource(path.parent, "folder", label, (path.name,))


def _has_entries(path: Path) -> bool:
    """Return whether a text has several dated entries, as a memo file has them."""
    try:
        with open(path, "rb") as file:
            beginning = file.read(_SNIFFED_BYTES)
        items = memos.parse(BytesIO(beginning), path.name, len(beginning), len(beginning)).items
        first: Sequence[object] = list(islice(items, 2))
    except (OSError, SourceError):
        return False  # the import says what is wrong with it
    return len(first) > 1 and all(isinstance(item, Memo) and item.date for item in first)


def _missing_path_error(path: Path, error: Exception) -> SourceError:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        reason = getattr(error, "strerror", None) or str(error)
        return SourceError(f"{path} cannot be read: {reason}", hint="Check the path and its permissions.")
    host, _, _ = str(path).partition("/")
    if re.fullmatch(r"[\w-]+(\.[\w-]+)*\.[a-z]{2,}(:\d+)?", host):
        hint = f"Check the path. A web page begins with https://, as in: bunko add https://{path}"
    else:
        hint = "Check the path."
    return SourceError(f"There is no file or folder {path}", hint=hint)
