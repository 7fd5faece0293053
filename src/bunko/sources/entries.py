"""Files that hold many entries and what is known of them come in; which entries are new, changed or gone goes out."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bunko.errors import SourceError
from bunko.protocols import Scan
from bunko.readers.line_stream import DecodedLines
from bunko.readers.memo import BadLine, Memo, limit_bad_lines, note_damaged_lines
from bunko.sources.folder import Folder
from bunko.text.normalise import normalise
from bunko.types import WHOLE_FILE, ExcerptEntry, Fingerprint, LineSpan, Problem, SourceEntry, Text

_MAX_NAME_LENGTH = 60
_UNSAFE_CHARS = re.compile(r"\W+")
# Of a file of many entries: where time or size differ, it is read and its entries are compared.
_NO_HASH = "none"
# Characters of text that looking for changes keeps; where there are more, they are read again as they are needed.
_TEXT_BUDGET_CHARS = 8_000_000


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What a file holds, one thing after the other: entries and lines that are none, or a text that is all of it."""

    encoding: str
    items: Iterator[Memo | BadLine | Text]


# An open file, its name, its size, and the most characters that an entry may have.
FileParser = Callable[[BinaryIO, str, int, int], ParsedFile]


def iter_items(
    read: DecodedLines, parse: Callable[[Iterator[str]], Iterable[Memo | BadLine | Text]]
) -> Iterator[Memo | BadLine | Text]:
    """Return what lines hold, and at last which of them are damaged; of many bad ones a few."""
    if not read.is_damaged:
        return limit_bad_lines(parse(read.lines))
    damaged: list[BadLine] = []

    def all_of_it() -> Iterator[Memo | BadLine | Text]:
        bad = set()
        for one in parse(note_damaged_lines(read.lines, damaged)):
            bad.add(one.line if isinstance(one, BadLine) else 0)
            yield one
        yield from (one for one in damaged if one.line not in bad)

    return limit_bad_lines(all_of_it())


