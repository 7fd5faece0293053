"""Tell who sends an HTTP request by its bearer token, and refuse everybody else."""

from __future__ import annotations

import hmac
import logging
import time
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.errors import AccessDenied, BunkoError
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.worker_threads import Workers
from bunko.library.access import ASK_HINT
from bunko.library.audit import local_caller
from bunko.library.tokens import TOKEN_PREFIX, find_token, token_digest
from bunko.timing import now
from bunko.types.access import Caller, Token

_log = logging.getLogger("bunko.mcp")

# Of the one token that `bunko serve` reads or creates. No token of a library has a space in its name.
SERVER_CALLER = Caller("server token", "http")

_CALLER_KEY = "bunko.caller"  # of the scope of a request
_FRESH_SECONDS = 1.0  # how soon a revoked token is refused
_LISTEN_SECONDS = 1.0  # between two checks of a token whose client listens for changes
_USED_SECONDS = 60.0  # between two records of when a token was used
_LOG_SECONDS = 1.0  # between two lines about refused requests
_MAX_THREADS, _MAX_WAIT_SECONDS = 4, 10.0
_REQUIRED = b"A bearer token is required: see `bunko serve --http`.\n"
_INVALID = b"This token is not valid, or no longer: ask whoever runs this server for another one.\n"
_UNAVAILABLE = b"The tokens cannot be checked now: try again later.\n"


def caller_of(request: Any, *, is_local: bool) -> Caller:
    """Return who sent a request: to a server for this machine only, whoever started this process."""
    if is_local:
        return local_caller("stdio")
    caller = request.scope.get(_CALLER_KEY) if request is not None else None
    if not isinstance(caller, Caller):
        raise AccessDenied("Nobody has checked who sends this request", hint=ASK_HINT)
    return caller


class Authorizer:
    """Knows the token of the server and those of its library, and whose they are."""

    def __init__(self, registry: ToolRegistry, server_token: str) -> None:
        self._registry, self._server_digest = registry, token_digest(server_token)
        self._tokens: list[Token] = []
        self._loaded_at = -_FRESH_SECONDS
        self._loading = anyio.Lock()
        self._used_at: dict[str, float] = {}
        self._workers = Workers("checks of tokens", max_threads=_MAX_THREADS, max_wait_seconds=_MAX_WAIT_SECONDS)

    async def identify(self, text: str) -> Caller | None:
        """Return the caller whose token this is, or None; raise an error if the library cannot be read."""
        if hmac.compare_digest(token_digest(text), self._server_digest):
            return SERVER_CALLER
        token = await self.find(text)
        if token is None:
            return None
        if time.monotonic() - self._used_at.get(token.name, -_USED_SECONDS) >= _USED_SECONDS:
            self._used_at[token.name] = time.monotonic()
            with suppress(BunkoError):
                await self._workers.run(self._registry.library().store.tokens.mark_used, token.name, now())
        return Caller(token.name, "http", token.rights)

    async def find(self, text: str) -> Token | None:
        """Return the token of the library that this is, or None if it is unknown, revoked or expired."""
        if not text.startswith(TOKEN_PREFIX):  # no reason to read the library
            return None
        await self._load_tokens()
        return find_token(self._tokens, text)

    async def _load_tokens(self) -> None:
        """Read the tokens, at most once a second however many requests there are."""
        async with self._loading:
            started_at = time.monotonic()
            if started_at - self._loaded_at >= _FRESH_SECONDS:
                self._tokens = await self._workers.run(lambda: self._registry.library().store.tokens.all())
                self._loaded_at = started_at


class TokenGuard:
    """Lets through only requests with a valid token, each with its caller."""

    def __init__(self, app: ASGIApp, authorizer: Authorizer) -> None:
        self._app, self._authorizer = app, authorizer
        self._logged_at, self._unlogged = -_LOG_SECONDS, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        header = dict(scope["headers"]).get(b"authorization", b"").decode("utf-8", "surrogateescape")
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text:
            await _refuse(send, 401, _REQUIRED)
            return
        try:
            caller = await self._authorizer.identify(text)
        except BunkoError as error:
            _log.warning("The tokens of the library cannot be read: %s", error.message)
            await _refuse(send, 503, _UNAVAILABLE)
            return
        if caller is None:
            self._log_refusal(scope)
            await _refuse(send, 401, _INVALID, error=b"invalid_token")
            return
        # The SDK compares the user with the one who opened the session: nobody can use the session of another.
        user = AuthenticatedUser(AccessToken(token="", client_id=caller.name, scopes=[]))
        scope = {**scope, _CALLER_KEY: caller, "user": user}
        if caller is SERVER_CALLER or not _only_listens(scope):
            await self._app(scope, receive, send)
        else:
            await self._serve_while_valid(text, scope, receive, send)

    async def _serve_while_valid(self, text: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that may last for days; it ends with its token."""
        has_started = is_complete = False

        async def note_and_send(message: Message) -> None:
            nonlocal has_started, is_complete
            has_started = True
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        async with anyio.create_task_group() as tasks:

            async def end_with_token() -> None:
                while True:
                    await anyio.sleep(_LISTEN_SECONDS)
                    with suppress(BunkoError):  # a library that is away revokes nothing
                        if await self._authorizer.find(text) is None:
                            tasks.cancel_scope.cancel()

            tasks.start_soon(end_with_token)
            await self._app(scope, receive, note_and_send)
            tasks.cancel_scope.cancel()
        if not has_started:
            await _refuse(send, 401, _INVALID, error=b"invalid_token")
        elif not is_complete:
            await send({"type": "http.response.body", "body": b""})

    def _log_refusal(self, scope: Scope) -> None:
        """Log a refused request, without its token, and not so often that somebody could fill the disk."""
        if time.monotonic() - self._logged_at < _LOG_SECONDS:
            self._unlogged += 1
            return
        client = scope.get("client") or ("unknown",)
        _log.warning("Refused a request with an invalid token from %s (%d before it)", client[0], self._unlogged)
        self._logged_at, self._unlogged = time.monotonic(), 0


def _only_listens(scope: Scope) -> bool:
    """Return whether a request opens a stream of changes; the SDK refuses one whose header names another method."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


async def _refuse(send: Send, status: int, body: bytes, *, error: bytes = b"") -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        parameters = b', error="' + error + b'"' if error else b""
        headers.append((b"www-authenticate", b'Bearer realm="bunko"' + parameters))
    else:
        headers.append((b"retry-after", b"5"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
