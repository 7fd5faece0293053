"""Answer requests to the API: find the endpoint, check the request, run it in a thread, and describe errors."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from bunko.errors import AccessDenied, BunkoError
from bunko.interfaces.api import problems
from bunko.interfaces.api.endpoint import Call, Endpoint, find_endpoint
from bunko.interfaces.api.events import EventFeed
from bunko.interfaces.api.openapi import FIXED_PAGES
from bunko.interfaces.api.problems import RequestError, error_status, problem_of
from bunko.interfaces.api.requests import parse_body, parse_query, read_body
from bunko.interfaces.api.routes import all_endpoints
from bunko.interfaces.sender import caller_of, is_local_user, preferred_language
from bunko.interfaces.worker_threads import Workers
from bunko.library.access import ASK_HINT
from bunko.messages import Language
from bunko.runtime.package_errors import find_package_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.types.access import Caller

_log = logging.getLogger("bunko.api")

# Requests that run at once; more wait a moment, then get an error. Long ones are on their own, so that searches never
# wait for them.
MAX_CALLS, MAX_LONG_CALLS, MAX_WAIT_SECONDS = 40, 10, 10.0
_HEADERS = {
    "Cache-Control": "private, no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Authorization, Cookie, Accept-Language",
}
_INTERNAL = RequestError("The request failed with an internal error", hint="See the log of the server.", status=500)


def build_api(registry: ToolRegistry) -> ASGIApp:
    """Return the app of the API; the senders of its requests were checked before."""
    return _Api(registry)


class _Api:
    """The API over a library."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._events = EventFeed(registry)
        self._workers = Workers("requests", max_threads=MAX_CALLS, max_wait_seconds=MAX_WAIT_SECONDS)
        self._long_workers = Workers("long requests", max_threads=MAX_LONG_CALLS, max_wait_seconds=MAX_WAIT_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except BunkoError as error:
            response = _problem_response(error, preferred_language(request))
        except Exception as error:
            package_error = find_package_error(error)
            _log.log(logging.DEBUG if package_error else logging.ERROR, "%s failed", scope["path"], exc_info=True)
            response = _problem_response(package_error or _INTERNAL, preferred_language(request))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.scope.get("raw_path", request.scope["path"].encode()).decode("ascii", "replace")
        if page := FIXED_PAGES.get(path):
            if request.method not in ("GET", "HEAD"):
                raise _no_endpoint_error(path, ["GET", "HEAD"])
            content, media_type = page()
            return Response(content, headers=_HEADERS, media_type=media_type)
        match = find_endpoint(all_endpoints(), request.method, path)
        if isinstance(match, list):
            raise _no_endpoint_error(path, match)
        endpoint, values = match
        caller, is_local = caller_of(request), is_local_user(request)
        self._check_rights(endpoint, caller, is_local_user=is_local)
        arguments = values | await _read_arguments(endpoint, request)
        key = f"{path}?{request.scope['query_string'].decode('latin-1')}"
        known_tags = request.headers.get("if-none-match", "")

        def answer() -> tuple[Any, str]:
            call = Call(self._registry.access(caller), self._registry.jobs, self._events, is_local)
            with call.library.hiding_places():
                if endpoint.has_etag:
                    return _answer_if_changed(endpoint, call, arguments, key, known_tags)
                return endpoint.answer(call, **arguments), ""

        workers = self._long_workers if endpoint.is_long or endpoint.right == "write" else self._workers
        reply, etag = await workers.run(answer)
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"} if etag else {}
        if endpoint.is_stream:
            return StreamingResponse(reply, 200, _HEADERS | {"X-Accel-Buffering": "no"}, "text/event-stream")
        if reply is None:
            return Response(status_code=304, headers=_HEADERS | headers)
        return Response(_encode(reply), endpoint.status, _HEADERS | headers, media_type="application/json")

    def _check_rights(self, endpoint: Endpoint, caller: Caller, *, is_local_user: bool) -> None:
        if endpoint.needs_local_user and not is_local_user:
            raise AccessDenied(
                "Only whoever started this server may do that, on the same machine", hint="Start one with: bunko ui"
            )
        if endpoint.right != "write":
            return
        if self._registry.is_read_only:
            raise AccessDenied("This server only reads", hint="Start it without --read-only.")
        if not caller.rights.writes_some:
            raise AccessDenied("This token may not change the library", hint=ASK_HINT)


async def _read_arguments(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """Return the parameters and the body that an endpoint takes."""
    arguments: dict[str, Any] = {}
    query = parse_query(endpoint.query, request.scope["query_string"])
    if "query" in endpoint.hints:
        arguments["query"] = query
    if endpoint.body is not None:
        arguments["body"] = parse_body(endpoint.body, await read_body(request))
    return arguments


def _answer_if_changed(
    endpoint: Endpoint, call: Call, arguments: dict[str, Any], key: str, known_tags: str
) -> tuple[Any, str]:
    """Return the answer and its tag; no answer if the client has it already."""
    if known_tags:  # otherwise the answer itself imports changes
        tools = [arguments["tool"]] if "tool" in arguments else getattr(arguments.get("query"), "tool", [])
        call.library.documents.refresh(tuple(tools) or None)
    digest = hashlib.sha256(f"{key}\n{call.library.state()}".encode()).hexdigest()[:32]
    etag = f'W/"{digest}"'
    if etag in (tag.strip() for tag in known_tags.split(",")):
        return None, etag
    reply = endpoint.answer(call, **arguments)
    # A notice may be of the moment, such as a model that does not answer.
    return reply, "" if reply.get("notices") else etag


def _no_endpoint_error(path: str, methods: list[str]) -> RequestError:
    if not methods:
        return RequestError(f"There is nothing at {path[:200]}", hint="See /api/docs.", status=404)
    error = RequestError("This method cannot be used here", hint=f"Use {' or '.join(methods)}.", status=405)
    error.headers["Allow"] = ", ".join(methods)
    return error


def _problem_response(error: BunkoError, language: Language) -> Response:
    headers = error.headers if isinstance(error, RequestError) else {}
    if error_status(error) in (429, 503):
        headers = {**headers, "Retry-After": str(problems.RETRY_SECONDS)}
    headers = {**headers, "Content-Language": language}
    content = _encode(problem_of(error, language))
    return Response(content, error_status(error), _HEADERS | headers, media_type=problems.MEDIA_TYPE)


def _encode(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, from a file name
        return json.dumps(value, separators=(",", ":")).encode()
