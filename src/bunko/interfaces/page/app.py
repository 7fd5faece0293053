"""The pages, by their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from bunko.interfaces.page.ask import AskPage
from bunko.interfaces.page.assets import answer_asset
from bunko.interfaces.page.document import DocumentPage
from bunko.interfaces.page.judge import JudgePage
from bunko.interfaces.page.language import translate
from bunko.interfaces.page.library import LibraryPage
from bunko.interfaces.page.library_settings import SettingsPage
from bunko.interfaces.page.library_views import DescriptionsPage, ModelsPage
from bunko.interfaces.page.map import MapPage
from bunko.interfaces.page.quality import QualityPage
from bunko.interfaces.page.rendering import environment, render
from bunko.interfaces.page.search import SearchPage
from bunko.interfaces.page.settings_change import SettingsChangePage
from bunko.interfaces.page.time import TimePage
from bunko.interfaces.sender import choose_language

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from bunko.interfaces.tools.registry import ToolRegistry


def build_page(registry: ToolRegistry) -> ASGIApp:
    """Return the app of the page; whoever sends a request was checked before, except for assets."""
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
            Route("/library", LibraryPage(registry).answer),
            Route("/library/descriptions", DescriptionsPage(registry).answer),
            Route("/library/models", ModelsPage(registry).answer),
            Route("/library/settings", SettingsPage(registry).answer, methods=["GET", "POST"]),
            Route("/quality", QualityPage(registry).answer),
            Route("/quality/judge", JudgePage(registry).answer),
        ],
        exception_handlers={404: _answer_missing},
    )


async def _answer_missing(request: Request, _: Exception) -> Response:
    """Return a page that leads back, for an address that is none of ours."""
    message = translate(choose_language(request), "common.nothing_here")
    return render(request, "error.html", {"message": message, "hint": ""}, status=404)
