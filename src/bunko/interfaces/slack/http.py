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

from bunko.interfaces.http.app import build_server
from bunko.interfaces.slack.manifest import EVENTS_PATH

if TYPE_CHECKING:
    from slack_bolt import App
    from slack_sdk.signature import SignatureVerifier

_MAX_BODY_BYTES = 1_000_000
_MAX_DIGITS = 12  # of a time in seconds
_CONCURRENT_REQUESTS = 16
BODY_SECONDS = 10.0  # Slack waits for three


def build_http_app(app: App, signing_secret: str) -> Starlette:
    """Return the ASGI app of a bolt app."""
    from slack_sdk.signature import SignatureVerifier

    limiter = anyio.CapacityLimiter(_CONCURRENT_REQUESTS)
    verifier = SignatureVerifier(signing_secret)

    async def handle(request: Request) -> Response:
        from slack_bolt import BoltRequest

        body = b""
        with anyio.move_on_after(BODY_SECONDS) as limit:
            async for part in request.stream():
                body += part
                if len(body) > _MAX_BODY_BYTES:
                    return PlainTextResponse("The request is too large\n", 413)
        if limit.cancelled_caught:
            return PlainTextResponse("The request took too long\n", 408)
        # Bolt checks this too, but parses the request first, whoever sent it.
        if not _is_signed(verifier, request, body):
            return PlainTextResponse("The request is not signed by Slack\n", 401)
        try:
            bolt_request = BoltRequest(body=body.decode(), headers=dict(request.headers.items()))
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError):  # bolt reads the body unchecked
            return PlainTextResponse("The request is not valid\n", 400)
        response = await anyio.to_thread.run_sync(app.dispatch, bolt_request, limiter=limiter)
        headers = {name: values[0] for name, values in response.headers.items()}
        return Response(response.body, response.status, headers)

    return Starlette(routes=[Route(EVENTS_PATH, handle, methods=["POST"])])


def _is_signed(verifier: SignatureVerifier, request: Request, body: bytes) -> bool:
    timestamp, signature = (request.headers.get(f"x-slack-{name}", "") for name in ("request-timestamp", "signature"))
    # The SDK fails on others instead of refusing them.
    is_well_formed = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MAX_DIGITS
    try:
        return is_well_formed and signature.isascii() and verifier.is_valid(body, timestamp, signature)
    except UnicodeDecodeError:
        return False


class _Server(uvicorn.Server):
    """A server that leaves signals to the bot."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve_http(app: App, listener: socket.socket, signing_secret: str) -> None:
    """Serve a bolt app on a listening socket until cancelled."""
    server = _Server(build_server(build_http_app(app, signing_secret)).config)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):  # requests that it has begun to handle are answered
            await server.serve(sockets=[listener])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await anyio.sleep_forever()
        finally:
            server.should_exit = True
