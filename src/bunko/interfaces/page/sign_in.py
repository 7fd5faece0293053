"""The page that asks a browser without a session for a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.interfaces.page.rendering import render
from bunko.interfaces.sender import local_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_FOREIGN = ("cross-site", "same-site")


def sign_in_page(request: Request, problem: str = "", next_path: str = "") -> Response:
    """Return a form for a token; `problem` says what was wrong with the last one: link or token.

    Browsers leave the session out if a link of another site, or a file, leads here. A page of this server may send it,
    so the first answer to such a link only loads the same address again.
    """
    headers, is_login = request.headers, request.url.path == "/login"
    query = f"?{request.url.query}" if request.url.query else ""
    address = local_path(next_path or ("/" if is_login else f"{request.url.path}{query}"))
    is_foreign_link = headers.get("sec-fetch-site") in _FOREIGN and headers.get("sec-fetch-dest") == "document"
    is_retried = is_foreign_link and not is_login
    values = {"problem": problem, "next": address, "is_retried": is_retried}
    response = render(request, "sign_in.html", values, status=200 if is_login and not problem else 401)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="bunko"'
    return response
