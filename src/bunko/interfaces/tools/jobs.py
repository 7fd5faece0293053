"""Run tool calls in the background and report their status by job id."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bunko.errors import BunkoError, LibraryBusy, UnknownName
from bunko.interfaces.tools.params import Param
from bunko.interfaces.tools.tool import STRING, ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.types.access import Caller

_log = logging.getLogger("bunko.mcp")

JOB_TOOL_NAME = "job"
# Of every tool that supports the background.
BACKGROUND_PARAM = Param("background", "boolean", "Return a job id at once", default=False)
_MAX_FINISHED_JOBS = 50  # finished jobs whose results are kept
_MAX_RUNNING_JOBS = 20


@dataclass(slots=True)
class Job:
    """A tool call that runs in the background."""

    id: str
    name: str
    owner: Caller  # who started it
    stop: threading.Event = field(default_factory=threading.Event)
    state: str = "running"  # then: done, failed or cancelled
    progress: str = ""
    reply: ToolReply | None = None
    error: str = ""

    def to_reply(self) -> ToolReply:
        """Return the job's status and result."""
        structured: dict[str, Any] = {
            "job": self.id,
            "name": self.name,
            "status": self.state,
            "progress": self.progress,
        }
        lines = [f"Job {self.id} ({self.name}): {self.state}. {self.progress}".strip()]
        if self.reply is not None:
            structured["result"] = self.reply.structured
            lines.append(self.reply.text)
        if self.error:
            structured["error"] = self.error
            lines.append(self.error)
        return ToolReply("\n".join(lines), structured)


class Jobs:
    """The jobs of one server."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._job_numbers = itertools.count(1)

    def start(self, name: str, run: Callable[[ToolCall], ToolReply], call: ToolCall) -> Job:
        """Start a job, unless too many run already."""
        owner = call.library.caller
        running = [job for job in self._jobs.values() if job.state == "running"]
        if len(running) >= _MAX_RUNNING_JOBS:
            visible_ids = ", ".join(job.id for job in running if _may_see(owner, job)) or "none is yours"
            raise LibraryBusy(
                f"{len(running)} jobs are still running",
                hint=f"Wait for one of them, or cancel it with the tool {JOB_TOOL_NAME}: {visible_ids}.",
            )
        job = Job(f"{name}-{next(self._job_numbers)}", name, owner)
        ended = [other.id for other in self._jobs.values() if other.state != "running"]
        for old_id in ended[: max(0, len(ended) - _MAX_FINISHED_JOBS)]:
            del self._jobs[old_id]
        self._jobs[job.id] = job
        call.stop = job.stop
        call.report_progress = lambda done, total, message: setattr(job, "progress", f"{done:g}/{total:g}, {message}")
        threading.Thread(target=_run_job, args=(job, run, call), name=job.id, daemon=True).start()
        return job

    def stop_all(self) -> None:
        """Ask all jobs to stop; what they have written stays."""
        for job in self._jobs.values():
            job.stop.set()

    def job_tool(self) -> ToolDefinition:
        """Return the tool that reports and cancels jobs."""
        return ToolDefinition(
            JOB_TOOL_NAME,
            "Background job",
            "Get the status of a job started with background: true, or cancel it.",
            (
                Param("id", "string", "As returned when it was started", required=True),
                Param("cancel", "boolean", "Stop it", default=False),
            ),
            object_schema({"status": STRING}, "status"),
            self._answer_status,
            right="write",  # it can cancel
        )

    def _answer_status(self, call: ToolCall) -> ToolReply:
        visible = {job.id: job for job in self._jobs.values() if _may_see(call.library.caller, job)}
        job = visible.get(call.arguments["id"])
        if job is None:
            job_ids = ", ".join(visible) or "none"
            raise UnknownName(f"Unknown job {call.arguments['id']!r}", hint=f"Jobs of this server: {job_ids}.")
        if call.arguments["cancel"] and job.state == "running":
            job.stop.set()
            job.progress = "stopping after the current documents"
        return job.to_reply()


def _may_see(caller: Caller, job: Job) -> bool:
    """Return whether somebody may see and cancel a job: whoever started it, and whoever may change everything."""
    return caller.rights.writes_all or caller.name == job.owner.name


def without_background(tool: ToolDefinition) -> ToolDefinition:
    """Return a tool as one that always runs to its end."""
    if not tool.supports_background:
        return tool
    params = [param for param in tool.params if param.name != BACKGROUND_PARAM.name]
    return replace(tool, params=params, supports_background=False)


def _run_job(job: Job, run: Callable[[ToolCall], ToolReply], call: ToolCall) -> None:
    try:
        job.reply = run(call)
        job.state = "cancelled" if job.stop.is_set() else "done"
    except BunkoError as error:
        job.error, job.state = str(error), "failed"
    except Exception as error:
        # At shutdown the library may be closed while a stopped job still runs; that is expected.
        _log.log(logging.DEBUG if job.stop.is_set() else logging.ERROR, "%s failed", job.id, exc_info=True)
        job.error = f"{job.name} failed with an internal error ({type(error).__name__}). See the server's log."
        job.state = "failed"