class EntryFiles:
    """The entries of one file, or of all files below a folder; one that moves within its file has not changed.

    Files are read as streams, and looking keeps little of their text: what it takes in memory grows with the number
    of entries, not with what they say.
    """

    def __init__(self, root: Path, files: Folder, parse: FileParser, max_chars: int) -> None:
        self.root = root
        self._files = files  # of the folder, or of the one that the file stands in
        self._parse = parse
        self._max_chars = max_chars  # characters of an entry

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the entries with what is known, reading only files whose time or size differ.

        Entries of a file that cannot be read stay known.
        """
        held: dict[str, dict[str, Fingerprint]] = {}
        single = "" if self.root.is_dir() else self.root.name
        for uri, one in fingerprints.items():
            held.setdefault(_file_uri(uri, single), {})[uri] = one
        files = self._scan_files({file: _file_fingerprint(entries.values()) for file, entries in held.items()})
        scan = Scan(problems=list(files.problems), load_texts=self._restore_texts)
        scan.deleted = [uri for file in files.deleted for uri in held[file]]
        room = _TEXT_BUDGET_CHARS
        for file in (*files.added, *files.updated):
            room -= self._compare_entries(scan, file, held.get(file.uri, {}), room)
        looked_at = {*files.deleted, *(file.uri for file in (*files.added, *files.updated))}
        scan.unchanged += sum(len(entries) for file, entries in held.items() if file not in looked_at)
        _find_moves(scan, fingerprints)
        scan.deleted.sort()
        return scan

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes of an entry's file."""
        return self._files.read(SourceEntry(self._file_of(entry), entry.size, entry.modified_ns))

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Say whether the file or folder is gone or unreadable, or empty while entries are known."""
        if self.root.is_dir():
            return self._files.has_vanished(known_uris)
        try:
            empty = not self.root.stat().st_size
        except OSError:
            return True
        return not os.access(self.root, os.R_OK) or (empty and any(True for _ in known_uris))

    def _scan_files(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the files with what is known of them."""
        if self.root.is_dir():
            return self._files.scan(fingerprints)
        name = self.root.name
        gone = sorted(fingerprints.keys() - {name})  # the root was a folder before
        try:
            seen = self.root.stat()
        except OSError as error:
            return Scan(problems=[Problem(name, f"cannot be read ({error.strerror}); check the path and its disk")])
        entry, old = SourceEntry(name, seen.st_size, seen.st_mtime_ns), fingerprints.get(name)
        if not seen.st_size:
            return Scan(problems=[Problem(name, "is empty; it is indexed as soon as something is in it")])
        if old is None:
            return Scan(added=[entry], deleted=gone)
        if old.modified_ns == seen.st_mtime_ns != 0 and old.size == seen.st_size:
            return Scan(deleted=gone)
        return Scan(updated=[entry], deleted=gone)

    def _compare_entries(self, scan: Scan, file: SourceEntry, old: Mapping[str, Fingerprint], text_budget: int) -> int:
        """Add to a scan how a file's entries differ; return how many characters of their texts are kept."""
        seen = time.time_ns()
        try:
            with self._files.open_stream(file) as (stream, file):
                found = self._read_excerpts(stream, file, text_budget)
        except SourceError as error:
            scan.unchanged += len(old)
            scan.problems.append(Problem(file.uri, str(error).removeprefix(f"{file.uri} ")))
            return 0
        there, kept = set(), 0
        for one in found:
            if old:
                there.add(one.uri)
            settled = SourceEntry(one.uri, one.size, one.modified_ns, seen, lines=one.lines)
            before = old.get(one.uri)
            if before is None:
                scan.added.append(one)
            elif before.content_hash != one.content_hash:
                scan.updated.append(one)
            else:
                scan.unchanged += 1
                # A time that cannot be trusted is no news: it would be written down at every scan.
                if before == Fingerprint(before.content_hash, one.size, settled.trusted_modified_ns(), one.lines.first):
                    continue
                scan.touched.append(settled)
                continue
            kept += one.length if one.text else 0
            scan.touched.append(settled)
        scan.deleted += [uri for uri in old if uri not in there]
        return kept

    def _read_excerpts(self, stream: BinaryIO, file: SourceEntry, text_budget: int) -> list[ExcerptEntry]:
        def made(name: str, digest: str, lines: LineSpan, length: int = 0, **how: Any) -> ExcerptEntry:
            uri = f"{file.uri}#{name}" if name else file.uri
            return ExcerptEntry(uri, file.size, file.modified_ns, 0, digest, length=length, lines=lines, **how)

        found: list[ExcerptEntry] = []
        named: list[_NamedEntry] = []
        try:
            parsed = self._parse(stream, file.uri, file.size, self._max_chars)
            for one in parsed.items:
                if isinstance(one, BadLine):
                    digest = _hash(one.reason, one.text)
                    found.append(made(f"L{one.line}", digest, WHOLE_FILE, problem=one.reason))
                    continue
                text, lines, name = _entry_parts(one, parsed.encoding)
                text_budget -= len(text.text)
                # Whatever does not fit is read again when its turn comes.
                kept = text if text_budget >= 0 else None
                named.append(_NamedEntry(name, _text_hash(text), lines, len(text.text), kept))
        except SourceError as error:
            return [made("", _hash(str(error), str(file.size)), WHOLE_FILE, problem=str(error))]
        if not named and not found:
            return [made("", _hash("nothing"), WHOLE_FILE, problem="holds no entries")]
        names = _unique_names(named, {one.uri.rpartition("#")[2] for one in found})
        # Each is let go of as it is used: of hundreds of thousands, twice would be too much.
        named.reverse()
        names.reverse()
        while named:
            last = named.pop()
            found.append(made(names.pop(), last.digest, last.lines, last.length, text=last.text))
        return found

    def _restore_texts(self, entries: Iterable[SourceEntry]) -> Iterator[SourceEntry]:
        """Return entries with the texts that looking has left out, reading their files once more."""
        for is_left_out, some in groupby(entries, lambda one: isinstance(one, ExcerptEntry) and one.needs_text):
            if not is_left_out:
                yield from some
                continue
            for (uri, _), those in groupby(some, self._run_key()):
                yield from self._reread_entries(uri, those)

    def _run_key(self) -> Callable[[SourceEntry], tuple[str, int]]:
        """Return what tells apart runs of entries that stand in one file in their order there.

        What is new in a file comes before what changed in it, so that it may have to be read twice.
        """
        last = run = 0

        def of(entry: SourceEntry) -> tuple[str, int]:
            nonlocal last, run
            run += entry.lines.first <= last
            last = entry.lines.first
            return self._file_of(entry), run

        return of

    def _file_of(self, entry: SourceEntry) -> str:
        return _file_uri(entry.uri, "" if self.root.is_dir() else self.root.name)

    def _reread_entries(self, uri: str, entries: Iterator[SourceEntry]) -> Iterator[SourceEntry]:
        """Return entries of one file, in the order they stand in it, with their texts unless the file has changed."""
        one = next(entries, None)
        with suppress(SourceError):  # whose text is still left out then is told of, and stays as it is known
            if one is not None:
                with self._files.open_stream(SourceEntry(uri, one.size, one.modified_ns)) as (stream, file):
                    parsed = self._parse(stream, file.uri, file.size, self._max_chars)
                    for memo in parsed.items:
                        if isinstance(memo, BadLine):
                            continue
                        text, lines, _ = _entry_parts(memo, parsed.encoding)
                        if isinstance(one, ExcerptEntry) and lines == one.lines:
                            yield replace(one, text=text) if _text_hash(text) == one.content_hash else one
                            one = next(entries, None)
                            if one is None:
                                return
        if one is not None:
            yield one
        yield from entries


