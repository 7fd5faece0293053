"""Tell operators how a server is: answer /healthz and /readyz, and /metrics for all workers together."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.errors import BunkoError, IndexFailure, LibraryUnreachable
from bunko.interfaces.http.parts import part_of
from bunko.interfaces.sender import caller_of
from bunko.interfaces.tools.registry import ToolRegistry, error_text
from bunko.interfaces.worker_threads import Workers
from bunko.runtime.activity import ImportResult, SearchResult
from bunko.version import __version__

if TYPE_CHECKING:
    from prometheus_client import Metric

_log = logging.getLogger("bunko.mcp")

MAX_SECONDS = 3.0  # for an answer; load balancers wait for five or ten
# Anybody may ask, so that asking often must not cost anything.
CACHE_SECONDS = 1.0


class Readiness:
    """The state of a server, checked by one thread at a time."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._workers = Workers("checks", max_threads=1, max_wait_seconds=MAX_SECONDS)
        self._check: asyncio.Task[str] | None = None
        self._checked_at = 0.0
        self._logged = ""

    async def problem(self) -> str:
        """Return why searches cannot be answered, or an empty string; it takes at most some seconds.

        The sentence names no host, path or tool: the client may have no token. The details are logged.
        """
        check = self._check
        if check is None or (check.done() and time.monotonic() - self._checked_at > CACHE_SECONDS):
            check = self._check = asyncio.create_task(self._run_check())
        done, _ = await asyncio.wait({check}, timeout=MAX_SECONDS)
        return check.result() if done else f"The library has not answered within {MAX_SECONDS:.0f} seconds"

    async def _run_check(self) -> str:
        try:
            problem, details = await self._workers.run(self._find_problem)
        except BunkoError as error:
            problem, details = "The library cannot be opened", error_text(error)
        except Exception as error:
            _log.exception("The check of this server failed")
            problem, details = "The check of this server failed", type(error).__name__
        if details != self._logged:
            self._logged = details
            if details:
                _log.warning("This server is not ready: %s", details)
        self._checked_at = time.monotonic()
        return problem

    def _find_problem(self) -> tuple[str, str]:
        """Do what every search does first; return what is wrong, for everybody and for the log."""
        library = self._registry.library()
        try:
            library.maintenance.check_ready()
        except IndexFailure as error:
            return "The index does not answer", error_text(error)
        except LibraryUnreachable as error:
            return "The library does not answer", error_text(error)
        except BunkoError as error:
            return "The library cannot be searched", error_text(error)
        return "", ""


# In seconds: from a search by words in a small library to an import that a search waits for.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# Requests for other paths are counted together: a label for each would let anybody fill the memory.
PATHS = ("/mcp", "/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True)
class LibraryState:
    """What is asked of the library itself when the metrics are read."""

    is_ready: bool
    store: str = ""
    index: str = ""
    generation: int | None = None
    index_lag: int | None = None  # generations that the index of some tool is behind the store
    pending_documents: int | None = None


class ServerMetrics:
    """The metrics of one server process; with a shared folder, those of all processes that share it.

    The labels are modes, stages, outcomes, paths and status codes: no query, no token, and no chosen name.
    """

    def __init__(self, shared_folder: Path | None = None) -> None:
        # The package reads this variable once, when it is imported.
        if shared_folder is None:
            os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
        else:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared_folder)
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._shared_folder, self._registry = shared_folder, CollectorRegistry()
        registry = self._registry
        self._searches = Counter("bunko_searches", "Searches by mode and result", ["mode", "result"], registry=registry)
        self._stages = Histogram(
            "bunko_stage_seconds", "Time of each stage of a search or import", ["stage"],
            registry=registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._imports = Counter("bunko_imports", "Imports of a tool by this server", ["result"], registry=registry)
        self._imported = Counter(
            "bunko_imported_documents", "Documents that imports of this server wrote or removed", registry=registry
        )
        self._lookups = Counter(
            "bunko_cache_lookups", "Lookups in a cache by result", ["cache", "result"], registry=registry
        )
        self._requests = Counter(
            "bunko_http_requests", "HTTP requests by path and status", ["path", "status"], registry=registry
        )
        Counter("bunko_worker_starts", "Server processes that were started", registry=registry).inc()

    def on_search(self, mode: str, result: SearchResult, seconds: float) -> None:
        """Count a search."""
        self._searches.labels(mode or "unknown", result).inc()
        self._stages.labels("answer").observe(seconds)

    def on_import(self, result: ImportResult, documents: int) -> None:
        """Count an import."""
        self._imports.labels(result).inc()
        self._imported.inc(documents)

    def on_cache(self, cache: str, *, is_hit: bool) -> None:
        """Count a lookup."""
        self._lookups.labels(cache, "hit" if is_hit else "miss").inc()

    def on_stage(self, stage: str, seconds: float) -> None:
        """Add the time of a step."""
        self._stages.labels(stage).observe(seconds)

    def count_request(self, path: str, status: int) -> None:
        """Count an HTTP request."""
        label = "/api" if part_of(path) == "api" else path if path in PATHS else "other"
        self._requests.labels(label, str(status)).inc()

    def render(self, state: LibraryState) -> tuple[bytes, str]:
        """Return the metrics as text, and its media type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if self._shared_folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=str(self._shared_folder))  # type: ignore[no-untyped-call]
        gauges = CollectorRegistry()
        gauges.register(_LibraryCollector(state))
        return generate_latest(registry) + generate_latest(gauges), CONTENT_TYPE_LATEST


class _LibraryCollector:
    """Describes the library; every worker would say the same."""

    def __init__(self, state: LibraryState) -> None:
        self._state = state

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the library."""
        from prometheus_client.core import GaugeMetricFamily

        state = self._state
        labels = {
            "version": __version__, "python": platform.python_version(), "store": state.store, "index": state.index,
        }  # fmt: skip
        info = GaugeMetricFamily("bunko_build_info", "What serves, with the value 1", labels=list(labels))
        info.add_metric(list(labels.values()), 1)
        yield info
        numbers = {
            "bunko_ready": ("1 if searches can be answered, as /readyz says", int(state.is_ready)),
            "bunko_library_generation": ("Grows with every change of the library", state.generation),
            "bunko_index_lag_generations": ("Generations that the index is behind the library", state.index_lag),
            "bunko_index_pending_documents": ("Documents that the index lacks", state.pending_documents),
        }
        for name, (text, value) in numbers.items():
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)


