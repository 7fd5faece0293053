"""Read dated and tagged entries from changelog memos, notes with front matter and JSONL files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from bunko import readers
from bunko.errors import SourceError
from bunko.readers.line_stream import DecodedLines, decode_with_replacement, read_lines
from bunko.readers.memo import BadLine, Memo
from bunko.sources import jsonl
from bunko.sources.entries import EntryFiles, ParsedFile, iter_items
from bunko.sources.folder import Folder
from bunko.sources.kind import SourceKind, SourceSpec
from bunko.types import Text

_MARKDOWN_SUFFIXES = (".md", ".markdown")
EXTENSIONS = (*_MARKDOWN_SUFFIXES, ".txt", ".text", ".changelog", *jsonl.EXTENSIONS)
_COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".lzma", ".zip", ".7z", ".z")
# Endings of backups, programs, markup, data, pictures and office documents.
_OTHER_FORMATS = (
    "bak backup orig rej sav save tmp swp swo lock py pyc rb js mjs cjs ts jsx tsx vue go rs c cc cpp h hpp java kt cs"
    " php pl sh ps1 sql css scss html htm xml json yaml yml toml ini cfg csv tsv png jpg jpeg gif svg webp ico pdf doc"
    " docx xls xlsx ppt pptx rtf odt exe dll so o a class jar db sqlite mp3 mp4 wav"
).split()
# Usual names of memo files without an extension. Older ones are kept as memo.old, ChangeLog.1, ChangeLog-2019 or with
# any other word behind ChangeLog. A compressed one matches too, so that it is reported.
NAME_PATTERN = (
    r"(?:change_?log|clmemo|memos?|notes?|diary|journal|メモ|日記|日誌)(?:[-_.](?:\d{1,8}|old))*"
    rf"|(?:change_?log|clmemo)[-_.](?!(?:.*[-_.])?(?:{'|'.join(_OTHER_FORMATS)})$).*[^~]"
)


def parse(file: BinaryIO, name: str, size: int, max_chars: int) -> ParsedFile:
    """Return the entries of a changelog or of JSONL; any other file is one entry. Raise SourceError if it is not text.

    No entry has more than `max_chars` characters, so that a file of any size can be read.
    """
    if name.casefold().endswith(_COMPRESSED_SUFFIXES):
        raise SourceError("The file is compressed", hint="Unpack it to index it.")
    if name.casefold().endswith(jsonl.EXTENSIONS):
        return jsonl.parse(file, name, size, max_chars)
    read = read_lines(file, size, max_chars)
    return ParsedFile(
        read.codec, iter_items(read, lambda lines: _iter_entries(file, name, size, max_chars, lines, read))
    )


def _iter_entries(
    file: BinaryIO, name: str, size: int, max_chars: int, text_lines: Iterator[str], read: DecodedLines
) -> Iterator[Memo | BadLine | Text]:
    # Imported here: most scans find no changes, and their patterns take time.
    from bunko.readers import changelog, daily_notes

    first_lines: list[str] = []  # up to the first line that is not a heading
    for line in text_lines:
        first_lines.append(line)
        if line.strip() and not line.startswith("#"):
            break
    headings = daily_notes.HeadingScanner()
    text_lines = headings.count(chain(first_lines, text_lines))
    # In Markdown a line with a star is more often a bullet than a memo.
    is_markdown = name.casefold().endswith(_MARKDOWN_SUFFIXES)
    may_be_changelog = not any(map(daily_notes.is_day_heading, first_lines)) and (
        not is_markdown or changelog.is_changelog(first_lines)
    )
    memos = changelog.memos(text_lines, max_chars) if may_be_changelog else iter(())
    first = next(memos, None)
    if first is not None:
        yield first
        yield from memos
        return
    for _ in text_lines:
        pass  # read to the end to count headings and collect damaged lines
    file.seek(0)
    if headings.day_count > 1:
        yield from daily_notes.memos(read_lines(file, size, max_chars).lines, headings.day_level, max_chars)
    elif size > max_chars:
        raise SourceError(
            f"It has {size:,} bytes and no dated entries, so it is one memo: more than the limit of {max_chars:,}",
            hint="Raise scanner.max_file_bytes to index it.",
        )
    else:
        data = file.read()
        text = readers.read(decode_with_replacement(data, read.codec).encode() if read.is_damaged else data, name)
        if text.text.strip():
            yield text if text.date else replace(text, date=headings.first_date if headings.day_count else "")


def build(root: Path, files: Folder, max_chars: int) -> EntryFiles:
    """Index the memos in a file, or in the files below a folder."""
    return EntryFiles(root, files, parse, max_chars)


def build_source(spec: SourceSpec) -> EntryFiles:
    """Return the source of a tool."""
    return build(spec.root, spec.entry_folder(EXTENSIONS, names=NAME_PATTERN), spec.max_file_bytes)


# A memo is one thought: it is split only if it is too long.
KIND = SourceKind(build_source, section="memos", chunker="entry", label="memos")
