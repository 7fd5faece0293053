"""The parts of a server: MCP, the API and the page, each with its paths and its form of refusals."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import Literal

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

Part = Literal["mcp", "api", "page"]
_INTERNAL_ERROR = -32603  # of JSON-RPC; clients assume it for a status without such a body
ALL_PARTS: frozenset[Part] = frozenset({"mcp", "api", "page"})


def part_of(path: str) -> Part:
    """Return the part that a path belongs to: what is neither MCP nor the API is the page."""
    if path == "/mcp" or path.startswith("/mcp/"):
        return "mcp"
    return "api" if path == "/api" or path.startswith("/api/") else "page"


class PartRouter:
    """Hands each request to the part that its path belongs to, with the whole path."""

    def __init__(self, parts: Mapping[Part, ASGIApp]) -> None:
        self._parts = parts
        self._lifespan = Starlette(lifespan=self._run_lifespans)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif part := self._parts.get(part_of(scope["path"])):
            await part(scope, receive, send)
        else:
            await PlainTextResponse("There is nothing at this address.\n", 404)(scope, receive, send)

    @asynccontextmanager
    async def _run_lifespans(self, _: Starlette) -> AsyncIterator[None]:
        """Run what each part does from the start of the server to its end."""
        async with AsyncExitStack() as stack:
            for part in self._parts.values():
                if isinstance(part, Starlette):
                    await stack.enter_async_context(part.router.lifespan_context(part))
            yield


def refuse(
    scope: Scope, status: int, code: str, message: str, hint: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response for a refused request; the message says what happened, the hint what to do."""
    part = part_of(scope["path"])
    if part == "api":
        return problem(status, code, message, hint, headers)
    if part == "mcp":
        return Response(rpc_error(f"{message}. {hint}"), status, dict(headers or {}), "application/json")
    return PlainTextResponse(f"{message}. {hint}\n", status, dict(headers or {}))


def rpc_error(text: str) -> bytes:
    """Return an error as MCP writes it: of another body, clients show only that there was an error."""
    error = {"code": _INTERNAL_ERROR, "message": text}
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()


def problem(status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return problem details (RFC 9457)."""
    details = {"type": f"/problems/{code}", "title": HTTPStatus(status).phrase, "status": status, "detail": message}
    if hint:
        details["hint"] = hint
    content = json.dumps(details, ensure_ascii=False).encode()
    return Response(content, status, dict(headers or {}), "application/problem+json")


def asks_for_page(scope: Scope) -> bool:
    """Return whether a browser wants to show the answer to this request."""
    if scope["method"] not in ("GET", "HEAD") or part_of(scope["path"]) != "page":
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")
