"""Scan files that contain many entries for entries that were added, changed, moved or deleted."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, BinaryIO

from bunko.errors import SourceError
from bunko.protocols import Look, Scan
from bunko.readers.line_stream import DecodedLines
from bunko.readers.memo import BadLine, Memo, limit_bad_lines, note_damaged_lines
from bunko.sources.folder import Folder
from bunko.sources.walk import ignore_folder
from bunko.text.normalise import normalise
from bunko.types import RACY_NS, WHOLE_FILE, ExcerptEntry, Fingerprint, LineSpan, Problem, SourceEntry, Text
from bunko.types.entry_table import EntryTable

_MAX_NAME_LENGTH = 60
_UNSAFE_CHARS = re.compile(r"\W+")


def entry_name(memo: Memo) -> str:
    """Return a name made from the key or the date and title of an entry."""
    label = memo.key or memo.title or memo.text[memo.body :].lstrip()[:_MAX_NAME_LENGTH]
    name = _UNSAFE_CHARS.sub("-", normalise(label)).strip("-_")[:_MAX_NAME_LENGTH].strip("-_")
    return "-".join(part for part in ("" if memo.key else memo.date[:10], name) if part) or "entry"


def rename_copies(names: Sequence[str | None], digest_of: Callable[[int], str], used_names: set[str]) -> dict[int, str]:
    """Return the names of the entries that cannot have their own within their file, by position.

    Entries of the same date and title are distinguished by their hash, so that moving one does not rename another.
    An entry without a name is the whole file.
    """
    name_counts, copies = Counter(names), Counter[str]()
    new_names: dict[int, str] = {}
    for index, name in enumerate(names):
        if name is None:
            continue
        unique_name = name
        if name_counts[name] > 1 or name in used_names:
            unique_name = new_name = f"{name}-{digest_of(index)[:8]}"
            while unique_name in used_names:  # entries with identical text
                copies[new_name] += 1
                unique_name = f"{new_name}-{copies[new_name] + 1}"
            new_names[index] = unique_name
        used_names.add(unique_name)
    return new_names


# A file of many entries has no hash of its own: if its time or size differ, its entries are compared.
_NO_HASH = "none"
# Characters of text that a scan keeps in memory; texts beyond that are read again when they are needed.
TEXT_BUDGET_CHARS = 8_000_000

LARGE_BYTES = 16_000_000  # of a file that takes longer to read than to wait until its time can be trusted


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The content of a file, in order: entries and bad lines, or one text for the whole file."""

    encoding: str
    items: Iterator[Memo | BadLine | Text]


# Takes an open file, its name, its size, and the maximum number of characters of an entry.
FileParser = Callable[[BinaryIO, str, int, int], ParsedFile]


def iter_items(
    read: DecodedLines, parse: Callable[[Iterator[str]], Iterable[Memo | BadLine | Text]]
) -> Iterator[Memo | BadLine | Text]:
    """Return the items of a file, followed by its damaged lines; of many bad lines only a few."""
    if not read.is_damaged:
        return limit_bad_lines(parse(read.lines))
    damaged: list[BadLine] = []

    def items_then_damaged() -> Iterator[Memo | BadLine | Text]:
        bad_lines = set()
        for item in parse(note_damaged_lines(read.lines, damaged)):
            bad_lines.add(item.line if isinstance(item, BadLine) else 0)
            yield item
        yield from (bad for bad in damaged if bad.line not in bad_lines)

    return limit_bad_lines(items_then_damaged())


def _every_file(uri: str) -> bool:
    return True


