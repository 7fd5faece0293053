"""Take Slack's requests over HTTP; only those that Slack has signed in the last minutes are handled."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bunko.interfaces.mcp.http import build_server
from bunko.interfaces.slack.manifest import EVENTS_PATH

if TYPE_CHECKING:
    from slack_bolt import App

_MAX_BODY_BYTES = 1_000_000
_MAX_DIGITS = 12  # of a time in seconds
_CONCURRENT_REQUESTS = 16


def build_http_app(app: App) -> Starlette:
    """Return the ASGI app of a bolt app."""
    limiter = anyio.CapacityLimiter(_CONCURRENT_REQUESTS)

    async def handle(request: Request) -> Response:
        from slack_bolt.adapter.starlette.handler import to_bolt_request, to_starlette_response

        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BODY_BYTES:
                return PlainTextResponse("The request is too large\n", 413)
        if not _can_be_signed(request):
            return PlainTextResponse("The request is not signed\n", 401)
        try:
            bolt_request = to_bolt_request(request, body)
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):  # bolt reads the body unchecked
            return PlainTextResponse("The request is not valid\n", 400)
        response = await anyio.to_thread.run_sync(app.dispatch, bolt_request, limiter=limiter)
        return to_starlette_response(response)

    return Starlette(routes=[Route(EVENTS_PATH, handle, methods=["POST"])])


def _can_be_signed(request: Request) -> bool:
    """Return whether the headers have the form of a signature; bolt fails on others instead of refusing them."""
    timestamp, signature = (request.headers.get(f"x-slack-{name}", "") for name in ("request-timestamp", "signature"))
    return timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MAX_DIGITS and signature.isascii()


class _Server(uvicorn.Server):
    """A server that leaves signals to the bot."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(app: App, listener: socket.socket) -> None:
    """Serve a bolt app on a listening socket until cancelled."""
    server = _Server(build_server(build_http_app(app)).config)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # requests that it has begun to handle are answered
            await server.serve(sockets=[listener])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
