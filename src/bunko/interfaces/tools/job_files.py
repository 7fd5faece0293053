"""Keep the jobs of several server processes in files of a folder that they share."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

SAVE_SECONDS = 0.5  # between two reports of a job's progress
_CHECK_SECONDS = 0.5  # between two looks for the mark that cancels a job


class JobFiles:
    """The jobs of a folder: a file each, a mark beside it that cancels it, and a lock of each process.

    The system releases a lock when its process ends, however that happens: the others then know that its jobs failed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.process_id = f"process-{token_hex(8)}"
        # Any thread may find out whether a process lives.
        from filelock import FileLock  # here: most servers need none

        self._lock = FileLock(folder / f"{self.process_id}.lock", thread_local=False)
        self._lock.acquire(blocking=False)

    def reserve(self, name: str) -> str:
        """Return an id that no job of the folder has."""
        number = 1
        while True:
            job_id = f"{name}-{number}"
            try:
                os.close(os.open(self._path(job_id), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                number += 1
            else:
                return job_id

    def save(self, job_id: str, fields: Mapping[str, Any]) -> None:
        """Write a job, for the other processes to read."""
        temporary = self._folder / f"{job_id}.{token_hex(4)}.new"
        try:
            temporary.write_text(json.dumps({**fields, "process": self.process_id}), "utf-8")
            temporary.replace(self._path(job_id))
        except OSError:  # a full disk: the others see what was there before
            with suppress(OSError):
                temporary.unlink()

    def load_all(self) -> Iterator[dict[str, Any]]:
        """Yield the jobs of the other processes, the oldest first; `is_lost` if the process has ended before them."""
        paths = sorted(self._folder.glob("*.job"), key=_created_at)
        for path in paths:
            try:
                fields = json.loads(path.read_text("utf-8"))
            except (OSError, ValueError):  # removed, or just reserved
                continue
            if isinstance(fields, dict) and fields.get("process") not in (None, self.process_id):
                yield fields | {"is_lost": fields["state"] == "running" and not self._is_alive(fields["process"])}

    def cancel(self, job_id: str) -> None:
        """Mark a job as cancelled; its process looks for the mark."""
        with suppress(OSError):
            self._mark(job_id).touch()

    def remove(self, job_id: str) -> None:
        """Forget a job."""
        for path in (self._path(job_id), self._mark(job_id)):
            with suppress(OSError):
                path.unlink()

    def stop_event(self, job_id: str) -> threading.Event:
        """Return the event that stops a job, which is also set by the mark."""
        return _MarkedEvent(self._mark(job_id))

    def _path(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.job"

    def _mark(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.cancel"

    def _is_alive(self, process_id: str) -> bool:
        path = self._folder / f"{process_id}.lock"
        if not path.exists():
            return False
        from filelock import FileLock, Timeout

        lock = FileLock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        lock.release()
        return False


class _MarkedEvent(threading.Event):
    """An event that a file sets too."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self._mark, self._checked_at = mark, 0.0

    def is_set(self) -> bool:
        """Return whether the event or the file is there."""
        if not super().is_set() and time.monotonic() - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = time.monotonic()
            if self._mark.exists():
                self.set()
        return super().is_set()


def _created_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