class EntryFiles:
    """The entries of one file, or of all files below a folder; an entry that moves within its file is unchanged.

    Files are read as streams, and a scan keeps little of their text: its memory use grows with the number of entries,
    not with their length.
    """

    def __init__(
        self,
        root: Path,
        files: Folder,
        parse: FileParser,
        max_chars: int,
        has_entries: Callable[[str], bool] = _every_file,
    ) -> None:
        self.root = root
        self._files = files  # the folder, or the parent of the single file
        self._parse = parse
        self._max_chars = max_chars  # characters of an entry
        self._has_entries = has_entries  # whether a file has entries; any other is a document as a whole

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the entries with their fingerprints, reading only files whose time or size differ.

        Entries of a file that cannot be read are kept.
        """
        return self.look().compare(fingerprints)

    def look(self, on_folder: Callable[[str], None] = ignore_folder) -> Look:
        """List the files, or ask for the time and size of the only one."""
        files = self._look_at_file() if self._single_file() else self._files.look(on_folder)
        return replace(files, compare=partial(self._compare, files))

    def watch_root(self) -> Path | None:
        """Return the folder, None for a file."""
        return None if self._single_file() else self._files.root

    def watch_key(self) -> Hashable:
        """Return the rules for files."""
        return type(self), self._files.watch_key()

    def _compare(self, files_seen: Look, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        by_file: dict[str, dict[str, Fingerprint]] = {}
        single_file = self._single_file()
        for uri, fingerprint in fingerprints.items():
            file_uri = containing_file(uri, single_file)
            by_file.setdefault(file_uri if self._has_entries(file_uri) else uri, {})[uri] = fingerprint
        files = files_seen.compare(
            {
                uri: _file_fingerprint(entries.values()) if self._has_entries(uri) else entries[uri]
                for uri, entries in by_file.items()
            }
        )
        scan = Scan(EntryTable(), EntryTable(), moved=dict(files.moved), touched=EntryTable())
        scan.problems, scan.load_texts = list(files.problems), self._restore_texts
        scan.state = files.state
        scan.skipped_folders = files.skipped_folders
        scan.deleted = [uri for file_uri in files.deleted for uri in by_file[file_uri]]
        for file in files.touched:
            if not self._has_entries(file.uri):
                scan.touched.append(file)
        text_budget = TEXT_BUDGET_CHARS
        for changed, documents in ((files.added, scan.added), (files.updated, scan.updated)):
            for file in changed:
                if self._has_entries(file.uri):
                    text_budget -= self._compare_entries(scan, file, by_file.get(file.uri, {}), text_budget)
                else:
                    documents.append(file)
        compared = {*files.deleted, *(file.uri for file in (*files.added, *files.updated))}
        kept = [uri for uri in by_file if uri not in compared and self._has_entries(uri)]
        unreadable = {problem.uri for problem in files.problems}
        scan.unchanged += sum(len(by_file[uri]) for uri in kept)
        scan.unchanged += max(0, files.unchanged - sum(uri not in unreadable for uri in kept))
        _find_moves(scan, fingerprints)
        scan.deleted.sort()
        return scan

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes of the file that contains an entry."""
        return self._files.read(SourceEntry(self._file_of(entry), entry.size, entry.modified_ns))

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return whether the file or folder is missing or unreadable, or empty although entries are known."""
        if not self._single_file():
            return self._files.has_vanished(known_uris)
        try:
            is_empty = not self.root.stat().st_size
        except OSError:
            return True
        return not os.access(self.root, os.R_OK) or (is_empty and any(True for _ in known_uris))

    def _look_at_file(self) -> Look:
        name = self._single_file()
        try:
            file_stat = self.root.stat()
        except OSError as error:
            problem = Problem(name, f"cannot be read ({error.strerror}); check the path and its disk")
            return Look("", lambda fingerprints: Scan(problems=[problem]), [problem])
        if not file_stat.st_size:
            problem = Problem(name, "is empty; it will be indexed when it has content")
            return Look("", lambda fingerprints: Scan(problems=[problem]), [problem])
        entry = SourceEntry(name, file_stat.st_size, file_stat.st_mtime_ns)
        is_readable = os.access(self.root, os.R_OK)
        state = _hash(name, str(file_stat.st_size), str(file_stat.st_mtime_ns)) if is_readable else ""
        return Look(state, partial(_compare_file, entry, state))

    def _compare_entries(self, scan: Scan, file: SourceEntry, old: Mapping[str, Fingerprint], text_budget: int) -> int:
        """Add the changes of a file's entries to a scan; return how many characters of text are kept."""
        _wait_until_trusted(file)
        scanned_ns = time.time_ns()
        try:
            seen = file
            with self._files.open_stream(file) as (stream, file):
                excerpts = self._read_excerpts(scan, stream, file, scanned_ns, text_budget)
            if file != seen:
                scan.state = ""  # it has changed since
        except SourceError as error:
            scan.state = ""
            scan.unchanged += len(old)
            scan.problems.append(Problem(file.uri, str(error).removeprefix(f"{file.uri} ")))
            return 0
        present, kept_chars = set(), 0
        first_added, first_updated = len(scan.added), len(scan.updated)
        for entry in excerpts:
            if old:
                present.add(entry.uri)
            before = old.get(entry.uri)
            if before is not None and before.content_hash == entry.content_hash:
                scan.unchanged += 1
                modified_ns = entry.trusted_modified_ns()
                # A time that cannot be trusted is not a change: it would be written at every scan.
                if before != Fingerprint(before.content_hash, entry.size, modified_ns, entry.lines.first):
                    scan.touched.append(entry.without_text())
                elif not modified_ns:
                    scan.state = ""  # it may change again without another time or size
                continue
            kept_chars += entry.length if entry.text else 0
            changed, first = (scan.added, first_added) if before is None else (scan.updated, first_updated)
            if len(changed) == first:
                # The time of a file counts once those of all its entries do: it is enough to hold back one of them.
                scan.touched.append(entry.without_text())
                entry = replace(entry, seen_ns=0)
            changed.append(entry)
        scan.deleted += [uri for uri in old if uri not in present]
        return kept_chars

    def _read_excerpts(
        self, scan: Scan, stream: BinaryIO, file: SourceEntry, scanned_ns: int, text_budget: int
    ) -> Iterator[ExcerptEntry]:
        """Read a file, and return its entries."""

        def excerpt(name: str | None, digest: str, lines: LineSpan, length: int = 0, **fields: Any) -> ExcerptEntry:
            uri, size, modified_ns = f"{file.uri}#{name}" if name else file.uri, file.size, file.modified_ns
            return ExcerptEntry(uri, size, modified_ns, scanned_ns, digest, length=length, lines=lines, **fields)

        bad_lines: list[ExcerptEntry] = []
        names: list[str | None] = []
        entries = EntryTable[ExcerptEntry]()
        try:
            parsed = self._parse(stream, file.uri, file.size, self._max_chars)
            for item in parsed.items:
                if isinstance(item, BadLine):
                    digest = _hash(item.reason, item.text)
                    bad_lines.append(excerpt(f"L{item.line}", digest, WHOLE_FILE, problem=item.reason))
                    continue
                text, lines = _entry_text(item, parsed.encoding)
                if text.date:
                    scan.note_date(text.date)
                text_budget -= len(text.text)
                # Texts beyond the budget are read again when they are indexed.
                kept_text = text if text_budget >= 0 else None
                names.append(None if isinstance(item, Text) else entry_name(item))
                entries.append(excerpt(names[-1], _text_hash(text), lines, len(text.text), text=kept_text))
        except SourceError as error:
            return iter([excerpt("", _hash(str(error), str(file.size)), WHOLE_FILE, problem=str(error))])
        if not names and not bad_lines:
            return iter([excerpt("", _hash("nothing"), WHOLE_FILE, problem="has no entries")])
        used_names = {entry.uri.rpartition("#")[2] for entry in bad_lines}
        new_names = rename_copies(names, lambda index: entries[index].content_hash, used_names)
        renamed = (
            replace(entry, uri=f"{file.uri}#{new_names[index]}") if index in new_names else entry
            for index, entry in enumerate(entries)
        )
        return chain(bad_lines, renamed)

    def _restore_texts(self, entries: Iterable[SourceEntry]) -> Iterator[SourceEntry]:
        """Return entries with the texts that the scan did not keep, reading their files again."""
        for needs_text, group in groupby(entries, lambda entry: isinstance(entry, ExcerptEntry) and entry.needs_text):
            if not needs_text:
                yield from group
                continue
            for (uri, _), run in groupby(group, self._run_key()):
                yield from self._reread_entries(uri, run)

    def _run_key(self) -> Callable[[SourceEntry], tuple[str, int]]:
        """Return a key function that groups entries into runs of one file, in the order of its lines.

        Added entries of a file come before updated ones, so that it may have to be read twice.
        """
        last_line = run = 0

        def key(entry: SourceEntry) -> tuple[str, int]:
            nonlocal last_line, run
            run += entry.lines.first <= last_line
            last_line = entry.lines.first
            return self._file_of(entry), run

        return key

    def _single_file(self) -> str:
        """Return the name of the file if the root is one, an empty string for a folder."""
        return "" if self.root.is_dir() else self.root.name

    def _file_of(self, entry: SourceEntry) -> str:
        file = containing_file(entry.uri, self._single_file())
        return file if self._has_entries(file) else entry.uri

    def _reread_entries(self, uri: str, entries: Iterator[SourceEntry]) -> Iterator[SourceEntry]:
        """Return entries of one file, in the order of its lines, with their texts unless the file has changed."""
        entry = next(entries, None)
        with suppress(SourceError):  # entries without a text are reported as problems, and what is indexed stays
            if entry is not None:
                with self._files.open_stream(SourceEntry(uri, entry.size, entry.modified_ns)) as (stream, file):
                    parsed = self._parse(stream, file.uri, file.size, self._max_chars)
                    for item in parsed.items:
                        if isinstance(item, BadLine):
                            continue
                        text, lines = _entry_text(item, parsed.encoding)
                        if isinstance(entry, ExcerptEntry) and lines == entry.lines:
                            yield replace(entry, text=text) if _text_hash(text) == entry.content_hash else entry
                            entry = next(entries, None)
                            if entry is None:
                                return
        if entry is not None:
            yield entry
        yield from entries


