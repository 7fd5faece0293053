"""Collect the files of a folder, and what cannot be read in it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain

from bunko.readers import unavailable_readers
from bunko.types import Problem

# Folders that programs fill: if they are skipped, nobody misses a document.
MACHINE_FOLDERS = frozenset({".git", ".rag-index", "__pycache__"})


@dataclass(slots=True)
class WalkResult:
    """What a walk through a folder found."""

    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # size and time in nanoseconds, by uri
    # The ordinary files of each folder: its uri, their names, and size and time of each in turn. `files` lacks them
    # until somebody needs them: a look that finds nothing new does not.
    plain_files: list[tuple[str, list[str], list[int]]] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)  # exist, but cannot be read
    unlisted: list[str] = field(default_factory=list)  # folders, with a trailing slash
    skipped: list[str] = field(default_factory=list)  # folders that are excluded by their names
    problems: list[Problem] = field(default_factory=list)

    def report_problem(self, uri: str, problem: str, remedy: str) -> None:
        """Add a problem, with what to do about it."""
        printable = uri.encode(errors="backslashreplace").decode()
        self.problems.append(Problem(printable, f"{problem}; {remedy}"))

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
            others = f" (like {len(uris) - 1:,} more files of this format)" if len(uris) > 1 else ""
            self.report_problem(
                uris[0],
                f"cannot be read without the package {reader.package}{others}",
                f'install it with: pip install "bunko[{reader.extra}]"',
            )
