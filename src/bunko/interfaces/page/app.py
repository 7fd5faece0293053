"""The pages, by their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from bunko.interfaces.page.ask import AskPage
from bunko.interfaces.page.assets import answer_asset
from bunko.interfaces.page.document import DocumentPage
from bunko.interfaces.page.judge import JudgePage
from bunko.interfaces.page.library import LibraryPage
from bunko.interfaces.page.library_views import DescriptionsPage, ModelsPage, SettingsPage
from bunko.interfaces.page.map import MapPage
from bunko.interfaces.page.quality import QualityPage
from bunko.interfaces.page.search import SearchPage
from bunko.interfaces.page.settings_change import SettingsChangePage
from bunko.interfaces.page.time import TimePage

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bunko.interfaces.tools.registry import ToolRegistry


def build_page(registry: ToolRegistry) -> ASGIApp:
    """Return the app of the page; whoever sends a request was checked before, except for assets."""
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
            Route("/library/settings", SettingsPage(registry).answer),
            Route("/quality", QualityPage(registry).answer),
            Route("/quality/judge", JudgePage(registry).answer),
        ]
    )