def _entry_text(item: Memo | Text, encoding: str) -> tuple[Text, LineSpan]:
    """Return the text of an entry and its lines."""
    if isinstance(item, Text):
        return item, WHOLE_FILE
    text = Text(item.text, item.media_type, encoding, item.title, item.date, item.tags, item.body, item.context)
    return text, LineSpan(item.first_line, item.last_line)


def containing_file(uri: str, single_file: str) -> str:
    """Return the uri of the file that contains an entry."""
    if single_file and (uri == single_file or uri.startswith(f"{single_file}#")):
        return single_file
    # The name of an entry within its file has neither a dot nor a slash, the name of a file has a dot.
    file, mark, name = uri.rpartition("#")
    return uri if not mark or "." in name or "/" in name else file


def _file_fingerprint(entries: Iterable[Fingerprint]) -> Fingerprint:
    """Return the fingerprint of a file from those of its entries; its time counts only if all entries agree."""
    stats = {(entry.size, entry.modified_ns) for entry in entries}
    size, modified_ns = stats.pop()
    return Fingerprint(_NO_HASH, size, 0 if stats else modified_ns)


def _wait_until_trusted(file: SourceEntry) -> None:
    """Wait until the time of a large file that was just written can be trusted: else the next scan reads it again."""
    remaining_ns = file.modified_ns + RACY_NS - time.time_ns()
    if file.size >= LARGE_BYTES and 0 <= remaining_ns <= RACY_NS:
        time.sleep(remaining_ns / 1e9 + 0.01)


