"""Show the library as a whole: documents in two dimensions, by day, and tags over the years; select some of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name, Text
from bunko.library.map_groups import Color
from bunko.library.map_layout import LayoutName, available_layouts
from bunko.library.selections import MAX_DOCUMENTS
from bunko.records import Filter
from bunko.text.tags import normalise_tag

_DIGITS = 4  # of a position: a pixel of the widest screen is a few of the last
_MAX_TAGS = 100


class MapQuery(Shape):
    """Which map, and what its colours mean."""

    color: Color = Field("tool", description="What the groups are: tools, tags or years")
    layout: LayoutName = Field("pca", description="How documents are placed; umap needs bunko[umap] on the server")


class Group(TypedDict):
    """Documents of one colour."""

    name: str
    kind: Literal["value", "earlier", "other", "none"]
    count: int


class MapDocument(TypedDict):
    """A document and where it is."""

    tool: str
    path: str
    title: str
    date: str
    tags: list[str]
    x: float
    y: float
    group: int


class MapReply(TypedDict):
    """Documents in two dimensions: what is about the same is near."""

    generation: int
    layout: LayoutName
    layouts: list[LayoutName]
    color: Color
    groups: list[Group]
    documents: list[MapDocument]
    left_out: int


class PositionQuery(Shape):
    """Which query, on which map."""

    q: Text = Field(min_length=1, description="Words or a question")
    layout: LayoutName = Field("pca", description="How documents are placed")


class PositionReply(TypedDict):
    """Where a query is; null if the map has no place for it."""

    x: float | None
    y: float | None


class CalendarQuery(Shape):
    """Which documents are counted."""

    tool: list[Name] = Field([], max_length=100, description="Only these tools; without any, memos, else all tools")
    tag: list[Name] = Field([], max_length=100, description="Only with these tags; may be repeated")
    since: Name = Field("", description="Only from this date on: 2024-01-15, 2024-01, today, 2w")
    until: Name = Field("", description="Only up to this date")

    def filter(self) -> Filter:
        """Return what the library is asked for."""
        return Filter("", tuple(map(normalise_tag, self.tag)), self.since, self.until)


class Day(TypedDict):
    """How many documents a day has."""

    date: str
    count: int


class CalendarReply(TypedDict):
    """The days that have documents."""

    tools: list[str]  # that were counted; empty: all
    days: list[Day]
    total: int


class TagYearsQuery(CalendarQuery):
    """Which documents are counted, and how many tags are shown."""

    tool: list[Name] = Field([], max_length=100, description="Only these tools; may be repeated")
    limit: int = Field(12, ge=1, le=_MAX_TAGS, description="Number of tags, the most frequent ones")


class TagCounts(TypedDict):
    """How many documents of each year have a tag."""

    tag: str
    total: int
    counts: list[int]


class TagYearsReply(TypedDict):
    """Tags over the years."""

    years: list[int]
    tags: list[TagCounts]


class SelectionBody(Shape):
    """Documents, by the names of their tools."""

    documents: dict[Name, Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=MAX_DOCUMENTS)]]


class SelectionReply(TypedDict):
    """What limits a search to these documents: selection=ID."""

    id: str
    count: int


def show_map(call: Call, query: MapQuery) -> dict[str, Any]:
    """Show documents in two dimensions, those about the same subject near each other."""
    generation = call.library.generation()  # before the documents are read: a change in between is a newer one
    view = call.library.overview.map(color=query.color, layout=query.layout)
    return {
        "generation": generation,
        "layout": query.layout,
        "layouts": available_layouts(),
        "color": query.color,
        "groups": [{"name": group.name, "kind": group.kind, "count": group.count} for group in view.groups],
        "documents": [
            {
                "tool": point.tool.name,
                "path": point.document.uri,
                "title": point.document.title,
                "date": point.document.date,
                "tags": list(point.document.tags),
                "x": round(point.x, _DIGITS),
                "y": round(point.y, _DIGITS),
                "group": group,
            }
            for point, group in zip(view.points, view.group_of, strict=True)
        ],
        "left_out": view.left_out,
    }


def locate_query(call: Call, query: PositionQuery) -> dict[str, Any]:
    """Show where a query is on the map."""
    position = call.library.overview.locate_query(query.q, query.layout)
    x, y = position or (None, None)
    return {"x": x if x is None else round(x, _DIGITS), "y": y if y is None else round(y, _DIGITS)}


def show_calendar(call: Call, query: CalendarQuery) -> dict[str, Any]:
    """Count memos by day, or other documents."""
    days, tools = call.library.overview.calendar(tool=query.tool, where=query.filter())
    return {
        "tools": tools,
        "days": [{"date": day.isoformat(), "count": count} for day, count in days.items()],
        "total": sum(days.values()),
    }


def show_tag_years(call: Call, query: TagYearsQuery) -> dict[str, Any]:
    """Count how many documents of each year have the most frequent tags."""
    years, tags = call.library.overview.tags_by_year(tool=query.tool, where=query.filter(), limit=query.limit)
    return {"years": years, "tags": [{"tag": tag.tag, "total": tag.total, "counts": tag.counts} for tag in tags]}


def select_documents(call: Call, body: SelectionBody) -> dict[str, Any]:
    """Keep chosen documents under an id, which limits searches to them."""
    overview = call.library.overview
    selection = overview.select(body.documents)
    return {"id": selection, "count": overview.selection_size(selection)}


ENDPOINTS = [
    Endpoint("GET", "/map", show_map, MapReply, right="read", has_etag=True, is_long=True),
    Endpoint("GET", "/map/position", locate_query, PositionReply, right="read", is_long=True),
    Endpoint("GET", "/calendar", show_calendar, CalendarReply, right="read", has_etag=True),
    Endpoint("GET", "/tags/years", show_tag_years, TagYearsReply, right="read", has_etag=True),
    Endpoint("POST", "/selections", select_documents, SelectionReply, right="read", status=201, errors=(409,)),
]
