"""Sign browsers in and out: with a link, with a token, or by the identity provider."""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Callable
from urllib.parse import parse_qs, quote, unquote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.errors import BunkoError
from bunko.interfaces.http.authorization import Authorizer
from bunko.interfaces.http.guards import CLIENT_LOG
from bunko.interfaces.http.parts import refuse
from bunko.interfaces.http.provider import ProviderUsers
from bunko.interfaces.http.sessions import is_same_origin, set_cookie, set_session
from bunko.interfaces.sender import local_path, session_cookie
from bunko.library.rights.identity_provider import CALLBACK_PATH, TokenRefused

_log = logging.getLogger(CLIENT_LOG)

LOGIN_PATH, LOGOUT_PATH, START_PATH = "/login", "/logout", "/login/start"
ATTEMPT_SECONDS = 600  # for what people do at the provider
_ATTEMPT_COOKIE = "bunko_sign_in"
_MAX_NEXT_CHARS = 3000  # browsers keep cookies of 4096

SignInPage = Callable[..., Response]  # (request, problem="", next_path="")


class SignIn:
    """Answers /login and /logout; all other requests go on to an app.

    Whoever signs in by the identity provider is sent there, and comes back with a code. What belongs to that attempt
    is in a cookie: a random number, its end and where to go then. The state, the nonce and the verifier are computed
    from that and a key of this server. So any worker can go on, and only the browser that began can.
    """

    def __init__(self, app: ASGIApp, authorizer: Authorizer, page: SignInPage) -> None:
        self._app, self._authorizer, self._page = app, authorizer, page
        self._users = authorizer.users if authorizer.users and authorizer.users.provider.client_id else None
        url = authorizer.users.provider.url if authorizer.users is not None else ""
        self._https_host = _without_default_port(url.removeprefix("https://")) if url.startswith("https:") else None
        self._paths = {LOGIN_PATH, LOGOUT_PATH, *((START_PATH, CALLBACK_PATH) if self._users else ())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        if _without_default_port(Headers(scope=scope).get("host", "")) == self._https_host:
            scope = {**scope, "scheme": "https"}  # not every proxy says so, and cookies depend on it
        response = await self._answer(Request(scope, receive))
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope, method, path = request.scope, request.method, request.scope["path"]
        if method == "GET" and path == LOGIN_PATH:
            return await self._redeem_link(request)
        if method == "GET" and self._users is not None and path == START_PATH:
            return await self._start_attempt(request, self._users)
        if method == "GET" and self._users is not None and path == CALLBACK_PATH:
            return await self._end_attempt(request, self._users)
        if method != "POST" or path not in (LOGIN_PATH, LOGOUT_PATH):
            allowed = {LOGIN_PATH: "GET, POST", LOGOUT_PATH: "POST"}.get(path, "GET")
            return refuse(scope, 405, "method", f"{method} is not allowed here", f"Use {allowed}.", {"Allow": allowed})
        # Otherwise a page of another server on this machine could sign a user in under its own name, or out.
        if not is_same_origin(scope):
            return refuse(
                scope, 403, "wrong_origin", "This form must come from a page of this server", "Reload the page."
            )
        if path == LOGOUT_PATH:
            response = RedirectResponse(LOGIN_PATH, 303)
            set_session(scope, response, "")
            return response
        return await self._accept_form(request)

    async def _start_attempt(self, request: Request, users: ProviderUsers) -> Response:
        """Send a browser to the provider."""
        next_path = local_path(request.query_params.get("next", ""))
        encoded_path = quote(next_path, safe="")
        if len(encoded_path) > _MAX_NEXT_CHARS:
            encoded_path = quote("/", safe="")
        attempt = f"{secrets.token_urlsafe(32)}!{int(time.time()) + ATTEMPT_SECONDS}!{encoded_path}"
        try:
            address = await users.address(*self._attempt_values(attempt))
        except BunkoError as error:
            _log.warning("Nobody can sign in by the identity provider: %s", error.message)
            return self._page(request, problem="away", next_path=next_path)
        response = RedirectResponse(address, 303)
        # Lax: the provider's page leads back here, and only a navigation brings the cookie along.
        set_cookie(request.scope, response, _ATTEMPT_COOKIE, attempt, ATTEMPT_SECONDS, "lax")
        return response

    async def _end_attempt(self, request: Request, users: ProviderUsers) -> Response:
        """Sign in whoever comes back from the provider."""
        attempt, query = session_cookie(request.scope, _ATTEMPT_COOKIE), request.query_params
        state, nonce, verifier = self._attempt_values(attempt)
        try:
            if not attempt or not hmac.compare_digest(state.encode(), query.get("state", "").encode()):
                raise TokenRefused("this browser did not begin to sign in, or began again")
            _, end, encoded_path = attempt.split("!")
            if time.time() >= int(end):
                raise TokenRefused("it took too long")
            if "code" not in query:
                raise TokenRefused(f"the provider says {query.get('error', 'nothing')}")
            user = await users.redeem(query["code"], nonce, verifier, query.get("iss"))
        except TokenRefused as refusal:
            _log.warning("Somebody could not sign in by the identity provider: %s", refusal)
            return self._end(request, self._page(request, problem="provider"))
        except BunkoError as error:
            _log.warning("Nobody can sign in by the identity provider: %s", error.message)
            return self._end(request, self._page(request, problem="away"))
        name = users.session_name(user)
        if users.find_by_session(name).lacks:
            return self._end(request, self._page(request, problem="rights"))
        session = self._authorizer.sessions.create("user", name, users.session_digest)
        return self._end(request, _start(request.scope, session, unquote(encoded_path)))

    def _attempt_values(self, attempt: str) -> tuple[str, str, str]:
        """Return the state, the nonce and the verifier of an attempt."""
        derive = self._authorizer.sessions.derive
        return derive("state", attempt), derive("nonce", attempt), derive("verifier", attempt)

    def _end(self, request: Request, response: Response) -> Response:
        set_cookie(request.scope, response, _ATTEMPT_COOKIE, "", 0)
        return response

    async def _redeem_link(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is None:
            return self._page(request)
        session = self._authorizer.open_local_session(token)
        if session is not None:
            return _start(request.scope, session, "/")
        # A user who is signed in already has followed the link a second time.
        if await self._authorizer.find_session(session_cookie(request.scope)) is not None:
            return RedirectResponse("/", 303)
        return self._page(request, problem="link")

    async def _accept_form(self, request: Request) -> Response:
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        text, next_path = fields.get("token", [""])[0].strip(), local_path(fields.get("next", [""])[0])
        try:
            session = await self._authorizer.open_session(text) if text else None
        except BunkoError as error:
            _log.warning("The tokens of the library cannot be read: %s", error.message)
            return refuse(
                request.scope, 503, error.code, "The tokens cannot be checked now", "Try again later.",
                {"Retry-After": "5"},
            )  # fmt: skip
        if session is None:
            return self._page(request, problem="token", next_path=next_path)
        return _start(request.scope, session, next_path)


def _without_default_port(host: str) -> str:
    return host.lower().removesuffix(":443")


def _start(scope: Scope, session: str, path: str) -> Response:
    response = RedirectResponse(path, 303)
    set_session(scope, response, session)
    return response