def _compare_file(entry: SourceEntry, state: str, fingerprints: Mapping[str, Fingerprint]) -> Scan:
    """Compare the only file of a source with its fingerprint."""
    deleted = sorted(fingerprints.keys() - {entry.uri})  # the root was a folder before
    old = fingerprints.get(entry.uri)
    if old is None:
        return Scan(added=[entry], deleted=deleted, state=state)
    if old.modified_ns == entry.modified_ns != 0 and old.size == entry.size:
        return Scan(deleted=deleted, state=state)
    return Scan(updated=[entry], deleted=deleted, state=state)


def _find_moves(scan: Scan, fingerprints: Mapping[str, Fingerprint]) -> None:
    """Match deleted with added entries of the same content, as after a file was renamed."""
    if not scan.deleted:
        return
    deleted_by_hash: dict[str, list[str]] = {}
    for uri in sorted(scan.deleted, reverse=True):
        deleted_by_hash.setdefault(fingerprints[uri].content_hash, []).append(uri)
    for entry in scan.added:
        if (
            isinstance(entry, ExcerptEntry)
            and not entry.problem
            and (old_uris := deleted_by_hash.get(entry.content_hash))
        ):
            scan.moved[entry.uri] = old_uris.pop()


def _text_hash(text: Text) -> str:
    # Searches filter by tags and dates and find authors, so that a change of them must be noticed too.
    return _hash(text.title, text.date, "\n".join(text.tags), text.text, *filter(None, [text.context]))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
