"""The page with the map of all documents; without scripts, a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.query import document_address
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.view import PageView, error_values
from bunko.interfaces.sender import LANGUAGES, choose_language
from bunko.interfaces.text import single_line
from bunko.library.overview.views import COLORS
from bunko.library.reading.documents import ListRequest
from bunko.search.passages import display_label
from bunko.search.request import SearchRequest
from bunko.text.readable import readable_title

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess

_LISTED = 50


class MapPage(PageView):
    """Shows the map; its script fetches the points."""

    async def answer(self, request: Request) -> Response:
        """Return the page with a list of documents, or of what a search has found."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        parameters = request.query_params
        query, color, area = (parameters.get(name, "").strip() for name in ("q", "color", "area"))
        language = parameters.get("lang", "")
        values: dict[str, object] = {
            "query": query, "color": color if color in COLORS else "", "colors": COLORS, "area": area, "areas": None,
            "language_override": language if language in LANGUAGES else "",
            "error": None, "documents": [], "total": 0, "next_address": "",
        }  # fmt: skip
        status = 200
        try:
            has_tools = any(tool.active for tool in library.tools())
            if has_tools and query:
                page = library.page(SearchRequest(query, top_k=_LISTED, per_document=1, extract="chunk"))
                hits = [item.passage.hit for item in page.results]
                values["documents"] = [_entry(hit.tool, hit.uri, hit.title, hit.date, query) for hit in hits]
            elif has_tools and "area" in parameters:
                values |= _areas(request, library, area)
            elif has_tools:
                listing = library.documents.list_documents(
                    ListRequest(sort="newest", limit=_LISTED, cursor=parameters.get("cursor", ""))
                )
                next_query = urlencode({"cursor": listing.next_cursor}, quote_via=quote)
                values |= {
                    "documents": [
                        _entry(tool.name, document.uri, document.title, document.date)
                        for tool, document in listing.documents
                    ],
                    "total": listing.total,
                    "next_address": f"/map?{next_query}" if listing.next_cursor else "",
                }
        except BunkoError as error:
            values["error"], status = error_values(request, error, library), error_status(error)
        return render(request, "map.html", values, status=status, script_sections=("map",))


def _areas(request: Request, library: LibraryAccess, name: str) -> dict[str, object]:
    """Return the names on the map, each as a link to its documents, and the first documents of one of them."""
    language = choose_language(request)
    areas, points = library.readable.overview.areas()
    chosen = {number for number, area in enumerate(areas) if name in area.names.values()}
    inside = sorted((point for point in points if point.area in chosen), key=lambda point: point.document.date)[::-1]
    return {
        "areas": [
            {
                "name": area.name(language), "count": area.count, "is_chosen": number in chosen,
                "address": f"/map?{urlencode({'area': area.name(language)})}",
            }
            for number, area in enumerate(areas)
        ],
        "area": name if inside else "",
        "documents": [
            _entry(point.tool.name, point.document.uri, point.document.title, point.document.date)
            for point in inside[:_LISTED]
        ],
        "total": len(inside) if inside else len(points),
    }  # fmt: skip


def _entry(tool: str, uri: str, title: str, date: str, query: str = "") -> dict[str, str]:
    return {
        "name": display_label(readable_title(title, uri)) or single_line(uri).rpartition("/")[2],
        "address": document_address(tool, uri, q=query),
        "facts": " · ".join(filter(None, (single_line(tool), date[:10]))),
    }
