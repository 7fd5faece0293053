"""Show and cancel what runs in the background."""

from __future__ import annotations

from collections.abc import Callable

from bunko.errors import LibraryBusy
from bunko.interfaces.api.endpoint import Call, Endpoint
from bunko.interfaces.api.problems import RequestError
from bunko.interfaces.fields import Fields
from bunko.interfaces.tools.jobs import JobFields
from bunko.interfaces.tools.tool import ToolCall, ToolReply


class JobsReply(Fields):
    """The jobs that the caller may see."""

    jobs: list[JobFields]


class StartedReply(Fields):
    """What was started."""

    job: JobFields


def start_job(call: Call, name: str, run: Callable[[ToolCall], ToolReply], subject: str) -> dict[str, object]:
    """Start something in the background, unless too much runs already; return the reply."""
    try:
        return {"job": call.jobs.start(name, run, ToolCall(call.library, {}), subject=subject).to_dict()}
    except LibraryBusy as error:
        raise RequestError(
            error.message, hint="Wait for one of them, or cancel it with DELETE /api/v1/jobs/ID.", status=429
        ) from error


def list_jobs(call: Call) -> dict[str, object]:
    """List your jobs, and all jobs if you may change everything."""
    return {"jobs": [job.to_dict() for job in call.jobs.visible(call.library.caller)]}


def show_job(call: Call, id: str) -> dict[str, object]:
    """Show a job and its result."""
    return call.jobs.find(id, call.library.caller).to_dict()


def cancel_job(call: Call, id: str) -> dict[str, object]:
    """Cancel a job; what it has written stays."""
    return call.jobs.cancel(id, call.library.caller).to_dict()


ENDPOINTS = [
    Endpoint("GET", "/jobs", list_jobs, JobsReply, right="read"),
    Endpoint("GET", "/jobs/{id}", show_job, JobFields, right="read"),
    Endpoint("DELETE", "/jobs/{id}", cancel_job, JobFields, right="write"),
]
