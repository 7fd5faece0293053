"""Refuse a request in the form that its sender reads: problem details for the API, a page for browsers, else text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import Scope

from bunko.interfaces.http.parts import part_of


def refuse(
    scope: Scope, status: int, code: str, message: str, hint: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response for a refused request; the message says what happened, the hint what to do."""
    if part_of(scope["path"]) == "api":
        return problem(status, code, message, hint, headers)
    return PlainTextResponse(f"{message}. {hint}\n", status, dict(headers or {}))


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
