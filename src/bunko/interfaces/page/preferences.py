"""What a browser keeps of somebody's taste: the colours and the language of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from starlette.responses import RedirectResponse

from bunko.interfaces.sender import LANGUAGE_COOKIE, LANGUAGES, local_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

THEMES = ("light", "dark")
_THEME_COOKIE = "bunko_theme"
_YEAR_SECONDS = 365 * 86_400


def chosen_theme(request: Request) -> str:
    """Return the colours that somebody chose; empty: those of the browser."""
    theme = request.cookies.get(_THEME_COOKIE, "")
    return theme if theme in THEMES else ""


async def keep_preferences(request: Request) -> Response:
    """Let the browser keep what a form says, and lead back to the page that it stands on."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    response = RedirectResponse(_page_before(request), 303)
    for field, cookie, choices in (("theme", _THEME_COOKIE, THEMES), ("lang", LANGUAGE_COOKIE, LANGUAGES)):
        choice = fields.get(field, [""])[0]
        if choice in choices:
            response.set_cookie(cookie, choice, _YEAR_SECONDS, httponly=True, samesite="lax")
        else:
            response.delete_cookie(cookie, httponly=True, samesite="lax")
    return response


def _page_before(request: Request) -> str:
    """Return the address of the page that sent a form, without a language, which would override the chosen one."""
    page = urlsplit(request.headers.get("referer", ""))
    if page.netloc != request.headers.get("host"):
        return "/"
    parameters = [(name, value) for name, value in parse_qsl(page.query) if name != "lang"]
    return local_path(page._replace(scheme="", netloc="", query=urlencode(parameters), fragment="").geturl())