class _NamedEntry(NamedTuple):
    name: str | None  # None: it is the whole file
    digest: str
    lines: LineSpan
    length: int
    text: Text | None


def _entry_parts(item: Memo | Text, encoding: str) -> tuple[Text, LineSpan, str | None]:
    """Return what an entry says, its lines and its name by what it says."""
    if isinstance(item, Text):
        return item, WHOLE_FILE, None
    text = Text(item.text, "text/plain", encoding, item.title, item.date, item.tags, item.body)
    return text, LineSpan(item.first_line, item.last_line), _entry_name(item)


def _file_uri(uri: str, single_file: str) -> str:
    """Return the file that an entry stands in."""
    if single_file and (uri == single_file or uri.startswith(f"{single_file}#")):
        return single_file
    # The name of an entry within its file has neither a dot nor a slash, the name of a file has a dot.
    file, mark, name = uri.rpartition("#")
    return uri if not mark or "." in name or "/" in name else file


def _file_fingerprint(entries: Iterable[Fingerprint]) -> Fingerprint:
    """Return what is known of a file by its entries: only if all say the same, its time can be trusted."""
    facts = {(one.size, one.modified_ns) for one in entries}
    size, modified_ns = facts.pop()
    return Fingerprint(_NO_HASH, size, 0 if facts else modified_ns)


def _find_moves(scan: Scan, fingerprints: Mapping[str, Fingerprint]) -> None:
    """Pair what left one place with what came to another, as after a file was renamed."""
    gone: dict[str, list[str]] = {}
    for uri in sorted(scan.deleted, reverse=True):
        gone.setdefault(fingerprints[uri].content_hash, []).append(uri)
    for one in scan.added:
        if isinstance(one, ExcerptEntry) and not one.problem and (olds := gone.get(one.content_hash)):
            scan.moved[one.uri] = olds.pop()


def _unique_names(entries: Sequence[_NamedEntry], used_names: set[str]) -> list[str]:
    """Return what each entry is called within its file: by what it says, never by where it stands.

    Entries of one date and title are told apart by their hash, so that none is renamed when another is moved.
    """
    number, copies = Counter(one.name for one in entries), Counter[str]()
    names = []
    for one in entries:
        if one.name is None:
            names.append("")
            continue
        name = one.name if number[one.name] == 1 and one.name not in used_names else f"{one.name}-{one.digest[:8]}"
        copy = name
        while copy in used_names:  # word for word the same
            copies[name] += 1
            copy = f"{name}-{copies[name] + 1}"
        used_names.add(copy)
        names.append(copy)
    return names


def _entry_name(memo: Memo) -> str:
    said = memo.key or memo.title or memo.text[memo.body :].lstrip()[:_MAX_NAME_LENGTH]
    name = _UNSAFE_CHARS.sub("-", normalise(said)).strip("-_")[:_MAX_NAME_LENGTH].strip("-_")
    return "-".join(part for part in ("" if memo.key else memo.date[:10], name) if part) or "entry"


def _text_hash(text: Text) -> str:
    # Tags and dates are among what a search asks for: a change of theirs must be seen too.
    return _hash(text.title, text.date, "\n".join(text.tags), text.text)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
