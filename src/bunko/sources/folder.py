"""Scan a folder for files that were added, changed, moved or deleted, and read them."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BufferedReader, BytesIO
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from bunko.errors import SourceError
from bunko.protocols import Look, Scan, Source
from bunko.readers.line_stream import MAX_READ_BYTES
from bunko.sources.gitignore import PathPatterns
from bunko.sources.kind import SourceKind, SourceSpec
from bunko.sources.walk import Walker, WalkResult, WalkRules, explain_os_error, ignore_folder
from bunko.types import Fingerprint, SourceEntry

_READ_ATTEMPTS = 3
# Opening a pipe must not block, and a link in the place of a file is not followed. Windows has neither flag.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))

_BEING_WRITTEN = "is being written", "wait until it is complete and import again"
_by_uri = attrgetter("uri")


class Folder:
    """The files below a folder that have one of the extensions and are neither excluded nor ignored by git.

    `names` is a regular expression for whole file names, in any case, that match without an extension.
    """

    def __init__(
        self,
        root: Path,
        *,
        extensions: Sequence[str],
        exclude_dirs: Sequence[str],
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        respect_gitignore: bool = True,
        max_file_bytes: int,
        limited_by: str = "scanner.max_file_bytes",
        names: str = "",
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._rules = WalkRules(
            self.root,
            tuple(f".{extension.lower().removeprefix('.')}" for extension in extensions),
            frozenset(name.rstrip("/") for name in exclude_dirs),
            PathPatterns(include) if include else None,
            PathPatterns(exclude) if exclude else None,
            respect_gitignore,
            re.compile(names, re.IGNORECASE) if names else None,
            max_file_bytes,
        )
        self._root_prefix = self._rules.root_prefix
        self._max_file_bytes, self._limited_by = max_file_bytes, limited_by
        # Files that only these rules find stay as they were indexed: they are neither read nor deleted.
        self.kept: Folder | None = None

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the files with their fingerprints, reading only files whose time or size differ.

        A file that exists but cannot be read, or is in a folder that cannot be listed, is a problem and is kept.
        A file that became empty, too large or not a regular file is a problem and is deleted.
        """
        return self.look().compare(fingerprints)

    def look(self, on_folder: Callable[[str], None] = ignore_folder) -> Look:
        """List the files; while the list stays the same, so does what a scan finds."""
        walk = self._walk(on_folder)
        walk.leave_out_unavailable()
        if self.kept is not None:
            walk.keep_files_of(self.kept._walk(on_folder))
        problems = sorted(walk.problems, key=_by_uri)
        skipped_folders = [self._root_prefix + uri for uri in sorted(walk.skipped)]
        state = walk.state()
        return Look(state, partial(self._compare, walk, state), problems, skipped_folders)

    def watch_root(self) -> Path | None:
        """Return the folder."""
        return self.root

    def watch_key(self) -> Hashable:
        """Return the rules for files."""
        kept_key = self.kept.watch_key() if self.kept is not None else None
        return type(self), self._rules, self._max_file_bytes, self._limited_by, kept_key

    def _walk(self, on_folder: Callable[[str], None]) -> WalkResult:
        return Walker(self._rules, self._find_excess, self._read_gitignore, on_folder).walk()

    def _compare(self, walk: WalkResult, state: str, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        walk.collect_plain_files()
        scan = Scan(state=state)
        added: list[SourceEntry] = []
        suspects: list[SourceEntry] = []
        for uri, (size, modified_ns) in walk.files.items():
            old = fingerprints.get(uri)
            if old is None:
                added.append(SourceEntry(uri, size, modified_ns))
            elif old.modified_ns == modified_ns != 0 and old.size == size:
                scan.unchanged += 1
            else:
                suspects.append(SourceEntry(uri, size, modified_ns))
        self._compare_suspects(scan, suspects, fingerprints, walk)
        unlisted = tuple(walk.unlisted)
        scan.deleted = sorted(
            uri
            for uri in fingerprints
            if uri not in walk.files and uri not in walk.unreadable and not uri.startswith(unlisted)
        )
        self._add_new_files(scan, added, fingerprints, walk)
        scan.problems = sorted(walk.problems, key=_by_uri)
        scan.skipped_folders = [self._root_prefix + uri for uri in sorted(walk.skipped)]
        return scan

    def read(self, entry: SourceEntry) -> tuple[bytes, SourceEntry]:
        """Return the bytes of a file and its entry at that time; raise SourceError if it keeps changing."""
        for _ in range(_READ_ATTEMPTS):
            try:
                with self._open_file(entry.uri) as file:
                    before = os.fstat(file.fileno())
                    if not self._is_same_file(entry.uri, before):
                        continue
                    if before.st_size > self._limit(entry.uri)[0]:
                        raise _source_error(entry.uri, *self._too_large_problem(entry.uri, before.st_size))
                    content = file.read(before.st_size + 1)
                    after = os.fstat(file.fileno())
            except OSError as error:
                raise _source_error(entry.uri, *explain_os_error(error)) from error
            if len(content) == before.st_size == after.st_size and before.st_mtime_ns == after.st_mtime_ns:
                return content, _entry(entry.uri, after)
        raise _source_error(entry.uri, *_BEING_WRITTEN)

    @contextmanager
    def open_stream(self, entry: SourceEntry) -> Iterator[tuple[BinaryIO, SourceEntry]]:
        """Yield a file as a stream, and its entry; raise SourceError if it changes while it is read.

        A small file is read at once, so that it cannot change halfway.
        """
        if entry.size <= MAX_READ_BYTES:
            content, entry = self.read(entry)
            yield BytesIO(content), entry
            return
        try:
            with self._open_file(entry.uri) as file:
                before = os.fstat(file.fileno())
                if before.st_size > self._limit(entry.uri)[0]:
                    raise _source_error(entry.uri, *self._too_large_problem(entry.uri, before.st_size))
                if not self._is_same_file(entry.uri, before):
                    raise _source_error(entry.uri, *_BEING_WRITTEN)
                yield file, _entry(entry.uri, before)
                after = os.fstat(file.fileno())
        except OSError as error:
            raise _source_error(entry.uri, *explain_os_error(error)) from error
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise _source_error(entry.uri, *_BEING_WRITTEN)

    def has_vanished(self, known_uris: Iterable[str]) -> bool:
        """Return whether the folder is missing or unreadable, or empty although files are known (an unmounted disk)."""
        try:
            with os.scandir(self.root) as entries:
                is_empty = next(entries, None) is None
        except OSError:
            return True
        return is_empty and any(True for _ in known_uris)

    def _compare_suspects(
        self, scan: Scan, suspects: list[SourceEntry], fingerprints: Mapping[str, Fingerprint], walk: WalkResult
    ) -> None:
        now = time.time_ns()
        for entry in sorted(suspects, key=_by_uri):
            old = fingerprints[entry.uri]
            digest = self._digest(entry.uri, walk, read_content=entry.size == old.size)
            if digest is None:
                scan.state = ""
                continue
            if digest != old.content_hash:
                scan.updated.append(entry)
                continue
            scan.unchanged += 1
            # A time that cannot be trusted is not a change: it would be written at every scan.
            entry = replace(entry, seen_ns=now)
            if entry.trusted_modified_ns() != old.modified_ns:
                scan.touched.append(entry)
            else:
                scan.state = ""  # it may change again without another time or size

    def _add_new_files(
        self, scan: Scan, added: list[SourceEntry], fingerprints: Mapping[str, Fingerprint], walk: WalkResult
    ) -> None:
        deleted_by_content: dict[tuple[int, str], list[str]] = {}
        for uri in reversed(scan.deleted):
            deleted_by_content.setdefault((fingerprints[uri].size, fingerprints[uri].content_hash), []).append(uri)
        sizes = {size for size, _ in deleted_by_content}
        for entry in sorted(added, key=_by_uri):
            digest = self._digest(entry.uri, walk, read_content=entry.size in sizes)
            if digest is None:
                scan.state = ""
                continue
            scan.added.append(entry)
            if old_uris := deleted_by_content.get((entry.size, digest)):
                scan.moved[entry.uri] = old_uris.pop()

    def _digest(self, uri: str, walk: WalkResult, *, read_content: bool) -> str | None:
        """Return the SHA-256 of a file, "" without `read_content`, None if it cannot be read.

        The file is opened in any case: an unreadable file is a problem, not a change to report at every scan.
        """
        try:
            with self._open_file(uri) as file:
                return hashlib.file_digest(file, "sha256").hexdigest() if read_content else ""
        except FileNotFoundError:
            del walk.files[uri]
        except OSError as error:
            walk.unreadable.add(uri)
            walk.report_problem(uri, *explain_os_error(error))
        return None

    def _open_file(self, uri: str) -> BufferedReader:
        descriptor = os.open(self._root_prefix + uri, _OPEN_FLAGS)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a regular file")

    def _is_same_file(self, uri: str, file_stat: os.stat_result) -> bool:
        # A folder on the path may have become a link since the scan. Checking the file that is already open
        # leaves no gap for a race.
        real = os.path.realpath(self._root_prefix + uri, strict=True)
        if not real.startswith(self._root_prefix):
            raise OSError(errno.ELOOP, "a link that leaves the folder")
        return os.path.samestat(Path(real).stat(), file_stat)

    def _limit(self, uri: str) -> tuple[int, str]:
        """Return the maximum size of a file, and the setting that says so."""
        return self._max_file_bytes, self._limited_by

    def _find_excess(self, uri: str, size: int) -> tuple[str, str] | None:
        return self._too_large_problem(uri, size) if size > self._limit(uri)[0] else None

    def _read_gitignore(self, uri: str) -> bytes:
        return self.read(SourceEntry(uri, 0, 0))[0]

    def _too_large_problem(self, uri: str, size: int) -> tuple[str, str]:
        limit, setting = self._limit(uri)
        return f"has {size:,} bytes, more than the limit of {limit:,}", f"raise {setting} to index it"


def _entry(uri: str, file_stat: os.stat_result) -> SourceEntry:
    return SourceEntry(uri, file_stat.st_size, file_stat.st_mtime_ns)


def _source_error(uri: str, problem: str, remedy: str) -> SourceError:
    return SourceError(f"{uri} {problem}", hint=f"{remedy[0].upper()}{remedy[1:]}.")


def _build_source(spec: SourceSpec) -> Source:
    from bunko.sources.documents import build  # here: it is built on this module

    return build(spec)


KIND = SourceKind(
    _build_source,
    root="folder",
    uses_extensions=True,
    noun=("file", "files"),
    label="documents",
    import_command="bunko import",
)
