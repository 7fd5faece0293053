"""The page that searches: a form, the results, and the document beside them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.document import find_document, show_document
from bunko.interfaces.page.facets import active_filters, count_facets
from bunko.interfaces.page.query import PageQuery, document_address, parse_page_query
from bunko.interfaces.page.ranking import ranking_values, search_before
from bunko.interfaces.page.rendering import render, translate
from bunko.interfaces.page.results import ResultBuilder
from bunko.interfaces.page.typed_search import TypedSearches
from bunko.interfaces.page.view import PageView, error_page, error_values, say
from bunko.interfaces.sender import choose_language, is_local_user
from bunko.interfaces.text import single_line
from bunko.search.paging import PageItem
from bunko.search.passages import display_label
from bunko.text.readable import readable_title

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.interfaces.tools.registry import ToolRegistry
    from bunko.library.access import LibraryAccess
    from bunko.types.records import DatedDocument, StoredDocument

_RECENT = 8
_LIKE = 20
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
        return await (self._typed_searches.run(request, answer) if query.part else answer())

    def _build(self, request: Request, library: LibraryAccess, query: PageQuery) -> Response:
        values: dict[str, Any] = {"query": query, "is_local_user": is_local_user(request), "error": None}
        if query.part == "facets":
            return render(request, "facets_part.html", values | self._facets(library, query))
        status = 200
        try:
            values |= self._search(request, library, query)
        except BunkoError as error:  # the form stays, so that the search can be changed
            values |= {"error": error_values(request, error, library), "results": [], "notices": [], "next_address": ""}
            values |= {"mode": "", "ranking": None, "like": None}
            status = error_status(error)
        if query.part == "results":
            return render(request, "results_part.html", values, status=status)
        values |= self._facets(library, query)
        tools = [tool for tool in library.tools() if tool.active]
        values["tools"] = [(tool.name, single_line(tool.name)) for tool in tools]
        values["tags"] = [tag for tag, _ in library.readable.tags()[:_MAX_TAGS]] if tools else []
        values["document"] = self._open_document(request, library, query)
        values["selection_size"] = 0
        values["periods"] = [("month", "30d"), ("year", str(library.readable.local_time().year))]
        if query.selection:
            with suppress(BunkoError):  # it is gone
                values["selection_size"] = library.readable.overview.selection_size(query.selection)
        values["recent"] = self._recent(library) if query.is_empty and tools else []
        return render(request, "search.html", values, status=status, script_sections=_SECTIONS)

    def _search(self, request: Request, library: LibraryAccess, query: PageQuery) -> dict[str, Any]:
        values: dict[str, Any] = {"results": [], "notices": [], "next_address": "", "mode": "", "ranking": None}
        values["like"] = None
        if query.is_empty:
            return values
        if query.like:
            return values | self._search_like(library, query)
        page = library.page(query.page_request(explain=query.why > 0))
        before = search_before(library, query) if query.ranking else []
        values["results"] = ResultBuilder(library.readable, query, page.searched_query, before).build(page.results)
        values["notices"] = [say(request, notice) for notice in page.notices]
        values["next_address"] = query.address(cursor=page.next_cursor) if page.next_cursor else ""
        if query.tuning or query.ranking:
            values["ranking"] = ranking_values(self.registry.library(), library, query, before, values["results"])
        return values | {"mode": page.mode}

    def _search_like(self, library: LibraryAccess, query: PageQuery) -> dict[str, Any]:
        """Return the documents that are most like another one."""
        tool_name, _, path = query.like.partition("/")
        tool, document = find_document(library, tool_name, path)
        hits = library.readable.searches.similar(tool, document.uri, limit=_LIKE)
        passages = library.readable.passages(hits, "chunk", join_chunks=False)
        items = [PageItem(passage, passage.text, has_start=True, has_end=True) for passage in passages]
        return {
            "results": ResultBuilder(library.readable, query, "").build(items),
            "like": {"name": _document_name(document), "address": document_address(tool.name, document.uri)},
        }

    def _facets(self, library: LibraryAccess, query: PageQuery) -> dict[str, Any]:
        """Return the filters of a search and what would narrow it; without results, only its filters."""
        values: dict[str, Any] = {"filters": active_filters(query), "facets": None}
        if not (query.is_empty or query.like):
            with suppress(BunkoError):  # the results say what is wrong
                values["facets"] = count_facets(library, query)
        return values

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
                "name": _document_name(document),
                "address": document_address(tool.name, document.uri),
                "tool": single_line(tool.name),
                "date": document.date[:10],
            }
            for tool, document in library.readable.recent_documents(limit=_RECENT)
        ]


def _document_name(document: StoredDocument | DatedDocument) -> str:
    return display_label(readable_title(document.title, document.uri)) or single_line(document.uri).rpartition("/")[2]
