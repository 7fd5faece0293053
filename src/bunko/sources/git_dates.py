"""Ask the history of a Git repository when its files last changed.

The configuration of a repository can name programs that git runs, and a folder may come from anybody. So git never sees
it: it reads the objects of the repository from a folder of ours, in which nothing is configured.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REFERENCE = re.compile(r"ref: (refs/heads/[^\s]+)")
# A longer history has dated most files by then; the others stay undated.
_MAX_SECONDS = 20.0
_READ_BYTES = 1 << 16
_TIME_MARK = b"\1"  # no name of a file begins with it


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The last commit that changed a file, and its content since then."""

    blob: str
    committed_at: int

    def date_of(self, data: bytes) -> str:
        """Return when this content was committed, or "" if the file has changed since."""
        # The digest that git names contents by.
        if sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() != self.blob:
            return ""
        try:
            return datetime.fromtimestamp(self.committed_at, UTC).isoformat(timespec="seconds")
        except (OverflowError, OSError, ValueError):  # a commit may claim any time
            return ""


def load_history(root: Path) -> Mapping[str, FileHistory]:
    """Return the history of the files below a folder, by their paths in it; empty if no Git repository tells it."""
    for folder in (root, *root.parents):
        git_folder = folder / ".git"
        if git_folder.is_dir():
            # The last commit of a shallow clone seems to have changed all files.
            commit = "" if (git_folder / "shallow").exists() else _head(git_folder)
            prefix = root.relative_to(folder).as_posix()
            return _read_history(git_folder, commit, "" if prefix == "." else f"{prefix}/") if commit else {}
    return {}


def _head(git_folder: Path) -> str:
    """Return the commit that is checked out, or "" if there is none."""
    try:
        head = (git_folder / "HEAD").read_text("utf-8").strip()
        if reference := _REFERENCE.fullmatch(head):
            file = git_folder / reference[1]
            if ".." in file.parts:
                return ""
            head = file.read_text("utf-8").strip() if file.is_file() else _packed(git_folder, reference[1])
    except (OSError, ValueError):
        return ""
    return head if _COMMIT.fullmatch(head) else ""


def _packed(git_folder: Path, reference: str) -> str:
    lines = (git_folder / "packed-refs").read_text("utf-8").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {reference}")), "")


@lru_cache(8)  # of each process: several read the files of an import
def _read_history(git_folder: Path, commit: str, prefix: str) -> Mapping[str, FileHistory]:
    program = shutil.which("git")
    if program is None:
        return {}
    with TemporaryDirectory(prefix="bunko-git-") as empty:
        for name in ("objects", "refs"):
            Path(empty, name).mkdir()
        Path(empty, "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
        environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ} | {
            "GIT_DIR": empty, "GIT_OBJECT_DIRECTORY": str(git_folder / "objects"), "GIT_LITERAL_PATHSPECS": "1",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
        }  # fmt: skip
        paths = ["--", prefix] if prefix else []

        def run(*arguments: str) -> Iterator[bytes]:
            command = [program, *arguments, commit, *paths]
            return _split_output(command, environ, empty)

        blobs: dict[bytes, str] = {}
        for row in run("ls-tree", "-r", "-z", "--full-tree"):
            facts, _, path = row.partition(b"\t")
            blobs[path] = facts.rpartition(b" ")[2].decode("ascii", "replace")
        history: dict[str, FileHistory] = {}
        committed_at = 0
        for field in run("log", "-z", "--format=%x01%ct", "--name-only", "--no-renames"):
            path = field.removeprefix(b"\n")
            if path.startswith(_TIME_MARK):
                committed_at = int(path[1:]) if path[1:].isdigit() else 0
            elif blob := blobs.pop(path, ""):  # the newest commit comes first
                history[os.fsdecode(path).removeprefix(prefix)] = FileHistory(blob, committed_at)
                if not blobs:
                    break
        return history


def _split_output(command: list[str], environ: dict[str, str], folder: str) -> Iterator[bytes]:
    """Yield what a command writes between NULs, for a limited time."""
    with subprocess.Popen(
        command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(_MAX_SECONDS, process.kill)
        timer.start()
        try:
            rest = b""
            while block := process.stdout.read(_READ_BYTES):
                *fields, rest = (rest + block).split(b"\0")
                yield from fields
        finally:
            timer.cancel()
            process.kill()
