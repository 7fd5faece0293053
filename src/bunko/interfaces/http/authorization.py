"""Tell who sends an HTTP request by its bearer token or its session, and refuse all others."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bunko.errors import BunkoError, LibraryUnreachable
from bunko.interfaces.http.guards import WRONG_ORIGIN
from bunko.interfaces.http.parts import asks_for_page, part_of, refuse
from bunko.interfaces.http.provider import ProviderUsers
from bunko.interfaces.http.sessions import (
    LoginLinks,
    Sessions,
    is_same_origin,
    is_sent_by_another_page,
    parse_session,
)
from bunko.interfaces.sender import IDENTITY_KEY, ClientIdentity, session_cookie
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.worker_threads import Workers
from bunko.library.rights.audit import local_caller
from bunko.library.rights.tokens import TOKEN_PREFIX, find_token, is_expired, token_digest
from bunko.types.access import Caller, Token

FRESH_SECONDS = 1.0  # how soon a revoked token is refused, and a failure forgotten
_GRACE_SECONDS = 60.0  # how long tokens count that cannot be read again
_READ_SECONDS = 4.5  # for a read; a load balancer waits for five or ten
_KNOWN_WAIT_SECONDS = 1.0  # the same while there are tokens that still count


class TokenLoader:
    """The tokens of a library, as they were at most a second ago while it can be read."""

    def __init__(self, read: Callable[[], list[Token]], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._tokens: list[Token] = []
        self._read_at = self._failed_at = -math.inf
        self._error: BunkoError | None = None
        self._reading: asyncio.Task[None] | None = None
        self._workers = Workers("reads of tokens", max_threads=1, max_wait_seconds=_READ_SECONDS)

    async def find(self, find: Callable[[Sequence[Token]], Token | None]) -> Token | None:
        """Return the token that a function finds; raise why tokens cannot be read unless it was known not long ago."""
        if self._clock() - max(self._read_at, self._failed_at) >= FRESH_SECONDS:
            await self._wait_for_read()
        token = find(self._tokens)
        if self._error is not None and (token is None or self._clock() - self._read_at >= _GRACE_SECONDS):
            raise self._error
        return token

    async def _wait_for_read(self) -> None:
        """Wait for the read that is running, or for a new one: a client that goes away does not end it."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_once())
        seconds = _KNOWN_WAIT_SECONDS if self._clock() - self._read_at < _GRACE_SECONDS else _READ_SECONDS
        done, _ = await asyncio.wait({self._reading}, timeout=seconds)
        if done:
            self._reading.result()  # a bug of ours is raised
        else:
            self._note(LibraryUnreachable("The library does not answer", hint="Try again later."))

    async def _read_once(self) -> None:
        started_at = self._clock()
        try:
            self._tokens = await self._workers.run(self._read)
        except BunkoError as error:
            self._note(error)
        else:
            self._error, self._read_at = None, started_at

    def _note(self, error: BunkoError) -> None:
        self._error, self._failed_at = error, self._clock()


_log = logging.getLogger("bunko.mcp")

# Of the one token that `bunko serve` reads or creates. No token of a library has a space in its name.
SERVER_CALLER = Caller("server token", "http", is_owner=True)

