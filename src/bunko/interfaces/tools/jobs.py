"""Run tool calls in the background and report their status by job id; processes of a server share them in files."""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

from bunko.errors import BunkoError, LibraryBusy, UnknownName
from bunko.interfaces.fields import Fields, of
from bunko.interfaces.tools.tool import STRING, Param, ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.runtime.package_errors import find_package_error
from bunko.types.access import Caller

SAVE_SECONDS = 0.5  # between two reports of a job's progress
_MIN_ESTIMATE_SECONDS = 3.0  # before them, an estimate says little
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
        created: list[tuple[float, Path]] = []
        for path in self._folder.glob("*.job"):
            with suppress(OSError):  # removed
                created.append((path.stat().st_mtime, path))
        for _, path in sorted(created):
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


_log = logging.getLogger("bunko.mcp")

JOB_TOOL_NAME = "job"
# Of every tool that supports the background.
BACKGROUND_PARAM = Param("background", "boolean", "Return a job id at once", default=False)
MAX_FINISHED_JOBS = 50  # finished jobs whose results are kept
MAX_RUNNING_JOBS = 20


class JobFields(Fields):
    """What runs in the background, or did."""

    id: str
    name: str
    status: Literal["running", "done", "failed", "cancelled"] = of("state")
    done: float
    total: float
    message: str
    subject: str = of(optional=True)  # the tool or the address that it is about
    seconds_left: int = of(optional=True)  # about as many, while it runs
    seconds: float = of(optional=True)  # that it took
    result: dict[str, Any] = of(optional=True)
    error: str = of(optional=True)


@dataclass(slots=True)
class Job:
    """A tool call that runs in the background."""

    id: str
    name: str
    owner: str  # who started it
    subject: str = ""  # the tool or the address that it is about
    state: str = "running"  # then: done, failed or cancelled
    progress: str = ""  # the next three in one line
    done: float = 0
    total: float = 0
    message: str = ""
    text: str = ""  # the result, for a model
    result: dict[str, Any] | None = None
    error: str = ""
    started_at: float = field(default_factory=time.time)
    seconds_left: int = 0
    seconds: float = 0

    def report(self, done: float, total: float, message: str) -> None:
        """Note how far it has come, and estimate how long it will take."""
        self.done, self.total, self.message = done, total, message
        self.progress = f"{done:g}/{total:g}, {message}"
        seconds = time.time() - self.started_at
        is_known = 0 < done < total and seconds >= _MIN_ESTIMATE_SECONDS
        self.seconds_left = ceil(seconds * (total - done) / done) if is_known else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the job for programs."""
        return JobFields.fill(self, result=self.result)

    def to_reply(self) -> ToolReply:
        """Return the job's status and result."""
        structured: dict[str, Any] = {
            "job": self.id,
            "name": self.name,
            "status": self.state,
            "progress": self.progress,
        }
        lines = [f"Job {self.id} ({self.name}): {self.state}. {self.progress}".strip()]
        if self.result is not None:
            structured["result"] = self.result
            lines.append(self.text)
        if self.error:
            structured["error"] = self.error
            lines.append(self.error)
        return ToolReply("\n".join(lines), structured)


