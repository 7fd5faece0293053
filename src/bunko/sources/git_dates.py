"""Ask the history of a Git repository when its files last changed.

The configuration of a repository can name programs that git runs, and a folder may come from anybody. So git never sees
it: it reads the objects of the repository from a folder of ours, in which nothing is configured.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REFERENCE = re.compile(r"ref: (refs/heads/[^\s]+)")
# A search that finds a change waits for its import: a longer history takes seconds, and has dated most files by then.
_MAX_COMMITS = 20_000
_MAX_SECONDS = 20.0
# What comes from anybody may claim billions of files in a few kilobytes.
MAX_OUTPUT_BYTES = 100_000_000
_MAX_GIT_MEMORY_BYTES = 1 << 30
_MAX_REFERENCES_BYTES = 50_000_000
_READ_BYTES = 1 << 16
_TIME_MARK = b"\1"  # no name of a file begins with it


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The content of a file in the last commit, and when it came there."""

    blob: str
    date: str

    def date_of(self, data: bytes) -> str:
        """Return when this content was committed, or "" if the file has changed since."""
        return self.date if self.blob == _blob_name(data) else ""


def committed_at(root: Path, uri: str, data: bytes) -> str:
    """Return when the content of a file below a folder was committed, or "" if no Git repository tells it."""
    place = _find_repository(root)
    # A file that has changed since needs no history.
    return _read_dates(place).get(uri, "") if place and _read_blobs(place).get(uri) == _blob_name(data) else ""


def load_history(root: Path) -> Mapping[str, FileHistory]:
    """Return the history of the files below a folder, by their paths in it; empty if no Git repository tells it."""
    place = _find_repository(root)
    dates = _read_dates(place) if place else {}
    return {uri: FileHistory(_read_blobs(place)[uri], date) for uri, date in dates.items()} if place else {}


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder in a commit of a repository."""

    git_folder: Path
    commit: str
    prefix: str  # of its paths in the repository


def _find_repository(root: Path) -> _Place | None:
    # Where git looks no further up, such as from a home folder on a slow network.
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    for folder in (root, *root.parents):
        if folder != root and str(folder) in ceilings:
            return None
        git_folder = folder / ".git"
        if git_folder.is_dir():
            commit = _head(git_folder)
            prefix = root.relative_to(folder).as_posix()
            return _Place(git_folder, commit, "" if prefix == "." else f"{prefix}/") if commit else None
    return None


def _blob_name(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _head(git_folder: Path) -> str:
    """Return the commit that is checked out, or "" if there is none or its history is not here."""
    try:
        # The last commit of a shallow clone seems to have changed all files.
        if (git_folder / "shallow").exists():
            return ""
        head = _read(git_folder / "HEAD").strip()
        if reference := _REFERENCE.fullmatch(head):
            file = git_folder / reference[1]
            if ".." in file.parts:
                return ""
            head = _read(file).strip() if file.is_file() else _packed(git_folder, reference[1])
    except (OSError, ValueError):
        return ""
    return head if _COMMIT.fullmatch(head) else ""


def _packed(git_folder: Path, reference: str) -> str:
    lines = _read(git_folder / "packed-refs").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {reference}")), "")


def _read(path: Path) -> str:
    # Reading a pipe or a device may never end.
    return path.read_text("utf-8") if path.is_file() and path.stat().st_size <= _MAX_REFERENCES_BYTES else ""


@lru_cache(8)  # of each process: several read the files of an import
def _read_blobs(place: _Place) -> Mapping[str, str]:
    """Return the name of each file's content."""
    blobs = {}
    for row in _run(place, "ls-tree", "-r", "-z", "--full-tree"):
        facts, _, path = row.partition(b"\t")
        blobs[os.fsdecode(path).removeprefix(place.prefix)] = facts.rpartition(b" ")[2].decode("ascii", "replace")
    return blobs


@lru_cache(8)
def _read_dates(place: _Place) -> Mapping[str, str]:
    """Return when each file last changed."""
    missing, dates, date = set(_read_blobs(place)), {}, ""
    for field in _run(place, "log", "-z", f"-n{_MAX_COMMITS}", "--format=%x01%cI", "--name-only", "--no-renames"):
        text = field.removeprefix(b"\n")
        if text.startswith(_TIME_MARK):
            date = _iso_date(text[1:])
            continue
        uri = os.fsdecode(text).removeprefix(place.prefix)
        if uri in missing:  # the newest commit comes first
            missing.remove(uri)
            dates[uri] = date
            if not missing:
                break
    return dates


def _iso_date(time: bytes) -> str:
    try:
        return datetime.fromisoformat(time.decode("ascii")).isoformat(timespec="seconds")
    except ValueError:  # a commit may claim any time
        return ""


def _run(place: _Place, *arguments: str) -> Iterator[bytes]:
    """Yield what a command of git about a commit writes between NULs, of limited time and size."""
    program = shutil.which("git")
    if program is None:
        return
    # A git that does not start or a full disk costs dates, never documents.
    with suppress(OSError), TemporaryDirectory(prefix="bunko-git-") as empty:
        for name in ("objects", "refs"):
            Path(empty, name).mkdir()
        Path(empty, "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
        environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ} | {
            "GIT_DIR": empty, "GIT_OBJECT_DIRECTORY": str(place.git_folder / "objects"), "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
        }  # fmt: skip
        command = [program, *arguments, place.commit, *(["--", place.prefix] if place.prefix else [])]
        with subprocess.Popen(
            command, env=environ, cwd=empty, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            _limit_memory(process.pid)
            timer = threading.Timer(_MAX_SECONDS, process.kill)
            timer.start()
            try:
                rest = b""
                for _ in range(MAX_OUTPUT_BYTES // _READ_BYTES):
                    if not (block := process.stdout.read(_READ_BYTES)):
                        break
                    *fields, rest = (rest + block).split(b"\0")
                    yield from fields
            finally:
                timer.cancel()
                process.kill()


def _limit_memory(process: int) -> None:
    # Not between fork and exec: other threads may hold locks then. Packs that are mapped do not count.
    if sys.platform == "linux":
        import resource

        with suppress(OSError):  # it has ended already
            resource.prlimit(process, resource.RLIMIT_DATA, (_MAX_GIT_MEMORY_BYTES, _MAX_GIT_MEMORY_BYTES))
