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
from bunko.readers.line_stream import Read
from bunko.readers.memo import Bad, Memo, few_bad, with_damage
from bunko.sources.folder import Folder
from bunko.text.normalise import normalise
from bunko.types import WHOLE_FILE, Entry, Excerpt, Known, Lines, Problem, Text

_LONGEST_NAME = 60
_UNSAFE = re.compile(r"\W+")
# Of a file of many entries: where time or size differ, it is read and its entries are compared.
_NO_HASH = "none"
# Characters of text that looking for changes keeps; where there are more, they are read again as they are needed.
_KEPT = 8_000_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds, one thing after the other: entries and lines that are none, or a text that is all of it."""

    encoding: str
    found: Iterator[Memo | Bad | Text]


# An open file, its name, its size, and the most characters that an entry may have.
Parse = Callable[[BinaryIO, str, int, int], Parsed]


def told(read: Read, entries: Callable[[Iterator[str]], Iterable[Memo | Bad | Text]]) -> Iterator[Memo | Bad | Text]:
    """Return what lines hold, and at last which of them are damaged; of many bad ones a few."""
    if not read.is_damaged:
        return few_bad(entries(read.lines))
    damaged: list[Bad] = []

    def all_of_it() -> Iterator[Memo | Bad | Text]:
        bad = set()
        for one in entries(with_damage(read.lines, damaged)):
            bad.add(one.line if isinstance(one, Bad) else 0)
            yield one
        yield from (one for one in damaged if one.line not in bad)

    return few_bad(all_of_it())


class Entries:
    """The entries of one file, or of all files below a folder; one that moves within its file has not changed.

    Files are read as streams, and looking keeps little of their text: what it takes in memory grows with the number
    of entries, not with what they say.
    """

    def __init__(self, root: Path, files: Folder, parse: Parse, most: int) -> None:
        self.root = root
        self._files = files  # of the folder, or of the one that the file stands in
        self._parse = parse
        self._most = most  # characters of an entry

    def scan(self, known: Mapping[str, Known]) -> Scan:
        """Compare the entries with what is known, reading only files whose time or size differ.

        Entries of a file that cannot be read stay known.
        """
        held: dict[str, dict[str, Known]] = {}
        single = "" if self.root.is_dir() else self.root.name
        for uri, one in known.items():
            held.setdefault(_file(uri, single), {})[uri] = one
        files = self._look({file: _together(entries.values()) for file, entries in held.items()})
        scan = Scan(problems=list(files.problems), texts=self._texts)
        scan.deleted = [uri for file in files.deleted for uri in held[file]]
        room = _KEPT
        for file in (*files.added, *files.updated):
            room -= self._compare(scan, file, held.get(file.uri, {}), room)
        looked_at = {*files.deleted, *(file.uri for file in (*files.added, *files.updated))}
        scan.unchanged += sum(len(entries) for file, entries in held.items() if file not in looked_at)
        _find_moves(scan, known)
        scan.deleted.sort()
        return scan

    def read(self, entry: Entry) -> tuple[bytes, Entry]:
        """Return the bytes of an entry's file."""
        return self._files.read(Entry(self._file_of(entry), entry.size, entry.modified_ns))

    def lost(self, known: Iterable[str]) -> bool:
        """Say whether the file or folder is gone or unreadable, or empty while entries are known."""
        if self.root.is_dir():
            return self._files.lost(known)
        try:
            empty = not self.root.stat().st_size
        except OSError:
            return True
        return not os.access(self.root, os.R_OK) or (empty and any(True for _ in known))

    def _look(self, known: Mapping[str, Known]) -> Scan:
        """Compare the files with what is known of them."""
        if self.root.is_dir():
            return self._files.scan(known)
        name = self.root.name
        gone = sorted(known.keys() - {name})  # the root was a folder before
        try:
            seen = self.root.stat()
        except OSError as error:
            return Scan(problems=[Problem(name, f"cannot be read ({error.strerror}); check the path and its disk")])
        entry, old = Entry(name, seen.st_size, seen.st_mtime_ns), known.get(name)
        if not seen.st_size:
            return Scan(problems=[Problem(name, "is empty; it is indexed as soon as something is in it")])
        if old is None:
            return Scan(added=[entry], deleted=gone)
        if old.modified_ns == seen.st_mtime_ns != 0 and old.size == seen.st_size:
            return Scan(deleted=gone)
        return Scan(updated=[entry], deleted=gone)

    def _compare(self, scan: Scan, file: Entry, old: Mapping[str, Known], room: int) -> int:
        """Add to a scan how a file's entries differ; return how many characters of their texts are kept."""
        seen = time.time_ns()
        try:
            with self._files.opened(file) as (stream, file):
                found = self._excerpts(stream, file, room)
        except SourceError as error:
            scan.unchanged += len(old)
            scan.problems.append(Problem(file.uri, str(error).removeprefix(f"{file.uri} ")))
            return 0
        there, kept = set(), 0
        for one in found:
            if old:
                there.add(one.uri)
            settled = Entry(one.uri, one.size, one.modified_ns, seen, lines=one.lines)
            before = old.get(one.uri)
            if before is None:
                scan.added.append(one)
            elif before.content_hash != one.content_hash:
                scan.updated.append(one)
            else:
                scan.unchanged += 1
                # A time that cannot be trusted is no news: it would be written down at every scan.
                if before == Known(before.content_hash, one.size, settled.trusted_ns(), one.lines.first):
                    continue
                scan.touched.append(settled)
                continue
            kept += one.length if one.text else 0
            scan.touched.append(settled)
        scan.deleted += [uri for uri in old if uri not in there]
        return kept

    def _excerpts(self, stream: BinaryIO, file: Entry, room: int) -> list[Excerpt]:
        def made(name: str, digest: str, lines: Lines, length: int = 0, **how: Any) -> Excerpt:
            uri = f"{file.uri}#{name}" if name else file.uri
            return Excerpt(uri, file.size, file.modified_ns, 0, digest, length=length, lines=lines, **how)

        found: list[Excerpt] = []
        named: list[_Named] = []
        try:
            parsed = self._parse(stream, file.uri, file.size, self._most)
            for one in parsed.found:
                if isinstance(one, Bad):
                    digest = _hash(one.reason, one.text)
                    found.append(made(f"L{one.line}", digest, WHOLE_FILE, problem=one.reason))
                    continue
                text, lines, name = _read(one, parsed.encoding)
                room -= len(text.text)
                # Whatever does not fit is read again when its turn comes.
                kept = text if room >= 0 else None
                named.append(_Named(name, _of_text(text), lines, len(text.text), kept))
        except SourceError as error:
            return [made("", _hash(str(error), str(file.size)), WHOLE_FILE, problem=str(error))]
        if not named and not found:
            return [made("", _hash("nothing"), WHOLE_FILE, problem="holds no entries")]
        names = _names(named, {one.uri.rpartition("#")[2] for one in found})
        # Each is let go of as it is used: of hundreds of thousands, twice would be too much.
        named.reverse()
        names.reverse()
        while named:
            last = named.pop()
            found.append(made(names.pop(), last.digest, last.lines, last.length, text=last.text))
        return found

    def _texts(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Return entries with the texts that looking has left out, reading their files once more."""
        for is_left_out, some in groupby(entries, lambda one: isinstance(one, Excerpt) and one.is_left_out):
            if not is_left_out:
                yield from some
                continue
            for (uri, _), those in groupby(some, self._run_of()):
                yield from self._again(uri, those)

    def _run_of(self) -> Callable[[Entry], tuple[str, int]]:
        """Return what tells apart runs of entries that stand in one file in their order there.

        What is new in a file comes before what changed in it, so that it may have to be read twice.
        """
        last = run = 0

        def of(entry: Entry) -> tuple[str, int]:
            nonlocal last, run
            run += entry.lines.first <= last
            last = entry.lines.first
            return self._file_of(entry), run

        return of

    def _file_of(self, entry: Entry) -> str:
        return _file(entry.uri, "" if self.root.is_dir() else self.root.name)

    def _again(self, uri: str, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Return entries of one file, in the order they stand in it, with their texts unless the file has changed."""
        one = next(entries, None)
        with suppress(SourceError):  # whose text is still left out then is told of, and stays as it is known
            if one is not None:
                with self._files.opened(Entry(uri, one.size, one.modified_ns)) as (stream, file):
                    parsed = self._parse(stream, file.uri, file.size, self._most)
                    for memo in parsed.found:
                        if isinstance(memo, Bad):
                            continue
                        text, lines, _ = _read(memo, parsed.encoding)
                        if isinstance(one, Excerpt) and lines == one.lines:
                            yield replace(one, text=text) if _of_text(text) == one.content_hash else one
                            one = next(entries, None)
                            if one is None:
                                return
        if one is not None:
            yield one
        yield from entries


class _Named(NamedTuple):
    name: str | None  # None: it is the whole file
    digest: str
    lines: Lines
    length: int
    text: Text | None


def _read(found: Memo | Text, encoding: str) -> tuple[Text, Lines, str | None]:
    """Return what an entry says, its lines and its name by what it says."""
    if isinstance(found, Text):
        return found, WHOLE_FILE, None
    text = Text(found.text, "text/plain", encoding, found.title, found.date, found.tags, found.body)
    return text, Lines(found.first_line, found.last_line), _name(found)


def _file(uri: str, single: str) -> str:
    """Return the file that an entry stands in."""
    if single and (uri == single or uri.startswith(f"{single}#")):
        return single
    # The name of an entry within its file has neither a dot nor a slash, the name of a file has a dot.
    file, mark, name = uri.rpartition("#")
    return uri if not mark or "." in name or "/" in name else file


def _together(entries: Iterable[Known]) -> Known:
    """Return what is known of a file by its entries: only if all say the same, its time can be trusted."""
    facts = {(one.size, one.modified_ns) for one in entries}
    size, modified_ns = facts.pop()
    return Known(_NO_HASH, size, 0 if facts else modified_ns)


def _find_moves(scan: Scan, known: Mapping[str, Known]) -> None:
    """Pair what left one place with what came to another, as after a file was renamed."""
    gone: dict[str, list[str]] = {}
    for uri in sorted(scan.deleted, reverse=True):
        gone.setdefault(known[uri].content_hash, []).append(uri)
    for one in scan.added:
        if isinstance(one, Excerpt) and not one.problem and (olds := gone.get(one.content_hash)):
            scan.moved[one.uri] = olds.pop()


def _names(found: Sequence[_Named], taken: set[str]) -> list[str]:
    """Return what each entry is called within its file: by what it says, never by where it stands.

    Entries of one date and title are told apart by their hash, so that none is renamed when another is moved.
    """
    number, copies = Counter(one.name for one in found), Counter[str]()
    names = []
    for one in found:
        if one.name is None:
            names.append("")
            continue
        name = one.name if number[one.name] == 1 and one.name not in taken else f"{one.name}-{one.digest[:8]}"
        copy = name
        while copy in taken:  # word for word the same
            copies[name] += 1
            copy = f"{name}-{copies[name] + 1}"
        taken.add(copy)
        names.append(copy)
    return names


def _name(memo: Memo) -> str:
    said = memo.key or memo.title or memo.text[memo.body :].lstrip()[:_LONGEST_NAME]
    name = _UNSAFE.sub("-", normalise(said)).strip("-_")[:_LONGEST_NAME].strip("-_")
    return "-".join(part for part in ("" if memo.key else memo.date[:10], name) if part) or "entry"


def _of_text(text: Text) -> str:
    # Tags and dates are among what a search asks for: a change of theirs must be seen too.
    return _hash(text.title, text.date, "\n".join(text.tags), text.text)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
