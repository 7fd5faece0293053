"""The pages, by their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from bunko.interfaces.page.assets import answer_asset
from bunko.interfaces.page.search import SearchPage

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from bunko.interfaces.tools.registry import ToolRegistry


def build_page(registry: ToolRegistry) -> ASGIApp:
    """Return the app of the page; whoever sends a request was checked before, except for assets."""
    return Starlette(
        routes=[
            Route("/assets/{digest}/{path:path}", answer_asset),
            Route("/", SearchPage(registry).answer),
        ]
    )
