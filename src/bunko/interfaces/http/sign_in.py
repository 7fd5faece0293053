"""Give a browser a session: for a link that works once, or for a token that somebody pastes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bunko.errors import BunkoError
from bunko.interfaces.http.authorization import Authorizer
from bunko.interfaces.http.refusals import refuse
from bunko.interfaces.http.sessions import is_same_origin, set_session
from bunko.interfaces.sender import local_path, session_cookie

_log = logging.getLogger("bunko.mcp")

LOGIN_PATH, LOGOUT_PATH = "/login", "/logout"

SignInPage = Callable[..., Response]  # (request, problem="", next_path="")


class SignIn:
    """Answers /login and /logout; all other requests go on to an app."""

    def __init__(self, app: ASGIApp, authorizer: Authorizer, page: SignInPage) -> None:
        self._app, self._authorizer, self._page = app, authorizer, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http" or scope["path"] not in (LOGIN_PATH, LOGOUT_PATH):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        response = await self._answer(request)
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope, method = request.scope, request.method
        if method == "GET" and scope["path"] == LOGIN_PATH:
            return await self._redeem_link(request)
        if method != "POST":
            allowed = "GET, POST" if scope["path"] == LOGIN_PATH else "POST"
            return refuse(scope, 405, "method", f"{method} is not allowed here", f"Use {allowed}.", {"Allow": allowed})
        # Otherwise a page of another server on this machine could sign somebody in under its own name, or out.
        if not is_same_origin(scope):
            return refuse(
                scope, 403, "wrong_origin", "This form must come from a page of this server", "Reload the page."
            )
        if scope["path"] == LOGOUT_PATH:
            response = RedirectResponse(LOGIN_PATH, 303)
            set_session(scope, response, "")
            return response
        return await self._accept_form(request)

    async def _redeem_link(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is None:
            return self._page(request)
        session = self._authorizer.open_local_session(token)
        if session is not None:
            return _start(request.scope, session, "/")
        # Whoever is signed in already has followed the link a second time.
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


def _start(scope: Scope, session: str, path: str) -> Response:
    response = RedirectResponse(path, 303)
    set_session(scope, response, session)
    return response
