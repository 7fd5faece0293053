"""Read from an HTTP request who sent it, by which session, from which machine, and in which language to answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bunko.errors import AccessDenied
from bunko.library.access import ASK_HINT
from bunko.messages import Language

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.types import Scope

    from bunko.types.access import Caller, Token

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
LANGUAGES: tuple[Language, ...] = ("en", "ja")
IDENTITY_KEY = "bunko.identity"  # of the scope of a request that was let through
SESSION_COOKIE = "bunko_session"
LANGUAGE_COOKIE = "bunko_lang"


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who sends a request, and by what."""

    caller: Caller
    token: Token | None = None  # of the library
    is_local_user: bool = False
    may_end: bool = False  # its token or session, while this server runs
    lacks: Literal["", "scope", "rights"] = ""  # why somebody who is known may do nothing


def caller_of(request: Request) -> Caller:
    """Return who sent a request."""
    return _identity_of(request).caller


def is_local_user(request: Request) -> bool:
    """Return whether the user who started this server sent a request, on its machine and by a link of `bunko ui`."""
    client = request.scope.get("client") or ("",)
    return _identity_of(request).is_local_user and client[0] in LOOPBACK_HOSTS


def find_identity(scope: Scope) -> ClientIdentity | None:
    """Return who sends a request, or None for one that anybody may send."""
    identity = scope.get(IDENTITY_KEY)
    return identity if isinstance(identity, ClientIdentity) else None


def _identity_of(request: Request) -> ClientIdentity:
    identity = find_identity(request.scope)
    if identity is None:
        raise AccessDenied("Nobody has checked who sends this request", hint=ASK_HINT)
    return identity


def session_cookie(scope: Scope, name: str = SESSION_COOKIE) -> str:
    """Return the cookie of a request, or an empty string."""
    from starlette.datastructures import Headers
    from starlette.requests import HTTPConnection

    return HTTPConnection(scope).cookies.get(cookie_name(Headers(scope=scope), name), "")


def cookie_name(headers: Headers, name: str) -> str:
    """Return the name of a cookie of the server that a request was sent to."""
    # Browsers send cookies to all ports of a machine: with one name, two servers would sign each other out.
    port = headers.get("host", "").rpartition(":")[2]
    return f"{name}_{port}" if port.isascii() and port.isdigit() else name


def local_path(text: str) -> str:
    """Return a path of this server, else its first page: no form may lead to another site."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if is_local else "/"


def chosen_language(request: Request) -> Language | None:
    """Return the language that somebody chose on the page of this server, or None."""
    choice = request.cookies.get(LANGUAGE_COOKIE)
    return next((language for language in LANGUAGES if language == choice), None)


def choose_language(request: Request) -> Language:
    """Return the language of a page: `?lang=`, else the one that was chosen, else the one that the browser prefers."""
    if (language_parameter := request.query_params.get("lang")) in LANGUAGES:
        return "ja" if language_parameter == "ja" else "en"
    return chosen_language(request) or preferred_language(request)


def preferred_language(request: Request) -> Language:
    """Return the language that a browser or a program prefers."""
    best: tuple[float, Language] = (0.0, "en")
    for part in request.headers.get("accept-language", "").split(","):
        tag, _, weight = part.strip().lower().partition(";q=")
        language = tag.partition("-")[0]
        if language in LANGUAGES and (quality := _quality(weight)) > best[0]:
            best = (quality, "ja" if language == "ja" else "en")
    return best[1]


def _quality(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0
