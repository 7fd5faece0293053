"""Keep Chroma from reading damaged files of its graphs, which can end the whole process.

After each write, the sizes and checksums of the files of a collection are noted beside them. Files that differ from
their note are not opened. A note also says that a write has begun: if it never ended, as after a crash, a process of
its own tries the files first.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from bunko.errors import IndexFailure
from bunko.runtime.failpoints import reach_failpoint
from bunko.runtime.temporary_files import write_text_file

_FORMAT = 1
_TRIAL_SECONDS = 120.0
_WAIT_SECONDS = 60.0
_BLOCK_BYTES = 1 << 20
_DATABASE, _SAVED = "chroma.sqlite3", "index_metadata.pickle"
_HINT = "Make them anew: bunko index sync."


class DamagedFiles(IndexFailure):
    """The files of a collection cannot be read safely."""


class FileGuard:
    """The notes about the collections in a folder, and the lock of their writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def writing(self, name: str, collection_id: str) -> Iterator[None]:
        """Note that a collection is written, and its files afterwards; only one process at a time writes."""
        with self._lock(_WAIT_SECONDS):
            self._check(name, collection_id)
            self._save(collection_id, is_complete=False)
            reach_failpoint("index.opened")
            yield
            self._save(collection_id, is_complete=True)
            reach_failpoint("index.noted")

    def check(self, name: str, collection_id: str) -> None:
        """Raise an error if the files of a collection cannot be read safely, or are being written."""
        note = self._load(collection_id)
        if note is not None and note["complete"]:
            self._compare(name, collection_id, note)
            return
        with self._lock(0.0):
            self._check(name, collection_id)

    def forget(self, collection_id: str) -> None:
        """Delete the note about a collection that was deleted."""
        with suppress(OSError):
            self._path(collection_id).unlink(missing_ok=True)

    def _check(self, name: str, collection_id: str) -> None:
        note = self._load(collection_id)
        if note is not None and note["complete"]:
            self._compare(name, collection_id, note)
        elif self._files(collection_id):  # a write did not end, or there was no note yet
            self._try_files(name)
            self._save(collection_id, is_complete=True)

    def _compare(self, name: str, collection_id: str, note: dict[str, Any]) -> None:
        files = self._files(collection_id)
        is_same = files.keys() == note["files"].keys() and all(
            path.stat().st_size == note["files"][key][0] and _checksum(path) == note["files"][key][1]
            for key, path in files.items()
        )
        # Another process may have written meanwhile; its note is the newer one.
        if not is_same and self._load(collection_id) == note:
            raise DamagedFiles(
                f"The files of the collection {name!r} in {self._folder} are damaged, or something else changed them",
                hint=_HINT,
            )

    def _try_files(self, name: str) -> None:
        """Search a collection in a process of its own, which a damaged file may end."""
        command = [sys.executable, "-m", "bunko.indexes.chroma.trial", str(self._folder), name]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=_TRIAL_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise IndexFailure(f"Chroma's files in {self._folder} could not be tried: {error}", hint=_HINT) from error
        if done.returncode != 0:
            raise DamagedFiles(
                f"The files of the collection {name!r} in {self._folder} are damaged: a process that wrote them was"
                " stopped",
                hint=_HINT,
            )

    def _files(self, collection_id: str) -> dict[str, Path]:
        """Return the files of the graph of a collection, by their paths in the folder."""
        database = self._folder / _DATABASE
        if not database.exists():
            return {}
        query = "SELECT id FROM segments WHERE collection = ? AND scope = 'VECTOR'"
        try:
            with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
                names = [str(row[0]) for row in connection.execute(query, (collection_id,))]
        except sqlite3.Error as error:
            raise IndexFailure(
                f"Chroma cannot use its files in {self._folder}: {error}",
                hint="Delete the folder if nothing else uses it, then run: bunko index sync.",
            ) from error
        # Without this file, Chroma has saved nothing yet: it reads all vectors from its database, and no other file.
        folders = [self._folder / name for name in names if (self._folder / name / _SAVED).exists()]
        paths = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
        return {path.relative_to(self._folder).as_posix(): path for path in paths}

    def _load(self, collection_id: str) -> dict[str, Any] | None:
        try:
            note = json.loads(self._path(collection_id).read_bytes())
        except (OSError, ValueError):
            return None
        is_known = isinstance(note, dict) and note.get("format") == _FORMAT and isinstance(note.get("files"), dict)
        return note if is_known else None

    def _save(self, collection_id: str, *, is_complete: bool) -> None:
        files = self._files(collection_id) if is_complete else {}
        try:
            sums = {key: [path.stat().st_size, _checksum(path)] for key, path in files.items()}
            note = {"format": _FORMAT, "complete": is_complete, "files": sums}
            write_text_file(self._path(collection_id), json.dumps(note))
        except OSError as error:
            raise IndexFailure(
                f"{self._folder} cannot be written: {error.strerror or error}",
                hint="Check the folder and its free disk space, then run: bunko index sync.",
            ) from error

    def _path(self, collection_id: str) -> Path:
        return self._folder / f"bunko-{collection_id}.json"

    @contextmanager
    def _lock(self, seconds: float) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            with FileLock(self._folder / "bunko.lock", timeout=seconds):
                yield
        except Timeout as error:
            raise IndexFailure(
                f"Another process is writing Chroma's files in {self._folder}", hint="Wait until it has finished."
            ) from error


def _checksum(path: Path) -> int:
    """Return the CRC-32 of a file: damage is by accident, and a gigabyte should take about a second."""
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum
