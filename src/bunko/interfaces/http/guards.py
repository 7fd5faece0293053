"""Guard a server: refuse foreign names, other sites, large bodies and too many requests, and limit its log."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections import deque
from collections.abc import Collection, Sequence
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.interfaces.http.parts import part_of, refuse
from bunko.interfaces.sender import LOOPBACK_HOSTS, find_identity
from bunko.text.labels import clean_label

CLIENT_LOG = "bunko.http.clients"
# Their warnings are about requests, and some quote them: anybody can cause them, also without a token.
LOGGERS = (CLIENT_LOG, "uvicorn.error")
_SECONDS = 1.0  # between two warnings of a logger
_MAX_CHARS = 200


class ClientLogFilter(logging.Filter):
    """Cleans warnings about requests, and lets one through now and then.

    Those about clients that have gone, and about requests that ended with the server, are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged_at, self._omitted = -_SECONDS, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ClientDisconnect | asyncio.CancelledError):
            return False
        if record.levelno != logging.WARNING:
            return True
        if time.monotonic() - self._logged_at < _SECONDS:
            self._omitted += 1
            return False
        message = clean_label(record.getMessage(), _MAX_CHARS)
        record.msg, record.args = f"{message} ({self._omitted} before it)" if self._omitted else message, ()
        self._logged_at, self._omitted = time.monotonic(), 0
        return True


def limit_client_logs() -> None:
    """Limit the logs about requests."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for old in [old for old in logger.filters if isinstance(old, ClientLogFilter)]:
            logger.removeFilter(old)
        logger.addFilter(ClientLogFilter())


_log = logging.getLogger(CLIENT_LOG)

_WRONG_HOST = "This server does not answer under this name"
WRONG_ORIGIN = "Pages of other sites may not use this server"
_PORT = r"(?::[0-9]{1,5})?"
_HOST = re.compile(rf"(\[[^\]]*\]|[^:]*){_PORT}")
_ORIGIN = re.compile(rf"https?://(\[[^\]]*\]|[^:]*){_PORT}")
_HINT = "Whoever runs it can allow the name in the setting serve.allowed_hosts."


def allowed_names(host: str, allowed_hosts: Sequence[str]) -> frozenset[str]:
    """Return the names that a server answers to, as a URL writes them; any port and scheme will do."""
    host_names = [*LOOPBACK_HOSTS, *allowed_hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
    return frozenset(f"[{name}]" if ":" in name else name for name in host_names)


class HostCheck:
    """Lets through only requests whose Host and Origin are names of this server: others are answered 421 and 403."""

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin", "")
            if not self._is_allowed(_HOST, host):
                _log.warning("Invalid Host header: %s", host)
                await refuse(scope, 421, "wrong_host", _WRONG_HOST, _HINT)(scope, receive, send)
                return
            if origin and not self._is_allowed(_ORIGIN, origin):
                _log.warning("Invalid Origin header: %s", origin)
                await refuse(scope, 403, "wrong_origin", WRONG_ORIGIN, _HINT)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_allowed(self, form: re.Pattern[str], text: str) -> bool:
        match = form.fullmatch(text)
        return match is not None and match[1] in self._names


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


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it, browsers hide even from this server that one of its own pages sent a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class ResponseHeaders:
    """Adds headers to every answer that a browser may show, refusals included; MCP clients show none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or part_of(scope["path"]) == "mcp":
            await self._app(scope, receive, send)
            return

        async def add_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add_and_send)
