"""The pages, by their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.routing import Route

from bunko.interfaces.page.ask import AskPage
from bunko.interfaces.page.document import DocumentPage
from bunko.interfaces.page.library import LibraryPage
from bunko.interfaces.page.library_views import DescriptionsPage, ModelsPage, SettingsPage
from bunko.interfaces.page.map import MapPage
from bunko.interfaces.page.preferences import keep_preferences
from bunko.interfaces.page.quality import JudgePage, QualityPage
from bunko.interfaces.page.ranking import SettingsChangePage
from bunko.interfaces.page.rendering import answer_asset, environment, render, translate
from bunko.interfaces.page.search import SearchPage
from bunko.interfaces.page.time import TimePage
from bunko.interfaces.sender import choose_language, local_path

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.library.rights.identity_provider import IdentityProvider


def build_page(registry: ToolRegistry) -> ASGIApp:
    """Return the app of the page; the senders of requests were checked before, except for assets."""
    environment()  # what cannot work fails here, and not at the first request
    return Starlette(
        routes=[
            Route("/assets/{digest}/{path:path}", answer_asset),
            Route("/", SearchPage(registry).answer),
            Route("/documents/{tool}/{path:path}", DocumentPage(registry).answer),
            Route("/search-settings", SettingsChangePage(registry).answer, methods=["GET", "POST"]),
            Route("/ask", AskPage(registry).answer),
            Route("/map", MapPage(registry).answer),
            Route("/time", TimePage(registry).answer),
            Route("/library", LibraryPage(registry).answer, methods=["GET", "POST"]),
            Route("/library/descriptions", DescriptionsPage(registry).answer),
            Route("/library/models", ModelsPage(registry).answer, methods=["GET", "POST"]),
            Route("/library/settings", SettingsPage(registry).answer, methods=["GET", "POST"]),
            Route("/preferences", keep_preferences, methods=["POST"]),
            Route("/quality", QualityPage(registry).answer),
            Route("/quality/judge", JudgePage(registry).answer),
        ],
        exception_handlers={404: _answer_missing},
    )


async def _answer_missing(request: Request, _: Exception) -> Response:
    """Return a page that leads back, for an address that is none of ours."""
    message = translate(choose_language(request), "common.nothing_here")
    return render(request, "error.html", {"message": message, "hint": ""}, status=404)


_FOREIGN = ("cross-site", "same-site")


def sign_in_page(
    request: Request, problem: str = "", next_path: str = "", provider: IdentityProvider | None = None
) -> Response:
    """Return a form for a token, and a link to the identity provider if there is one.

    `problem` says what was wrong with the last attempt: link, token, provider, away or rights. `next_path` is where to
    go then; it is empty if another page was asked for, which comes then.

    Browsers leave the session out if a link of another site, or a file, leads here. A page of this server may send it,
    so the first answer to such a link only loads the same address again.
    """
    headers, is_login = request.headers, next_path != ""
    query = f"?{request.url.query}" if request.url.query else ""
    address = local_path(next_path or f"{request.url.path}{query}")
    is_foreign_link = headers.get("sec-fetch-site") in _FOREIGN and headers.get("sec-fetch-dest") == "document"
    is_retried = is_foreign_link and not is_login
    # At the name of the server that the provider knows: its browser's cookies are those of that name.
    start = f"{provider.url}/login/start?next={quote(address)}" if provider and provider.client_id else ""
    name = urlsplit(provider.issuer).hostname if provider else ""
    values = {
        "problem": problem, "next": address, "is_retried": is_retried, "start": start, "provider": name,
    }  # fmt: skip
    response = render(request, "sign_in.html", values, status=200 if is_login and not problem else 401)
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="bunko"'
    return response
