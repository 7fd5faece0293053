"""Files that hold many entries and what is known of them come in; which entries are new, changed or gone goes out."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bunko.errors import SourceError
from bunko.protocols import Scan
from bunko.readers.memo import Bad, Memo
from bunko.sources.folder import Folder
from bunko.text.normalise import normalise
from bunko.types import WHOLE_FILE, Entry, Excerpt, Known, Lines, Problem, Text

_LONGEST_NAME = 60
_UNSAFE = re.compile(r"\W+")
# Of a file of many entries: where time or size differ, it is read and its entries are compared.
_NO_HASH = "none"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds: entries and lines that are none, or one document that is all of it."""

    encoding: str
    memos: Sequence[Memo] = ()
    bad: Sequence[Bad] = ()
    whole: Text | None = None


Parse = Callable[[bytes, str], Parsed]


class Entries:
    """The entries of one file, or of all files below a folder; one that moves within its file has not changed."""

    def __init__(self, root: Path, files: Folder, parse: Parse) -> None:
        self.root = root
        self._files = files  # of the folder, or of the one that the file stands in
        self._parse = parse

    def scan(self, known: Mapping[str, Known]) -> Scan:
        """Compare the entries with what is known, reading only files whose time or size differ.

        Entries of a file that cannot be read stay known.
        """
        held: dict[str, dict[str, Known]] = {}
        single = "" if self.root.is_dir() else self.root.name
        for uri, one in known.items():
            held.setdefault(_file(uri, single), {})[uri] = one
        files = self._look({file: _together(entries.values()) for file, entries in held.items()})
        scan = Scan(problems=list(files.problems))
        scan.deleted = [uri for file in files.deleted for uri in held[file]]
        for file in (*files.added, *files.updated):
            self._compare(scan, file, held.get(file.uri, {}))
        looked_at = {*files.deleted, *(file.uri for file in (*files.added, *files.updated))}
        scan.unchanged += sum(len(entries) for file, entries in held.items() if file not in looked_at)
        _find_moves(scan, known)
        scan.deleted.sort()
        return scan

    def read(self, entry: Entry) -> tuple[bytes, Entry]:
        """Return the bytes of an entry's file."""
        file = _file(entry.uri, "" if self.root.is_dir() else self.root.name)
        return self._files.read(Entry(file, entry.size, entry.modified_ns))

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

    def _compare(self, scan: Scan, file: Entry, old: Mapping[str, Known]) -> None:
        seen = time.time_ns()
        try:
            content, file = self._files.read(file)
        except SourceError as error:
            scan.unchanged += len(old)
            scan.problems.append(Problem(file.uri, str(error).removeprefix(f"{file.uri} ")))
            return
        there = set()
        for one in self._excerpts(content, file):
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
        scan.deleted += [uri for uri in old if uri not in there]

    def _excerpts(self, content: bytes, file: Entry) -> Iterator[Excerpt]:
        def made(uri: str, digest: str, text: Text | None, lines: Lines = WHOLE_FILE, problem: str = "") -> Excerpt:
            return Excerpt(uri, file.size, file.modified_ns, 0, digest, text, problem, lines=lines)

        try:
            parsed = self._parse(content, file.uri)
        except SourceError as error:
            yield made(file.uri, _hash(hashlib.sha256(content).hexdigest()), None, problem=str(error))
            return
        if parsed.whole is not None:
            yield made(file.uri, _of_text(parsed.whole), parsed.whole)
        elif not parsed.memos and not parsed.bad:
            yield made(file.uri, _hash("nothing"), None, problem="holds no entries")
        for bad in parsed.bad:
            yield made(f"{file.uri}#L{bad.line}", _hash(bad.reason, bad.text), None, problem=bad.reason)
        texts = [
            Text(memo.text, "text/plain", parsed.encoding, memo.title, memo.date, memo.tags, memo.body)
            for memo in parsed.memos
        ]
        digests = [_of_text(text) for text in texts]
        names = _names(parsed.memos, digests, {f"L{bad.line}" for bad in parsed.bad})
        for memo, text, digest, name in zip(parsed.memos, texts, digests, names, strict=True):
            yield made(f"{file.uri}#{name}", digest, text, Lines(memo.first_line, memo.last_line))


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
        if isinstance(one, Excerpt) and one.text is not None and (olds := gone.get(one.content_hash)):
            scan.moved[one.uri] = olds.pop()


def _names(memos: Sequence[Memo], digests: Sequence[str], taken: set[str]) -> list[str]:
    """Return what each entry is called within its file: by what it says, never by where it stands.

    Entries of one date and title are told apart by their hash, so that none is renamed when another is moved.
    """
    plain = [_name(memo) for memo in memos]
    number, copies = Counter(plain), Counter[str]()
    names = []
    for name, digest in zip(plain, digests, strict=True):
        name = name if number[name] == 1 and name not in taken else f"{name}-{digest[:8]}"
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
