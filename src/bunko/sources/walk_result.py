"""Collect the files of a folder, and what cannot be read in it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from bunko.readers import unavailable_readers
from bunko.types import Problem

# Folders that programs fill: if they are skipped, nobody misses a document.
MACHINE_FOLDERS = frozenset({".git", ".rag-index", "__pycache__"})


@dataclass(slots=True)
class WalkResult:
    """What a walk through a folder found."""

    files: dict[str, os.stat_result] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)  # exist, but cannot be read
    unlisted: list[str] = field(default_factory=list)  # folders, with a trailing slash
    skipped: list[str] = field(default_factory=list)  # folders that are excluded by their names
    problems: list[Problem] = field(default_factory=list)

    def report_problem(self, uri: str, problem: str, remedy: str) -> None:
        """Add a problem, with what to do about it."""
        printable = uri.encode(errors="backslashreplace").decode()
        self.problems.append(Problem(printable, f"{problem}; {remedy}"))

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
