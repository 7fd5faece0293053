"""Show a library as a whole: the map of its documents, its calendar, and its tags over the years."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bunko import sources
from bunko.embedders import embed_and_check
from bunko.errors import QueryError
from bunko.library.maps.calendar import TagYears, count_days, count_tags_by_year
from bunko.library.maps.groups import Color, MapGroup, group_points
from bunko.library.reading.documents import ListRequest
from bunko.library.searching.selections import load_selection, store_selection
from bunko.search.request import clean_query
from bunko.text.dates import time_zone
from bunko.types.records import NO_FILTER, Filter, ListedDocument

if TYPE_CHECKING:
    from datetime import date, tzinfo

    from bunko.library.library import Library
    from bunko.library.maps.document_map import MapPoint
    from bunko.library.maps.layout import LayoutName

_ALL = 10**9  # documents of a list


@dataclass(frozen=True, slots=True)
class MapView:
    """The documents of a map with their colours."""

    points: list[MapPoint]
    groups: list[MapGroup]
    group_of: list[int]  # the number of the group of each point
    left_out: int  # documents without vectors, or with those of another embedder


class Overview:
    """What somebody may see of a library as a whole."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def map(self, *, color: Color = "tool", layout: LayoutName = "pca") -> MapView:
        """Return the documents in two dimensions, after importing changes; it depends on no document but these."""
        points, left_out = self._library.maps.points(self._library.documents.fresh_tools(), layout)
        groups, group_of = group_points(points, color, self._zone())
        return MapView(points, groups, group_of, left_out)

    def locate_query(self, query: str, layout: LayoutName = "pca") -> tuple[float, float] | None:
        """Return where a query is among the documents, or None if this layout has no place for it."""
        if not query.strip():
            raise QueryError("The query is empty", hint="Give words or a question.")
        tools = self._library.documents.fresh_tools()
        computed = self._library.maps.build(tools, layout)
        owner = next((tool for tool in tools if tool.built.embedder == computed.embedder), None)
        embedder = self._library.embedder_of(owner) if owner else None
        if embedder is None or not len(computed.layout.mean):
            return None
        return computed.layout.place(embed_and_check(embedder, [clean_query(query)], query=True)[0])

    def calendar(self, *, tool: Sequence[str] = (), where: Filter = NO_FILTER) -> tuple[dict[date, int], list[str]]:
        """Return how many documents each day has, and the names of the tools that were counted.

        Without a tool these are memos; all tools if none has memos.
        """
        names = list(tool) or self._memo_tools()
        return count_days(self._list(names, where), self._zone()), names

    def tags_by_year(
        self, *, tool: Sequence[str] = (), where: Filter = NO_FILTER, limit: int = 12
    ) -> tuple[list[int], list[TagYears]]:
        """Return the years, and how many documents of each have the most frequent tags."""
        return count_tags_by_year(self._list(list(tool), where), self._zone(), limit=limit)

    def select(self, documents: Mapping[str, Sequence[str]]) -> str:
        """Keep chosen documents, given by the names of their tools, and return the id that limits searches to them."""
        return store_selection(self._library.store, documents)

    def selection_size(self, selection: str) -> int:
        """Return how many documents a selection has."""
        return sum(map(len, load_selection(self._library.store, selection).values()))

    def _memo_tools(self) -> list[str]:
        kinds = sources.kinds_of_section("memos")
        return [tool.name for tool in self._library.tools() if tool.active and tool.kind in kinds]

    def _list(self, names: list[str], where: Filter) -> list[ListedDocument]:
        if not any(tool.active for tool in self._library.tools()):
            return []
        listing = self._library.documents.list_documents(ListRequest(tuple(names) or None, where=where, limit=_ALL))
        return [document for _, document in listing.documents]

    def _zone(self) -> tzinfo | None:
        return time_zone(self._library.settings.search.timezone)