_STATE_SECONDS = 5.0  # for the numbers that only the library knows; without them, the rest is still published


class PathEndpoint:
    """Answers GET and HEAD for one path; all other requests go on to an app."""

    def __init__(self, app: ASGIApp, path: str, answer: Callable[[Request], Awaitable[Response]]) -> None:
        self._app, self._path, self._answer = app, path, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD"):
            response = await self._answer(Request(scope))
        else:
            response = PlainTextResponse("Use GET.\n", 405, {"Allow": "GET, HEAD"})
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)


async def answer_health(_: Request) -> Response:
    """Say that the process lives: its event loop has answered."""
    return PlainTextResponse("ok\n")


async def answer_readiness(readiness: Readiness, _: Request) -> Response:
    """Say whether searches can be answered now, or why not."""
    problem = await readiness.problem()
    return PlainTextResponse(f"{problem}\n", 503) if problem else PlainTextResponse("ready\n")


class MetricsPage:
    """The metrics of a server with the numbers that only its library knows, if that answers in time."""

    def __init__(self, metrics: ServerMetrics, registry: ToolRegistry, readiness: Readiness) -> None:
        self._metrics, self._registry, self._readiness = metrics, registry, readiness
        self._workers = Workers("readers of metrics", max_threads=2, max_wait_seconds=_STATE_SECONDS)

    async def answer(self, request: Request) -> Response:
        """Return all metrics; they count the searches and changes of all tools, so only to those who may read them."""
        if not caller_of(request).rights.reads_all:
            return PlainTextResponse(
                "This token may not read the metrics: it needs the right to read all tools.\n", 403
            )
        state = LibraryState(is_ready=not await self._readiness.problem())
        if state.is_ready:
            with anyio.move_on_after(_STATE_SECONDS):
                try:
                    state = await self._workers.run(_library_state, self._registry)
                except BunkoError:  # it went away just now
                    state = LibraryState(is_ready=False)
        content, media_type = self._metrics.render(state)
        return Response(content, media_type=media_type)


def _library_state(registry: ToolRegistry) -> LibraryState:
    library = registry.library()
    states = [tool_state.state for tool_state in library.index.status()]
    generation = library.storage.generation()
    return LibraryState(
        is_ready=True,
        store=library.storage.kind,
        index=library.index.kind,
        generation=generation,
        index_lag=max((generation - state.generation for state in states if not state.is_current), default=0),
        pending_documents=sum(state.pending for state in states),
    )


class CountRequests:
    """Counts the requests of an app by path and status."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

        async def count_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count_request(scope["path"], message["status"])
            await send(message)

        await self._app(scope, receive, count_and_send if scope["type"] == "http" else send)
