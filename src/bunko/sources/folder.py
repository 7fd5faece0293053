"""Scan a folder for files that were added, changed, moved or deleted, and read them."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BufferedReader, BytesIO
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from bunko.errors import SourceError
from bunko.protocols import Scan, Source
from bunko.readers.line_stream import MAX_READ_BYTES
from bunko.sources.gitignore import PathPatterns, parse_patterns
from bunko.sources.kind import SourceKind, SourceSpec
from bunko.sources.vaults import is_vault_internal
from bunko.sources.walk_result import MACHINE_FOLDERS, WalkResult
from bunko.types import Fingerprint, SourceEntry

_READ_ATTEMPTS = 3
# Opening a pipe must not block, and a link in the place of a file is not followed. Windows has neither flag.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"))

# Office programs keep such a file beside each open document; it says who has opened it.
_OWNER_FILE_PREFIX = "~$"

_BEING_WRITTEN = "is being written", "wait until it is complete and import again"
_NOT_REGULAR = "is not a regular file (but a pipe, a socket or a device)", "remove it or exclude it"

# The .gitignore files that apply, the deepest first, each with the length of its folder's uri.
_GitignoreRules = tuple[tuple[int, PathPatterns], ...]
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
        self._root_prefix = str(self.root).rstrip(os.sep) + os.sep
        self._extensions = tuple(f".{extension.lower().removeprefix('.')}" for extension in extensions)
        self._exclude_dirs = frozenset(name.rstrip("/") for name in exclude_dirs)
        self._include = PathPatterns(include) if include else None
        self._exclude = PathPatterns(exclude) if exclude else None
        self._respect_gitignore = respect_gitignore
        self._max_file_bytes, self._limited_by = max_file_bytes, limited_by
        self._names = re.compile(names, re.IGNORECASE) if names else None

    def scan(self, fingerprints: Mapping[str, Fingerprint]) -> Scan:
        """Compare the files with their fingerprints, reading only files whose time or size differ.

        A file that exists but cannot be read, or is in a folder that cannot be listed, is a problem and is kept.
        A file that became empty, too large or not a regular file is a problem and is deleted.
        """
        walk = self._walk_folder()
        walk.leave_out_unavailable()
        scan = Scan()
        added: list[SourceEntry] = []
        suspects: list[SourceEntry] = []
        for uri, file_stat in walk.files.items():
            old = fingerprints.get(uri)
            if old is None:
                added.append(_entry(uri, file_stat))
            elif old.modified_ns == file_stat.st_mtime_ns != 0 and old.size == file_stat.st_size:
                scan.unchanged += 1
            else:
                suspects.append(_entry(uri, file_stat))
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
                raise _source_error(entry.uri, *_explain_os_error(error)) from error
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
            raise _source_error(entry.uri, *_explain_os_error(error)) from error
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
                continue
            if digest != old.content_hash:
                scan.updated.append(entry)
                continue
            scan.unchanged += 1
            # A time that cannot be trusted is not a change: it would be written at every scan.
            entry = replace(entry, seen_ns=now)
            if entry.trusted_modified_ns() != old.modified_ns:
                scan.touched.append(entry)

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
            walk.report_problem(uri, *_explain_os_error(error))
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

    def _too_large_problem(self, uri: str, size: int) -> tuple[str, str]:
        limit, setting = self._limit(uri)
        return f"has {size:,} bytes, more than the limit of {limit:,}", f"raise {setting} to index it"

    def _walk_folder(self) -> WalkResult:
        walk = WalkResult()
        folders: list[tuple[str, _GitignoreRules, bool]] = [("", (), self._include is None)]
        while folders:
            prefix, rules, included = folders.pop()
            try:
                with os.scandir(self._root_prefix + prefix) as listing:
                    entries = list(listing)
            except OSError as error:
                if not prefix:
                    raise _root_error(self.root, error) from error
                walk.unlisted.append(prefix)
                # A folder deleted during the scan is not a problem, but its files are not treated as deleted yet.
                if not isinstance(error, FileNotFoundError):
                    problem = f"cannot be listed ({error.strerror}), so its indexed files are kept"
                    walk.report_problem(prefix[:-1], problem, "check its permissions and its disk, or exclude it")
                continue
            if self._respect_gitignore:
                rules = self._add_gitignore_rules(prefix, entries, rules, walk)
            for entry in entries:
                self._visit_entry(entry, prefix, rules, included, folders, walk)
        return walk

    def _visit_entry(
        self,
        entry: os.DirEntry[str],
        prefix: str,
        rules: _GitignoreRules,
        included: bool,
        folders: list[tuple[str, _GitignoreRules, bool]],
        walk: WalkResult,
    ) -> None:
        name = entry.name
        uri = prefix + name
        name_matches = name.lower().endswith(self._extensions) and not name.startswith(_OWNER_FILE_PREFIX)
        if not name_matches and self._names is not None:
            name_matches = self._names.fullmatch(name) is not None
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_link = entry.is_symlink()
            if (is_folder or is_link) and name in self._exclude_dirs:
                if is_folder and name not in MACHINE_FOLDERS:
                    walk.skipped.append(uri)
                return
            if not (name_matches or is_folder or is_link):
                return
            if (is_folder and is_vault_internal(uri)) or self._is_ignored(uri, name, rules, is_folder=is_folder):
                return
            if self._include is not None:
                verdict = self._include.verdict(uri, name, is_folder=is_folder)
                included = included if verdict is None else verdict
            if not included and not is_folder:
                return
            if is_link:
                self._check_link(uri, name_matches, walk)
            elif not _is_unicode(name):
                walk.report_problem(uri, "has a name that is not valid Unicode", "rename it")
            elif is_folder:
                folders.append((uri + "/", rules, included))
            else:
                self._record_file(uri, entry.stat(follow_symlinks=False), walk)
        except FileNotFoundError:
            return
        except OSError as error:
            walk.unreadable.add(uri)
            walk.unlisted.append(f"{uri}/")  # it may be a folder
            walk.report_problem(uri, *_explain_os_error(error))

    def _is_ignored(self, uri: str, name: str, rules: _GitignoreRules, *, is_folder: bool) -> bool:
        if self._exclude is not None and self._exclude.verdict(uri, name, is_folder=is_folder):
            return True
        for start, rule in rules:
            verdict = rule.verdict(uri[start:], name, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def _add_gitignore_rules(
        self, prefix: str, entries: list[os.DirEntry[str]], rules: _GitignoreRules, walk: WalkResult
    ) -> _GitignoreRules:
        if not any(entry.name == ".gitignore" for entry in entries):
            return rules
        uri = f"{prefix}.gitignore"
        try:
            content, _ = self.read(SourceEntry(uri, 0, 0))
        except SourceError as error:
            problem = error.message.removeprefix(f"{uri} ")
            walk.report_problem(
                uri, f"{problem}, so the files it ignores are indexed", "make it a readable regular file"
            )
            return rules
        return ((len(prefix), parse_patterns(content.decode(errors="surrogateescape"))), *rules)

    def _check_link(self, uri: str, name_matches: bool, walk: WalkResult) -> None:
        """Report a link that is broken or leaves the folder; a target inside the folder is indexed by its own path."""
        try:
            real = os.path.realpath(self._root_prefix + uri, strict=True)
        except OSError as error:
            # A broken link may have pointed to a folder; with another extension it pointed to a file we skip.
            if not name_matches and Path(uri).suffix:
                return
            if error.errno == errno.ELOOP:
                walk.report_problem(uri, "is a link that points to itself", "remove it or point it at a file")
            elif isinstance(error, FileNotFoundError | NotADirectoryError):
                walk.report_problem(uri, "is a broken link", "remove it or restore its target")
            else:
                walk.report_problem(uri, *_explain_os_error(error))
            return
        is_inside = real.startswith(self._root_prefix) or real == str(self.root)
        if not is_inside and (name_matches or Path(real).is_dir()):
            walk.report_problem(
                uri,
                "is a link to a target outside the folder",
                "copy its target here, or index the target separately",
            )

    def _record_file(self, uri: str, file_stat: os.stat_result, walk: WalkResult) -> None:
        if not stat.S_ISREG(file_stat.st_mode):
            walk.report_problem(uri, *_NOT_REGULAR)
        elif file_stat.st_size == 0:
            walk.report_problem(uri, "is empty", "it will be indexed when it has content")
        elif file_stat.st_size > self._limit(uri)[0]:
            walk.report_problem(uri, *self._too_large_problem(uri, file_stat.st_size))
        else:
            walk.files[uri] = file_stat


def _entry(uri: str, file_stat: os.stat_result) -> SourceEntry:
    return SourceEntry(uri, file_stat.st_size, file_stat.st_mtime_ns)


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _explain_os_error(error: OSError) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return "no longer exists", "the next import removes it from the index"
    if error.errno == errno.ENXIO:  # also raised by opening a socket
        return _NOT_REGULAR
    if error.errno == errno.ELOOP:
        return "is reached through a link", "replace the link with the file"
    return f"cannot be read ({error.strerror})", "check its permissions and its disk, or exclude it"


def _source_error(uri: str, problem: str, remedy: str) -> SourceError:
    return SourceError(f"{uri} {problem}", hint=f"{remedy[0].upper()}{remedy[1:]}.")


def _root_error(root: Path, error: OSError) -> SourceError:
    return SourceError(
        f"The folder {root} cannot be read: {error.strerror}",
        hint="Check the path, that its disk is mounted, and that you have permission to list it.",
    )


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
