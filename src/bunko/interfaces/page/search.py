"""The page that searches: a form, the results, and the document beside them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.document import show_document
from bunko.interfaces.page.query import PageQuery, document_address, parse_page_query
from bunko.interfaces.page.ranking import ranking_values, search_before
from bunko.interfaces.page.rendering import render, translate
from bunko.interfaces.page.results import build_results
from bunko.interfaces.page.typed_search import TypedSearches
from bunko.interfaces.page.view import PageView, error_page, error_values, say
from bunko.interfaces.sender import choose_language, is_local_user
from bunko.interfaces.text import single_line
from bunko.search.passages import display_label
from bunko.text.readable import readable_title

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.library.access import LibraryAccess

_RECENT = 8
_MAX_TAGS = 200
_SECTIONS = ("search", "document")


class SearchPage(PageView):
    """Searches the library and shows what was found."""

    def __init__(self, registry: ToolRegistry) -> None:
        super().__init__(registry)
        self._typed_searches = TypedSearches()

    async def answer(self, request: Request) -> Response:
        """Return the page for a search; without one, the newest documents."""
        try:
            query = parse_page_query(request.query_params)
        except BunkoError as error:
            return error_page(request, error)
        answer = partial(self.run, request, lambda library: self._build(request, library, query))
        return await (self._typed_searches.run(request, answer) if query.part == "results" else answer())

    def _build(self, request: Request, library: LibraryAccess, query: PageQuery) -> Response:
        values: dict[str, Any] = {"query": query, "is_local_user": is_local_user(request), "error": None}
        status = 200
        try:
            values |= self._search(request, library, query)
        except BunkoError as error:  # the form stays, so that the search can be changed
            values |= {"error": error_values(request, error, library), "results": [], "notices": [], "next_address": ""}
            values |= {"mode": "", "ranking": None, "total_chunks": 0}
            status = error_status(error)
        if query.part == "results":
            return render(request, "results_part.html", values, status=status)
        tools = [tool for tool in library.tools() if tool.active]
        values["tools"] = [(tool.name, single_line(tool.name)) for tool in tools]
        values["tags"] = [tag for tag, _ in library.readable.tags()[:_MAX_TAGS]] if tools else []
        values["document"] = self._open_document(request, library, query)
        values["selection_size"] = 0
        if query.selection:
            with suppress(BunkoError):  # it is gone
                values["selection_size"] = library.readable.overview.selection_size(query.selection)
        values["recent"] = self._recent(library) if query.is_empty and tools else []
        return render(request, "search.html", values, status=status, script_sections=_SECTIONS)

    def _search(self, request: Request, library: LibraryAccess, query: PageQuery) -> dict[str, Any]:
        values: dict[str, Any] = {"results": [], "notices": [], "next_address": "", "mode": "", "ranking": None}
        if query.is_empty:
            return values | {"total_chunks": 0}
        page = library.page(query.page_request(explain=query.why > 0))
        before = search_before(library, query) if query.ranking else []
        values["results"] = build_results(page, query, before)
        values["notices"] = [say(request, notice) for notice in page.notices]
        values["next_address"] = query.address(cursor=page.next_cursor) if page.next_cursor else ""
        if query.tuning or query.ranking:
            values["ranking"] = ranking_values(self.registry.library(), library, query, before, values["results"])
        return values | {"mode": page.mode, "total_chunks": page.total_chunks}

    def _open_document(self, request: Request, library: LibraryAccess, query: PageQuery) -> dict[str, Any] | None:
        """Return the document beside the results; one that is gone is left out."""
        tool, _, path = query.open.partition("/")
        if not path:
            return None
        try:
            label = translate(choose_language(request), "document.table")
            return show_document(library, tool, path, hit=query.hit, terms=query.q, at=query.at, table_label=label)
        except BunkoError:
            return None

    def _recent(self, library: LibraryAccess) -> list[dict[str, str]]:
        return [
            {
                "name": display_label(readable_title(document.title, document.uri))
                or single_line(document.uri).rpartition("/")[2],
                "address": document_address(tool.name, document.uri),
                "tool": single_line(tool.name),
                "date": document.date[:10],
            }
            for tool, document in library.readable.recent_documents(limit=_RECENT)
        ]