class Jobs:
    """The jobs of one server; its processes share them through files if there is a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self._jobs: dict[str, Job] = {}  # of this process
        self._stops: dict[str, threading.Event] = {}
        self._job_numbers = itertools.count(1)
        self._folder = folder
        self._opened_files: JobFiles | None = None
        self._opening = threading.Lock()

    def start(self, name: str, run: Callable[[ToolCall], ToolReply], call: ToolCall, *, subject: str = "") -> Job:
        """Start a job, unless too many run already."""
        owner = call.library.caller
        running = [job for job in self._all() if job.state == "running"]
        if len(running) >= MAX_RUNNING_JOBS:
            visible_ids = ", ".join(job.id for job in running if _may_see(owner, job)) or "none is yours"
            raise LibraryBusy(
                f"{len(running)} jobs are still running",
                hint=f"Wait for one of them, or cancel it with the tool {JOB_TOOL_NAME}: {visible_ids}.",
            )
        self._forget_old()
        files = self._files()
        job_id = files.reserve(name) if files else f"{name}-{next(self._job_numbers)}"
        job, stop = Job(job_id, name, owner.name, subject), files.stop_event(job_id) if files else threading.Event()
        self._jobs[job.id], self._stops[job.id] = job, stop
        self._save(job)
        saved_at = time.monotonic()

        def report(done: float, total: float, message: str) -> None:
            nonlocal saved_at
            job.report(done, total, message)
            if time.monotonic() - saved_at >= SAVE_SECONDS:
                saved_at = time.monotonic()
                self._save(job)

        call.stop, call.report_progress = stop, report
        threading.Thread(target=self._run, args=(job, run, call), name=job.id, daemon=True).start()
        return job

    def visible(self, caller: Caller) -> list[Job]:
        """Return the jobs that a caller may see: its own, or all if it may change everything."""
        return [job for job in self._all() if _may_see(caller, job)]

    def find(self, job_id: str, caller: Caller) -> Job:
        """Return a job that a caller may see."""
        visible = {job.id: job for job in self.visible(caller)}
        if job_id not in visible:
            raise UnknownName(
                f"Unknown job {job_id[:80]!r}", hint=f"Jobs of this server: {', '.join(visible) or 'none'}."
            )
        return visible[job_id]

    def cancel(self, job_id: str, caller: Caller) -> Job:
        """Ask a job to stop; what it has written stays."""
        job = self.find(job_id, caller)
        if job.state != "running":
            return job
        job.progress = job.message = "stopping after the current documents"
        if job.id in self._stops:
            self._stops[job.id].set()
        elif files := self._files():
            files.cancel(job.id)
        return job

    def stop_all(self) -> None:
        """Ask all jobs of this process to stop; what they have written stays."""
        for stop in list(self._stops.values()):
            stop.set()

    def _files(self) -> JobFiles | None:
        """Return the files of the jobs, whose folder is used from the first job on."""
        if self._folder is None:
            return None
        with self._opening:
            if self._opened_files is None:
                self._opened_files = JobFiles(self._folder)
            return self._opened_files

    def _all(self) -> list[Job]:
        """Return the jobs of all processes, the oldest first of each."""
        files = self._files()
        return [*(_loaded_job(fields) for fields in (files.load_all() if files else ())), *self._jobs.values()]

    def _forget_old(self) -> None:
        ended = [job for job in self._all() if job.state != "running"]
        files = self._files()
        for job in ended[: max(0, len(ended) - MAX_FINISHED_JOBS)]:
            self._jobs.pop(job.id, None)
            self._stops.pop(job.id, None)
            if files:
                files.remove(job.id)

    def _save(self, job: Job) -> None:
        if files := self._files():
            files.save(job.id, asdict(job))

    def _run(self, job: Job, run: Callable[[ToolCall], ToolReply], call: ToolCall) -> None:
        try:
            with call.library.hiding_places():
                reply = run(call)
            job.result, job.text = reply.structured, reply.text
            state = "cancelled" if call.stop.is_set() else "done"
        except BunkoError as error:
            job.error, state = str(error), "cancelled" if call.stop.is_set() else "failed"
        except Exception as error:
            package_error = find_package_error(error)
            # At shutdown the library may be closed while a stopped job still runs; that is expected.
            level = logging.DEBUG if package_error or call.stop.is_set() else logging.ERROR
            _log.log(level, "%s failed", job.id, exc_info=True)
            internal = f"{job.name} failed with an internal error ({type(error).__name__}). See the server's log."
            job.error, state = str(package_error or internal), "failed"
        job.seconds, job.seconds_left = round(time.time() - job.started_at, 1), 0
        job.state = state  # last: whoever sees that it has ended sees the rest too
        self._save(job)

    def job_tool(self) -> ToolDefinition:
        """Return the tool that reports and cancels jobs."""
        return ToolDefinition(
            JOB_TOOL_NAME,
            "Background job",
            "Follow or cancel a job started with background: true.",
            (
                Param("id", "string", "Of the job", required=True),
                Param("cancel", "boolean", "Stop it", default=False),
            ),
            object_schema({"status": STRING}, "status"),
            self._answer_status,
            right="write",  # it can cancel
        )

    def _answer_status(self, call: ToolCall) -> ToolReply:
        job_id, caller = call.arguments["id"], call.library.caller
        job = self.cancel(job_id, caller) if call.arguments["cancel"] else self.find(job_id, caller)
        return job.to_reply()


def _loaded_job(fields: dict[str, Any]) -> Job:
    """Return a job of another process; one whose process has ended before it has failed."""
    job = Job(**{name: fields[name] for name in Job.__dataclass_fields__ if name in fields})
    if fields["is_lost"]:
        job.state, job.error = "failed", "The process that ran it has ended. Start it again."
    return job


def _may_see(caller: Caller, job: Job) -> bool:
    """Return whether a caller may see and cancel a job: its own, or any if it may change everything."""
    return caller.rights.writes_all or caller.name == job.owner
