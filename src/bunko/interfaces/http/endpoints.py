"""Answer /healthz, /readyz and /metrics beside the parts of a server, and count all requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.errors import BunkoError
from bunko.interfaces.http.metrics import LibraryState, ServerMetrics
from bunko.interfaces.http.readiness import Readiness
from bunko.interfaces.sender import caller_of
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.worker_threads import Workers

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
