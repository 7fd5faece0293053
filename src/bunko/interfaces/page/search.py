"""The page that searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.interfaces.page.rendering import render

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.interfaces.tools.registry import ToolRegistry


class SearchPage:
    """Searches the library and shows what was found."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def answer(self, request: Request) -> Response:
        """Return the page for a query, or an empty one."""
        return render(request, "search.html", {"query": request.query_params.get("q", "")}, script_sections=["search"])
