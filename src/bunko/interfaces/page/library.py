"""The page about the library: its tools with what they hold, what runs, and forms that add more."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from bunko.embedders.names import display_name
from bunko.errors import AccessDenied, BunkoError
from bunko.interfaces.page.library_add import NO_ADDITION, add_documents, propose_addition
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.view import PageView, error_values, say
from bunko.interfaces.sender import is_local_user
from bunko.interfaces.text import format_size, single_line

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.interfaces.tools.jobs import Job
    from bunko.library.access import LibraryAccess
    from bunko.library.admin.status import LengthDistribution, ToolDetails, ToolStatus

MAX_FAILURES = 100  # that are listed
_SHOWN_JOBS = 8
_SHOWN_PROBLEMS = 3  # of a job; the details of its tool have all


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """A rectangle and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bars above a line, and where a value lies on it."""

    width: int
    height: int
    bars: Sequence[HistogramBar]
    median_x: float


def time_values(timestamp: str | None, like: datetime) -> dict[str, str] | None:
    """Return a time for programs and for people, in the zone of `like`; None if there is none."""
    if not timestamp:
        return None
    try:
        moment = datetime.fromisoformat(timestamp).astimezone(like.tzinfo)
    except ValueError:
        return None
    return {"datetime": moment.isoformat(timespec="seconds"), "text": moment.strftime("%Y-%m-%d %H:%M")}


def tool_values(
    request: Request, status: ToolStatus, local_time: datetime, *, can_write: bool, is_importing: bool
) -> dict[str, object]:
    """Return what is always visible of a tool."""
    tool = status.tool
    remarks = []  # names of texts about what is not as it should be, each with a value
    if status.source_state not in ("ok", "elsewhere"):
        remarks.append((f"library.source_{status.source_state}", ""))
    if status.import_state != "done" and not is_importing:
        remarks.append((f"library.import_{status.import_state}", ""))
    if status.rebuild_documents is not None:
        remarks.append(("library.rebuild_unfinished", f"{status.rebuild_documents:,}"))
    if status.index.problem:
        remarks.append(("library.index_problem", say(request, status.index.problem)))
    elif status.index.pending:
        remarks.append(("library.index_behind", f"{status.index.pending:,}"))
    return {
        "name": tool.name,
        "label": single_line(tool.name),
        "anchor": f"tool-{quote(tool.name, safe='')}",
        "address": f"/library?tool={quote(tool.name, safe='')}",
        "description": single_line(tool.description),
        "kind": tool.kind,
        "is_active": tool.active,
        "can_write": can_write,
        "documents": f"{status.totals.documents:,}",
        "chunks": f"{status.totals.chunks:,}",
        "size": format_size(status.bytes),
        "imported": time_values(tool.imported_at, local_time),
        "remarks": remarks,
        "failure_count": sum(problem.files for problem in status.problems if not problem.is_empty),
    }


def details_values(request: Request, details: ToolDetails, local_time: datetime) -> dict[str, object]:
    """Return what is visible of the tool that was opened."""
    status, changes, lengths = details.status, details.changes, details.chunk_lengths
    counted = sum(details.languages.values())
    left_out = [
        problem
        for problem in status.problems
        if problem.is_empty or (problem in details.left_out and not problem.package)
    ]
    failures = [problem for problem in status.problems if problem not in left_out]
    return {
        "source": single_line(status.tool.source),
        "model": single_line(display_name(status.tool.built.embedder or "")),
        "dimension": status.storage.dimension,
        "room": [
            (name, format_size(size))
            for name, size in (
                ("text", status.storage.text),
                ("index", status.storage.index),
                ("vectors", status.storage.vectors),
                ("derived", status.derived_bytes),
            )
            if size
        ],
        "checked": time_values(details.checked_at, local_time),
        "changes": changes
        and [(name, f"{count:,}") for name in ("new", "changed", "gone", "moved") if (count := getattr(changes, name))],
        "languages": [
            {"language": language or "other", "count": f"{count:,}", "share": round(100 * count / counted)}
            for language, count in sorted(details.languages.items(), key=lambda item: -item[1])
        ],
        "is_sample": status.totals.documents > counted,
        "counted": f"{counted:,}",
        "lengths": lengths,
        "histogram": lengths and _length_histogram(lengths),
        "problems": [
            (
                name,
                f"{sum(problem.files for problem in problems):,}",
                [
                    {
                        "path": single_line(problem.uri),
                        "reason": [
                            single_line(say(request, line)) for line in problem.reason.splitlines() if line.strip()
                        ],
                    }
                    for problem in problems[:MAX_FAILURES]
                ],
                max(0, len(problems) - MAX_FAILURES),
            )
            for name, problems in (("failures", failures), ("left_out", left_out))
            if problems
        ],
    }


def _length_histogram(lengths: LengthDistribution, *, width: int = 240, height: int = 56) -> Histogram:
    """Return the picture of a distribution of lengths."""
    largest = max(length_bin.count for length_bin in lengths.bins)
    step = width / len(lengths.bins)
    bars = []
    for index, length_bin in enumerate(lengths.bins):
        # A single chunk among thousands is still to be seen.
        bar_height = max(1.5, length_bin.count / largest * height) if length_bin.count else 0.0
        bars.append(
            HistogramBar(
                round(index * step + 0.5, 1), round(height - bar_height, 1), round(step - 1, 1), round(bar_height, 1),
                length_bin.low, length_bin.high, length_bin.count,
            )
        )  # fmt: skip
    first, last = lengths.bins[0].low, lengths.bins[-1].high + 1
    return Histogram(width, height, bars, round((lengths.median - first) / (last - first) * width, 1))


def job_values(request: Request, jobs: Sequence[Job]) -> list[dict[str, object]]:
    """Return what runs, and the latest that has ended."""
    running = [job for job in jobs if job.state == "running"]
    ended = [job for job in jobs if job.state != "running"]
    visible_jobs = [*running, *ended[::-1]][: max(_SHOWN_JOBS, len(running))]
    return [
        {
            "id": job.id,
            "name": job.name,
            "subject": single_line(job.subject),
            "tool": job.result.get("tool", "") if job.result else job.subject if job.name == "import" else "",
            "state": job.state,
            "done": job.done,
            "total": job.total,
            "message": single_line(say(request, job.message)),
            "minutes_left": ceil(job.seconds_left / 60),
            "seconds": job.seconds,
            "counts": job.result and _result_counts(job.result),
            "problems": _job_problems(request, job.result or {}),
            "error": single_line(say(request, job.error)) if job.error else "",
        }
        for job in visible_jobs
    ]


def _job_problems(request: Request, result: dict[str, object]) -> list[tuple[str, str]]:
    """Return the first documents that a job could not read, each with the reason."""
    problems = result.get("problems")
    return [
        (
            single_line(problem.get("file_path") or problem.get("url", "")),
            single_line(say(request, problem["reason"].partition("\n")[0])),
        )
        for problem in (problems[:_SHOWN_PROBLEMS] if isinstance(problems, list) else [])
    ]


def _result_counts(result: dict[str, object]) -> list[tuple[str, str]]:
    """Return the numbers in the result of a job that are not 0, by their names."""
    names = ("added", "updated", "deleted", "moved", "pages", "chunks", "vectors", "errors")
    counts = [(name, f"{result[name]:,}") for name in names if isinstance(result.get(name), int) and result[name]]
    problems = result.get("problems")
    return [*counts, ("problems", f"{len(problems):,}")] if isinstance(problems, list) and problems else counts


class LibraryPage(PageView):
    """Shows the tools, and adds documents."""

    async def answer(self, request: Request) -> Response:
        """Return the page with all tools, and the details of the one that the address names; or add documents."""
        if request.method == "POST":
            fields = QueryParams((await request.body()).decode("utf-8", "replace"))
            return await self.run(request, lambda library: self._add(request, library, fields))
        return await self.run(request, lambda library: self._build(request, library, NO_ADDITION))

    def _add(self, request: Request, library: LibraryAccess, fields: QueryParams) -> Response:
        """Say what somebody wants to add, or add it."""
        if self.registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        addition = {**NO_ADDITION, **fields}
        try:
            if "add" in fields:
                try:
                    add_documents(library, self.registry.jobs, fields)
                    return RedirectResponse("/library#jobs", 303)
                except BunkoError as error:  # the form stays, with what was written into it
                    addition["problem"] = error_values(request, error, library)
            addition |= propose_addition(request, library, fields)
        except BunkoError as error:
            addition["problem"] = error_values(request, error, library)
        if request.query_params.get("part"):
            return render(request, "library_proposal.html", {"addition": addition})
        return self._build(request, library, addition)

    def _build(self, request: Request, library: LibraryAccess, addition: dict[str, object]) -> Response:
        opened, local_time = request.query_params.get("tool", ""), library.readable.local_time()
        details = library.tool_care.details(opened) if opened else None
        status, rights = library.status(), library.caller.rights
        can_change = not self.registry.is_read_only
        jobs = self.registry.jobs.visible(library.caller)
        importing = {job.subject for job in jobs if job.name == "import" and job.state == "running"}
        values: dict[str, object] = {
            "tools": [
                tool_values(
                    request,
                    tool_status,
                    local_time,
                    is_importing=tool_status.tool.name in importing,
                    can_write=can_change and rights.can_write(tool_status.tool.name),
                )
                for tool_status in status.tools
            ],
            "opened": details.status.tool.name if details else "",
            "details": details and details_values(request, details, local_time),
            "jobs": job_values(request, jobs),
            "can_cancel": can_change and rights.writes_some,
            "documents": f"{sum(tool_status.totals.documents for tool_status in status.tools):,}",
            "size": format_size(status.bytes + status.derived_bytes),
            "unused": status.unused_vectors.count and format_size(status.unused_vectors.bytes),
            "location": single_line(status.location),
        }
        if request.query_params.get("part"):
            return render(request, "library_live.html", values)
        values |= view_values(library)
        values["addition"] = addition
        values["can_add_folder"] = can_change and rights.writes_all and library.caller.is_owner
        values["can_pick_folder"] = is_local_user(request)
        values["can_add_web"] = False
        with suppress(AccessDenied):
            library.web.check_add()
            values["can_add_web"] = can_change
        status_code = 400 if addition["problem"] else 200
        return render(request, "library.html", values, status=status_code, script_sections=["library"])


def view_values(library: LibraryAccess) -> dict[str, object]:
    """Return which views of the library its navigation offers: those that the caller may see."""
    rights = library.caller.rights
    views = ["descriptions", *(["models"] if rights.reads_all else []), *(["settings"] if rights.writes_all else [])]
    return {"views": [("/library", "tools"), *((f"/library/{view}", view) for view in views)]}