LISTEN_SECONDS = 1.0  # between two checks of a token whose client listens for changes
_USED_SECONDS = 60.0  # between two records of when a token was used
_LOG_SECONDS = 1.0  # between two lines about refused requests
_MAX_THREADS, _MAX_WAIT_SECONDS = 4, 10.0
_CHALLENGE = 'Bearer realm="bunko"'
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Authorizer:
    """Knows the token of the server, those of its library and those of its identity provider, and whose they are."""

    def __init__(
        self,
        registry: ToolRegistry,
        server_token: str,
        links: LoginLinks | None = None,
        users: ProviderUsers | None = None,
    ) -> None:
        self._registry, self._server_digest = registry, token_digest(server_token)
        self.sessions, self._links, self.users = Sessions(server_token), links, users
        self._local_sessions = Sessions(links.secret) if links is not None else None
        self._tokens = TokenLoader(lambda: registry.library().tokens.all())
        self._used_at: dict[str, float] = {}
        self._workers = Workers("checks of tokens", max_threads=_MAX_THREADS, max_wait_seconds=_MAX_WAIT_SECONDS)

    async def find_bearer(self, text: str) -> ClientIdentity | None:
        """Return whose token this is, or None if it is unknown, revoked or expired."""
        if hmac.compare_digest(token_digest(text), self._server_digest):
            return ClientIdentity(SERVER_CALLER)
        if not text.startswith(TOKEN_PREFIX):  # no reason to read the library
            is_signed = self.users is not None and text.count(".") == 2
            return await self.users.find(text) if self.users is not None and is_signed else None
        return _identity_by(await self._tokens.find(lambda tokens: find_token(tokens, text)))

    async def find_session(self, value: str) -> ClientIdentity | None:
        """Return whose session this is, or None if it has ended or its token is no longer valid."""
        session = parse_session(value)
        if session is None:
            return None
        if session.kind == "local":
            sessions = self._local_sessions
            is_valid = sessions is not None and sessions.is_valid(session, self._server_digest)
            return ClientIdentity(local_caller("http"), is_local_user=True) if is_valid else None
        if session.kind == "user":
            is_user = self.users is not None and self.sessions.is_valid(session, self.users.session_digest)
            return self.users.find_by_session(session.name) if self.users is not None and is_user else None
        if session.kind == "server":
            return ClientIdentity(SERVER_CALLER) if self.sessions.is_valid(session, self._server_digest) else None
        token = await self._tokens.find(
            lambda tokens: next((token for token in tokens if token.name == session.name), None)
        )
        if token is None or is_expired(token) or not self.sessions.is_valid(session, token.digest):
            return None
        return _identity_by(token)

    async def open_session(self, text: str) -> str | None:
        """Return the cookie of a new session for a bearer token, or None if the token is not valid."""
        identity = await self.find_bearer(text)
        if identity is None:
            return None
        if identity.caller is SERVER_CALLER:
            return self.sessions.create("server", "", self._server_digest)
        if identity.token is None:  # of the provider, where browsers sign in themselves
            return None
        await self.mark_used(identity)
        return self.sessions.create("token", identity.token.name, identity.token.digest)

    def open_local_session(self, text: str) -> str | None:
        """Return the cookie of a new session for the token of a link, or None if it was used or has expired."""
        if self._links is None or self._local_sessions is None or not self._links.redeem(text):
            return None
        return self._local_sessions.create("local", "", self._server_digest)

    def challenge(self, error: str = "") -> dict[str, str]:
        """Return the header that says which token is needed, and what was wrong with the one that came."""
        reason = f', error="{error}"' if error else ""
        return {"WWW-Authenticate": f"{_CHALLENGE}{reason}{self.users.challenge if self.users is not None else ''}"}

    async def mark_used(self, identity: ClientIdentity) -> None:
        """Record that a token of the library was used, at most once a minute."""
        token = identity.token
        if token is None or time.monotonic() - self._used_at.get(token.name, -_USED_SECONDS) < _USED_SECONDS:
            return
        self._used_at[token.name] = time.monotonic()
        with suppress(BunkoError):
            await self._workers.run(self._registry.library().tokens.mark_used, token)


def _identity_by(token: Token | None) -> ClientIdentity | None:
    if token is None:
        return None
    return ClientIdentity(Caller(token.name, "http", token.rights), token, may_end=True)


Find = Callable[[], Awaitable[ClientIdentity | None]]


