"""Walk through a folder: which files it has that are neither excluded nor ignored, with their sizes and times."""

from __future__ import annotations

import errno
import os
import re
import stat
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from bunko.errors import SourceError
from bunko.readers import unavailable_readers
from bunko.runtime.installation import install_command
from bunko.sources.gitignore import PathPatterns, parse_patterns
from bunko.types import Problem

# Folders that programs fill: if they are skipped, no document is missed.
MACHINE_FOLDERS = frozenset({".git", ".rag-index", "__pycache__"})


@dataclass(slots=True)
class WalkResult:
    """What a walk through a folder found."""

    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and time in nanoseconds, by uri
    # The ordinary files of each folder: its uri, their names, and size and time of each in turn. `files` lacks them
    # until they are needed: a look that finds nothing new does not.
    plain_files: list[tuple[str, list[str], list[int]]] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)  # exist, but cannot be read
    unlisted: list[str] = field(default_factory=list)  # folders, with a trailing slash
    skipped: list[str] = field(default_factory=list)  # folders that are excluded by their names
    problems: list[Problem] = field(default_factory=list)

    def report_problem(self, uri: str, problem: str, remedy: str, *, package: str = "", files: int = 1) -> None:
        """Add a problem of one file, or of several like it, with what to do about it."""
        printable = uri.encode(errors="backslashreplace").decode()
        self.problems.append(Problem(printable, f"{problem}; {remedy}", package=package, files=files))

    def state(self) -> str:
        """Return a digest of everything found, or an empty string if a time is beyond all calendars."""
        try:
            stats = array("q", chain.from_iterable(self.files.values()))
            for _, _, plain_stats in self.plain_files:
                stats.fromlist(plain_stats)
        except OverflowError:
            return ""
        names = [*self.files, "", *sorted(self.unreadable), "", *self.unlisted, "", *self.skipped, ""]
        names += [f"{problem.uri}\n{problem.reason}" for problem in self.problems]
        for prefix, plain_names, _ in self.plain_files:
            names += ("", prefix, *plain_names)
        digest = blake2b("\0".join(names).encode(errors="surrogateescape"), digest_size=16)
        digest.update(stats)
        return digest.hexdigest()

    def collect_plain_files(self) -> None:
        """Add the ordinary files to the others."""
        for prefix, names, stats in self.plain_files:
            self.files.update(
                zip([prefix + name for name in names], zip(stats[::2], stats[1::2], strict=True), strict=True)
            )
        self.plain_files.clear()

    def keep_files_of(self, other: WalkResult) -> None:
        """Count what another walk found as unreadable, unless this one found it too: it stays as it was indexed."""
        other.collect_plain_files()
        self.unreadable.update(other.files, other.unreadable)
        self.unlisted += other.unlisted

    def leave_out_unavailable(self) -> None:
        """Move files whose reader is not installed to the unreadable ones, so that they are read once it is.

        They are one problem for each format: a folder may hold thousands of such files.
        """
        for reader in unavailable_readers():
            uris = sorted(uri for uri in self.files if uri.lower().endswith(reader.suffixes))
            if not uris:
                continue
            for uri in uris:
                del self.files[uri]
            self.unreadable.update(uris)
            problem = f"cannot be read without the package {reader.package}"
            if len(uris) == 2:
                problem = f"cannot be read without the package {reader.package} (like 1 more file of this format)"
            elif len(uris) > 2:
                count = f"{len(uris) - 1:,}"
                problem = (
                    f"cannot be read without the package {reader.package} (like {count} more files of this format)"
                )
            self.report_problem(
                uris[0],
                problem,
                f"install it with: {install_command(reader.extra, package='' if reader.extra else reader.package)}",
                package=reader.package,
                files=len(uris),
            )


# Office programs keep such a file beside each open document; it says who has opened it.
_OWNER_FILE_PREFIX = "~$"
_TYPE_BITS = 0o170000  # of a file's mode
NOT_REGULAR = "is not a regular file (but a pipe, a socket or a device)", "remove it or exclude it"

# The .gitignore files that apply, the deepest first, each with the length of its folder's uri.
_GitignoreRules = tuple[tuple[int, PathPatterns], ...]
# A folder still to be listed: its uri with a slash, its rules, and whether its files are included.
_Pending = tuple[str, _GitignoreRules, bool]


