"""Folders of files with fixed times, and scans of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bunko.protocols import Scan
from bunko.sources.folder import Folder
from bunko.types import Fingerprint, SourceEntry

LONG_AGO = 1_700_000_000 * 10**9


SECOND = 10**9


NOBODY = 65534


def folder(root: Path, **options: object) -> Folder:
    settings: dict[str, object] = {
        "extensions": [".md", ".txt"],
        "exclude_dirs": [".git", "node_modules"],
        "max_file_bytes": 1_000_000,
    }
    return Folder(root, **{**settings, **options})  # type: ignore[arg-type]


def write(path: Path, content: str | bytes = "words", *, modified_ns: int = LONG_AGO) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, ns=(modified_ns, modified_ns))
    return path


def remember(source: Folder) -> dict[str, Fingerprint]:
    known = {}
    for listed in source.scan({}).added:
        content, entry = source.read(listed)
        known[entry.uri] = Fingerprint(hashlib.sha256(content).hexdigest(), entry.size, entry.modified_ns)
    return known


def uris(entries: Iterable[SourceEntry]) -> list[str]:
    return [entry.uri for entry in entries]


def scan_uris(root: Path, **options: object) -> list[str]:
    return uris(folder(root, **options).scan({}).added)


def reasons(scan: Scan) -> dict[str, str]:
    return {problem.uri: problem.reason for problem in scan.problems}


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up root's right to read everything, if we have it."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
