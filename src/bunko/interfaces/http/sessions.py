"""Sign the sessions of browsers, so that any worker of a server recognises them without storing anything."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from bunko.interfaces.sender import SESSION_COOKIE, cookie_name

SESSION_SECONDS = 7 * 86_400
USER_SESSION_SECONDS = 12 * 3600  # a day of work: nobody tells this server that somebody left the team
LINK_SECONDS = 60.0
_MAX_COOKIE_CHARS = 3800  # browsers keep 4096, with the name

# Made from a link of this process, the server's token, one of the library, or by the identity provider.
Kind = Literal["local", "server", "token", "user"]
_KINDS: tuple[Kind, ...] = ("local", "server", "token", "user")


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """What the cookie of a browser says; believe it only if `Sessions.is_valid`."""

    kind: Kind
    name: str  # of the library's token, or who the user is; empty for the others
    expires: int  # in seconds since 1970
    signature: bytes


class Sessions:
    """Signs sessions with a key, and with the digest of the token that each was made from: it ends with either."""

    def __init__(self, secret: str) -> None:
        self._key = hmac.digest(secret.encode("utf-8", "surrogateescape"), b"sessions of bunko", hashlib.sha256)

    def create(self, kind: Kind, name: str, digest: str) -> str:
        """Return the value of a cookie."""
        expires = int(time.time()) + (USER_SESSION_SECONDS if kind == "user" else SESSION_SECONDS)
        content = f"{kind}.{expires}.{_encode(name.encode())}"
        return f"{content}.{_encode(self._sign(kind, name, expires, digest))}"

    def is_valid(self, session: BrowserSession, digest: str) -> bool:
        """Return whether a session was made here from the token with this digest, and has not expired."""
        expected = self._sign(session.kind, session.name, session.expires, digest)
        return hmac.compare_digest(expected, session.signature) and time.time() < session.expires

    def derive(self, purpose: str, text: str) -> str:
        """Return what nobody without the key can compute from a text; it says nothing about that of another purpose."""
        return _encode(hmac.digest(self._key, f"{purpose}\0{text}".encode(), hashlib.sha256))

    def _sign(self, kind: Kind, name: str, expires: int, digest: str) -> bytes:
        return hmac.digest(self._key, "\0".join((kind, name, str(expires), digest)).encode(), hashlib.sha256)


class LoginLinks:
    """Links by which the user who started this process signs in: each works once, within a minute.

    The sessions that come of them end with the process, because only it knows their key.
    """

    def __init__(self) -> None:
        self.secret = secrets.token_urlsafe(32)
        self._deadlines: dict[bytes, float] = {}

    def create(self) -> str:
        """Return the token of a new link."""
        token = secrets.token_urlsafe(32)
        self._deadlines[_digest(token)] = time.monotonic() + LINK_SECONDS
        return token

    def redeem(self, token: str) -> bool:
        """Return whether a token is valid, which it is no longer after that."""
        # Found by its digest: how long that takes says nothing about the token.
        return time.monotonic() < self._deadlines.pop(_digest(token), 0.0)


def parse_session(value: str) -> BrowserSession | None:
    """Return what a cookie says, or None if it is none of ours."""
    parts = value.split(".") if len(value) <= _MAX_COOKIE_CHARS else []
    if len(parts) != 4 or not (parts[1].isascii() and parts[1].isdigit()):
        return None
    kind = next((kind for kind in _KINDS if kind == parts[0]), None)
    try:
        name, signature = _decode(parts[2]).decode(), _decode(parts[3])
    except (binascii.Error, ValueError):
        return None
    return BrowserSession(kind, name, int(parts[1]), signature) if kind else None


def set_session(scope: Scope, response: Response, value: str) -> None:
    """Let a browser keep a session, or forget it if the value is empty."""
    set_cookie(scope, response, SESSION_COOKIE, value, SESSION_SECONDS)


def set_cookie(
    scope: Scope, response: Response, name: str, value: str, seconds: int, samesite: Literal["lax", "strict"] = "strict"
) -> None:
    """Let a browser keep a value that only this server sees, or forget it if the value is empty."""
    headers = Headers(scope=scope)
    # Only the sender's own browser is concerned, so that no proxy needs to be trusted.
    is_secure = scope["scheme"] == "https" or headers.get("x-forwarded-proto", "").lower() == "https"
    response.set_cookie(
        cookie_name(headers, name), value, seconds if value else 0, path="/",
        httponly=True, samesite=samesite, secure=is_secure,
    )  # fmt: skip


def is_same_origin(scope: Scope) -> bool:
    """Return whether a page of this very server sent a request; other ports of this machine are other origins."""
    headers = Headers(scope=scope)
    scheme, _, authority = headers.get("origin", "").partition("://")
    return scheme in ("http", "https") and authority != "" and authority == headers.get("host", "")


def is_sent_by_another_page(scope: Scope) -> bool:
    """Return whether a page of another server sent a request by itself, without a click on a link.

    Browsers send cookies to all ports of a machine, so a page of another port could ask with the session of this one.
    """
    headers = Headers(scope=scope)
    if headers.get("sec-fetch-site") not in ("same-site", "cross-site"):
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest", "document") != "document"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