@dataclass(frozen=True, slots=True)
class WalkRules:
    """Which files of a folder a walk finds."""

    root: Path
    extensions: tuple[str, ...]  # in lower case, with their dots
    exclude_dirs: frozenset[str]
    include: PathPatterns | None
    exclude: PathPatterns | None
    respect_gitignore: bool
    names: re.Pattern[str] | None  # of whole file names that are found without an extension
    max_any_bytes: int  # no file is too large up to this size

    @property
    def root_prefix(self) -> str:
        """Return the path of the folder with a slash at its end."""
        return str(self.root).rstrip(os.sep) + os.sep


class Walker:
    """Walks through a folder; `too_large` says what is wrong with a file of a size, `read` reads a .gitignore.

    `on_folder` is called with the path of each folder before it is listed.
    """

    def __init__(
        self,
        rules: WalkRules,
        too_large: Callable[[str, int], tuple[str, str] | None],
        read: Callable[[str], bytes],
        on_folder: Callable[[str], None],
    ) -> None:
        self._rules, self._too_large, self._read, self._on_folder = rules, too_large, read, on_folder
        self._root_prefix = rules.root_prefix
        # A file whose reader is not installed is no plain one.
        unavailable = {suffix for reader in unavailable_readers() for suffix in reader.suffixes}
        self._plain_suffixes = frozenset(rules.extensions) - unavailable

    def walk(self) -> WalkResult:
        """List the folder and all below it; raise SourceError if it cannot be listed itself."""
        walk = WalkResult()
        folders: list[_Pending] = [("", (), self._rules.include is None)]
        while folders:
            prefix, patterns, included = folders.pop()
            self._on_folder(self._root_prefix + prefix)
            try:
                with os.scandir(self._root_prefix + prefix) as listing:
                    entries = list(listing)
            except OSError as error:
                if not prefix:
                    raise _root_error(self._rules.root, error) from error
                walk.unlisted.append(prefix)
                # A folder deleted during the scan is not a problem, but its files are not treated as deleted yet.
                if not isinstance(error, FileNotFoundError):
                    problem = f"cannot be listed ({error.strerror}), so its indexed files are kept"
                    walk.report_problem(prefix[:-1], problem, "check its permissions and its disk, or exclude it")
                continue
            names = [entry.name for entry in entries]
            if self._rules.respect_gitignore and ".gitignore" in names:
                patterns = self._add_gitignore(prefix, patterns, walk)
            if self._rules.include is None and _is_unicode("".join(names)):
                entries = self._record_plain_files(names, entries, prefix, patterns, walk)
            for entry in entries:
                self._visit_entry(entry, prefix, patterns, included, folders, walk)
        return walk

    def _record_plain_files(
        self,
        names: list[str],
        entries: list[os.DirEntry[str]],
        prefix: str,
        patterns: _GitignoreRules,
        walk: WalkResult,
    ) -> list[os.DirEntry[str]]:
        """Record the files with nothing special about them; return the other entries.

        Nearly all entries of a large folder are such files, and this asks less about each than `_visit_entry`.
        """
        rules, suffixes, max_bytes = self._rules, self._plain_suffixes, self._rules.max_any_bytes
        others: list[os.DirEntry[str]] = []
        plain_names: list[str] = []
        stats: list[int] = []
        has_patterns = any(matcher.has_file_patterns for _, matcher in patterns) or (
            rules.exclude is not None and rules.exclude.has_file_patterns
        )
        for name, entry in zip(names, entries, strict=True):
            # One of several dots, or in another case, is found with the others.
            if name[name.rfind(".") :] in suffixes and name[:2] != _OWNER_FILE_PREFIX:
                try:
                    file_stat = entry.stat(follow_symlinks=False)
                except OSError:
                    others.append(entry)  # it is reported with the others
                    continue
                size = file_stat.st_size
                if file_stat.st_mode & _TYPE_BITS == stat.S_IFREG and 0 < size <= max_bytes:
                    if not has_patterns or not self._is_ignored(prefix + name, name, patterns, is_folder=False):
                        plain_names.append(name)
                        stats += (size, file_stat.st_mtime_ns)
                    continue
            others.append(entry)
        walk.plain_files.append((prefix, plain_names, stats))
        return others

    def _visit_entry(
        self,
        entry: os.DirEntry[str],
        prefix: str,
        patterns: _GitignoreRules,
        included: bool,
        folders: list[_Pending],
        walk: WalkResult,
    ) -> None:
        rules, name = self._rules, entry.name
        uri = prefix + name
        name_matches = name.lower().endswith(rules.extensions) and not name.startswith(_OWNER_FILE_PREFIX)
        if not name_matches and rules.names is not None:
            name_matches = rules.names.fullmatch(name) is not None
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_link = entry.is_symlink()
            if (is_folder or is_link) and name in rules.exclude_dirs:
                if is_folder and name not in MACHINE_FOLDERS:
                    walk.skipped.append(uri)
                return
            if not (name_matches or is_folder or is_link):
                return
            if (is_folder and is_vault_internal(uri)) or self._is_ignored(uri, name, patterns, is_folder=is_folder):
                return
            if rules.include is not None:
                verdict = rules.include.verdict(uri, name, is_folder=is_folder)
                included = included if verdict is None else verdict
            if not included and not is_folder:
                return
            if is_link:
                self._check_link(uri, name_matches, walk)
            elif not _is_unicode(name):
                walk.report_problem(uri, "has a name that is not valid Unicode", "rename it")
            elif is_folder:
                folders.append((uri + "/", patterns, included))
            else:
                self._record_file(uri, entry.stat(follow_symlinks=False), walk)
        except FileNotFoundError:
            return
        except OSError as error:
            walk.unreadable.add(uri)
            walk.unlisted.append(f"{uri}/")  # it may be a folder
            walk.report_problem(uri, *explain_os_error(error))

    def _is_ignored(self, uri: str, name: str, patterns: _GitignoreRules, *, is_folder: bool) -> bool:
        exclude = self._rules.exclude
        if exclude is not None and exclude.verdict(uri, name, is_folder=is_folder):
            return True
        for start, rule in patterns:
            verdict = rule.verdict(uri[start:], name, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def _add_gitignore(self, prefix: str, patterns: _GitignoreRules, walk: WalkResult) -> _GitignoreRules:
        uri = f"{prefix}.gitignore"
        try:
            content = self._read(uri)
        except SourceError as error:
            problem = error.message.removeprefix(f"{uri} ")
            walk.report_problem(
                uri, f"{problem}, so the files it ignores are indexed", "make it a readable regular file"
            )
            return patterns
        return ((len(prefix), parse_patterns(content.decode(errors="surrogateescape"))), *patterns)

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
                walk.report_problem(uri, *explain_os_error(error))
            return
        is_inside = real.startswith(self._root_prefix) or real == str(self._rules.root)
        if not is_inside and (name_matches or Path(real).is_dir()):
            walk.report_problem(
                uri,
                "is a link to a target outside the folder",
                "copy its target here, or index the target separately",
            )

    def _record_file(self, uri: str, file_stat: os.stat_result, walk: WalkResult) -> None:
        if not stat.S_ISREG(file_stat.st_mode):
            walk.report_problem(uri, *NOT_REGULAR)
        elif file_stat.st_size == 0:
            walk.report_problem(uri, "is empty", "it will be indexed when it has content")
        elif problem := self._too_large(uri, file_stat.st_size):
            walk.report_problem(uri, *problem)
        else:
            walk.files[uri] = file_stat.st_size, file_stat.st_mtime_ns


def ignore_folder(path: str) -> None:
    """Do nothing before a folder is listed."""


def explain_os_error(error: OSError) -> tuple[str, str]:
    """Return the problem of a file, and a remedy."""
    if isinstance(error, FileNotFoundError):
        return "no longer exists", "the next import removes it from the index"
    if error.errno == errno.ENXIO:  # also raised by opening a socket
        return NOT_REGULAR
    if error.errno == errno.ELOOP:
        return "is reached through a link", "replace the link with the file"
    return f"cannot be read ({error.strerror})", "check its permissions and its disk, or exclude it"


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _root_error(root: Path, error: OSError) -> SourceError:
    return SourceError(
        f"The folder {root} cannot be read: {error.strerror}",
        hint="Check the path, that its disk is mounted, and that you have permission to list it.",
    )


# What a program keeps for itself, by the name of its folder, and that of the folder above it where the name is common.
_INTERNAL_FOLDERS = {
    ".obsidian": "", ".trash": "",
    "bak": "logseq", ".recycle": "logseq", "version-files": "logseq", ".logseq": "",
}  # fmt: skip


def is_vault_internal(uri: str) -> bool:
    """Return whether a folder holds settings, backups or deleted notes of a vault."""
    above, _, name = uri.rpartition("/")
    parent = _INTERNAL_FOLDERS.get(name)
    return parent is not None and (not parent or above == parent or above.endswith(f"/{parent}"))


def is_vault(folder: Path) -> bool:
    """Return whether a folder is a vault of Obsidian or a graph of Logseq."""
    return bool(vault_program(folder))


def vault_program(folder: Path) -> str:
    """Return the program whose vault a folder is: Obsidian, Logseq, or an empty string."""
    try:
        if (folder / ".obsidian").is_dir():
            return "Obsidian"
        return "Logseq" if (folder / "logseq" / "config.edn").is_file() else ""
    except OSError:
        return ""