class TokenGuard:
    """Lets through only requests with a valid token or session, each with its caller."""

    def __init__(
        self,
        app: ASGIApp,
        authorizer: Authorizer,
        *,
        public_path: str = "",
        sign_in: Callable[[Request], Response] | None = None,
    ) -> None:
        """`public_path` begins the paths that anybody may read; `sign_in` asks a browser for a token."""
        self._app, self._authorizer = app, authorizer
        self._public_path, self._sign_in = public_path, sign_in
        self._logged_at, self._unlogged = -_LOG_SECONDS, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or (self._public_path and scope["path"].startswith(self._public_path)):
            await self._app(scope, receive, send)
            return
        response = await self._handle(scope, receive, send)
        if response is not None:
            await response(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Hand a request on, or return why not."""
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        has_bearer = scheme.lower() == "bearer" and text != ""
        session = "" if scheme or part_of(scope["path"]) == "mcp" else session_cookie(scope)
        find: Find
        if has_bearer:
            find = partial(self._authorizer.find_bearer, text.encode("latin-1").decode("utf-8", "surrogateescape"))
        elif session:
            find = partial(self._authorizer.find_session, session)
        else:
            return self._refuse_stranger(scope)
        try:
            identity = await find()
        except BunkoError as error:
            _log.warning("Tokens cannot be checked: %s", error.message)
            return refuse(
                scope, 503, error.code, "The tokens cannot be checked now", "Try again later.", {"Retry-After": "5"}
            )
        if identity is None:
            if not has_bearer:  # sessions end without anybody's fault
                return self._refuse_stranger(scope)
            self._log_refusal(scope)
            return self._refuse_token(scope)
        if identity.lacks:
            return self._refuse_lack(scope, identity)
        if session and scope["method"] not in _SAFE_METHODS and not is_same_origin(scope):
            return refuse(
                scope, 403, "wrong_origin", "A change with a session must come from a page of this server",
                "Reload the page, or send a bearer token.",
            )  # fmt: skip
        if session and is_sent_by_another_page(scope):
            return refuse(scope, 403, "wrong_origin", WRONG_ORIGIN, "Reload the page, or send a bearer token.")
        await self._authorizer.mark_used(identity)
        scope = {**scope, IDENTITY_KEY: identity}
        if not identity.may_end or not only_listens(scope):
            await self._app(scope, receive, send)
            return None
        return await self._serve_while_valid(find, scope, receive, send)

    async def _serve_while_valid(self, find: Find, scope: Scope, receive: Receive, send: Send) -> Response | None:
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
                    await anyio.sleep(LISTEN_SECONDS)
                    with suppress(BunkoError):  # a library that is away revokes nothing
                        if await find() is None:
                            tasks.cancel_scope.cancel()

            tasks.start_soon(end_with_token)
            await self._app(scope, receive, note_and_send)
            tasks.cancel_scope.cancel()
        if not has_started:
            return self._refuse_token(scope)
        if not is_complete:
            await send({"type": "http.response.body", "body": b""})
        return None

    def _refuse_stranger(self, scope: Scope) -> Response:
        """Ask for a token: browsers with a form."""
        if self._sign_in is not None and asks_for_page(scope):
            return self._sign_in(Request(scope))
        return refuse(
            scope, 401, "unauthorized", "A bearer token is required", "See `bunko serve --http`.",
            self._authorizer.challenge(),
        )  # fmt: skip

    def _refuse_token(self, scope: Scope) -> Response:
        """Refuse a token that is not valid."""
        return refuse(
            scope, 401, "unauthorized", "This token is not valid, or no longer",
            "Ask whoever runs this server for another one.", self._authorizer.challenge("invalid_token"),
        )  # fmt: skip

    def _refuse_lack(self, scope: Scope, identity: ClientIdentity) -> Response:
        """Refuse somebody whom the provider knows, and who may do nothing here."""
        if identity.lacks == "scope":
            return refuse(
                scope, 403, "insufficient_scope", "This token lacks a scope", "Sign in again, with all scopes.",
                self._authorizer.challenge("insufficient_scope"),
            )  # fmt: skip
        return refuse(scope, 403, "denied", "This account has no rights here", "Ask whoever runs this server for some.")

    def _log_refusal(self, scope: Scope) -> None:
        """Log a refused request, without its token, and not so often that clients could fill the disk."""
        if time.monotonic() - self._logged_at < _LOG_SECONDS:
            self._unlogged += 1
            return
        client = scope.get("client") or ("unknown",)
        _log.warning("Refused a request with an invalid token from %s (%d before it)", client[0], self._unlogged)
        self._logged_at, self._unlogged = time.monotonic(), 0


def only_listens(scope: Mapping[str, Any]) -> bool:
    """Return whether a request opens a stream of changes; MCP refuses one whose header names another method."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]
