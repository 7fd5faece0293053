"""The page that shows what other search settings of a tool would change, and makes them its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from bunko.errors import BunkoError, UnknownName
from bunko.interfaces.page.answering import PageView, error_page
from bunko.interfaces.page.query import PageQuery, parse_page_query
from bunko.interfaces.page.ranking import change_values, new_settings, search_before, searched_tool
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.results import build_results
from bunko.types.ranking import OPTIONS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.rights.access import LibraryAccess


class SettingsChangePage(PageView):
    """Shows the difference, then writes it."""

    async def answer(self, request: Request) -> Response:
        """Return the difference, or write it and return to the search."""
        try:
            if request.method == "POST":
                query = parse_page_query(QueryParams((await request.body()).decode("utf-8", "replace")))
                return await self.run(request, lambda library: self._write(library, query))
            query = parse_page_query(request.query_params)
        except BunkoError as error:
            return error_page(request, error)
        return await self.run(request, lambda library: self._show(request, library, query))

    def _show(self, request: Request, library: LibraryAccess, query: PageQuery) -> Response:
        values = change_values(self.registry.library(), library, query)
        before = search_before(library, query) if not query.is_empty else []
        page = library.page(query.page_request(explain=False)) if not query.is_empty else None
        values["results"] = build_results(page, query, before) if page else []
        values["query"] = query
        return render(request, "settings_change.html", values)

    def _write(self, library: LibraryAccess, query: PageQuery) -> Response:
        tool = searched_tool(library, query)
        if tool is None:
            raise UnknownName("No tool was named")
        library.tool_care.update(tool.name, search=new_settings(tool, query))
        address = query.address(**dict.fromkeys(OPTIONS), tuning=True)
        return RedirectResponse(address, 303)
