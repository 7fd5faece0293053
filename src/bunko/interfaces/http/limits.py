"""Limit what one caller of the API and the page can ask of a server: the size of a request, and how many there are."""

from __future__ import annotations

import math
from collections import deque
from time import monotonic

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.interfaces.http.parts import part_of
from bunko.interfaces.http.refusals import refuse
from bunko.interfaces.sender import find_identity

MAX_BODY_BYTES = 1024 * 1024  # what a person types or pastes into a form
_BURST_SECONDS = 10.0  # of requests that may come at once
_MAX_CALLERS = 1000


class BodyLimit:
    """Refuses requests with a large body; MCP has a limit of its own."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app, self._max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, once its whole body is here."""
        if scope["type"] != "http" or part_of(scope["path"]) == "mcp":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        if "transfer-encoding" not in headers and length in ("", "0"):
            await self._app(scope, receive, send)
            return
        messages = await self._receive_body(receive, int(length) if length.isdigit() else 0)
        if messages is None:
            response = refuse(
                scope, 413, "too_large", f"A request may have {self._max_bytes:,} bytes at most",
                "Send less at once.", {"Connection": "close"},
            )  # fmt: skip
            await response(scope, receive, send)
            return

        async def replay() -> Message:
            return messages.popleft() if messages else await receive()

        await self._app(scope, replay, send)

    async def _receive_body(self, receive: Receive, announced: int) -> deque[Message] | None:
        """Return the messages with the body, or None if it is too large."""
        messages: deque[Message] = deque()
        received, is_complete = 0, False
        while not is_complete:
            if max(announced, received) > self._max_bytes:
                return None
            message = await receive()
            messages.append(message)
            received += len(message.get("body", b""))
            is_complete = message["type"] != "http.request" or not message.get("more_body", False)
        return messages if received <= self._max_bytes else None


class RateLimit:
    """Refuses the requests of a caller that come too fast, and says when to try again; MCP is not counted.

    Each caller has a bucket that fills at `per_second`, up to ten seconds' worth. Several workers count on their own.
    """

    def __init__(self, app: ASGIApp, per_second: float) -> None:
        self._app, self._per_second = app, per_second
        self._capacity = max(1.0, per_second * _BURST_SECONDS)
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http" and part_of(scope["path"]) != "mcp" and (wait := self._take(scope)) > 0:
            response = refuse(
                scope, 429, "too_many", f"More than {self._per_second:g} requests a second came from this caller",
                f"Try again in {math.ceil(wait)} s.", {"Retry-After": str(math.ceil(wait))},
            )  # fmt: skip
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _take(self, scope: Scope) -> float:
        """Count a request; return how many seconds to wait if it is one too many."""
        identity = find_identity(scope)
        if identity is None:  # styles and scripts, which are in memory
            return 0.0
        name, moment = identity.caller.name, monotonic()
        allowance, counted_at = self._buckets.pop(name, (self._capacity, moment))
        allowance = min(self._capacity, allowance + (moment - counted_at) * self._per_second)
        is_allowed = allowance >= 1
        self._buckets[name] = (allowance - 1 if is_allowed else allowance, moment)
        if len(self._buckets) > _MAX_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        return 0.0 if is_allowed else (1 - allowance) / self._per_second
