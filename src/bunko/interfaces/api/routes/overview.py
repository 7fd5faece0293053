"""Show the library as a whole: documents in two dimensions, by day, and tags over the years; select some of them."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Literal

from pydantic import Field

from bunko.interfaces.api.endpoint import Call, Endpoint, Shape
from bunko.interfaces.api.routes.search import Name, Text
from bunko.interfaces.fields import Fields, of
from bunko.library.overview.views import Color
from bunko.library.searching.selections import MAX_DOCUMENTS
from bunko.text.readable import readable_title
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

_DIGITS = 4  # of a position: a pixel of the widest screen is a few of the last
_MAX_TAGS = 100


def _round(position: float) -> float:
    return round(position, _DIGITS)


class MapQuery(Shape):
    """What the colours of the map mean."""

    color: Color | None = Field(
        None, description="What the groups are; without it, tools, or the folders of an only one, or else years"
    )


class Group(Fields):
    """Documents of one colour."""

    name: str
    kind: Literal["value", "earlier", "other", "none"]
    count: int


class MapArea(Fields):
    """Documents that lie close together; a name for each language that enough of them are in."""

    level: int
    names: dict[str, str]
    x: float = of("x", _round)
    y: float = of("y", _round)
    box: list[float] = of(lambda area: [_round(value) for value in area.box])
    count: int


class MapDocument(Fields):
    """A document and where it is."""

    tool: str = of("tool.name")
    path: str = of("document.uri")
    title: str
    date: str = of("document.date")
    tags: list[str] = of("document.tags")
    x: float = of("x", _round)
    y: float = of("y", _round)
    group: int
    area: int


class MapReply(Fields):
    """Documents in two dimensions: what is about the same is near."""

    generation: int
    color: Color
    groups: list[Group]
    areas: list[MapArea]
    documents: list[MapDocument]
    left_out: int


class PositionQuery(Shape):
    """Which query."""

    q: Text = Field(min_length=1, description="Words or a question")


class PositionReply(Fields):
    """Where a query is; null if the map has no place for it."""

    x: float | None = of(itemgetter(0), _round)
    y: float | None = of(itemgetter(1), _round)


class CalendarQuery(Shape):
    """Which documents are counted."""

    tool: list[Name] = Field([], max_length=100, description="Only these tools; without any, memos, else all tools")
    tag: list[Name] = Field([], max_length=100, description="Only with these tags; may be repeated")
    since: Name = Field("", description="Only from this date on: 2024-01-15, 2024-01, today, 2w")
    until: Name = Field("", description="Only up to this date")

    def filter(self) -> Filter:
        """Return what the library is asked for."""
        return Filter("", tuple(map(normalise_tag, self.tag)), self.since, self.until)


class Day(Fields):
    """How many documents a day has."""

    date: str = of(lambda day: day[0].isoformat())
    count: int = of(itemgetter(1))


class CalendarReply(Fields):
    """The days that have documents."""

    tools: list[str]  # that were counted; empty: all
    days: list[Day]
    total: int
    undated: int  # documents that do not say which day they are from


class TagYearsQuery(CalendarQuery):
    """Which documents are counted, and how many tags are shown."""

    tool: list[Name] = Field([], max_length=100, description="Only these tools; may be repeated")
    limit: int = Field(12, ge=1, le=_MAX_TAGS, description="Number of tags, the most frequent ones")


class TagCounts(Fields):
    """How many documents of each year have a tag."""

    tag: str
    total: int
    counts: list[int]


class TagYearsReply(Fields):
    """Tags over the years."""

    years: list[int]
    tags: list[TagCounts]


class SelectionBody(Shape):
    """Documents, by the names of their tools."""

    documents: dict[Name, Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=MAX_DOCUMENTS)]]


class SelectionReply(Fields):
    """What limits a search to these documents: selection=ID."""

    id: str
    count: int


def show_map(call: Call, query: MapQuery) -> dict[str, object]:
    """Show documents in two dimensions, those about the same subject near each other."""
    generation = call.library.generation()  # before the documents are read: a change in between is a newer one
    view = call.library.readable.overview.map(query.color)
    return {
        "generation": generation,
        "color": view.color,
        "groups": [Group.fill(group) for group in view.groups],
        "areas": [MapArea.fill(area) for area in view.areas],
        "documents": [
            MapDocument.fill(point, title=readable_title(point.document.title, point.document.uri), group=group)
            for point, group in zip(view.points, view.group_of, strict=True)
        ],
        "left_out": view.left_out,
    }


def locate_query(call: Call, query: PositionQuery) -> dict[str, object]:
    """Show where a query is on the map."""
    position = call.library.readable.overview.locate_query(query.q)
    return PositionReply.fill(position or (None, None))


def show_calendar(call: Call, query: CalendarQuery) -> dict[str, object]:
    """Count memos by day, or other documents."""
    calendar = call.library.readable.overview.calendar(tool=query.tool, where=query.filter())
    return {
        "tools": calendar.tools,
        "days": [Day.fill(day) for day in calendar.days.items()],
        "total": sum(calendar.days.values()),
        "undated": calendar.undated,
    }


def show_tag_years(call: Call, query: TagYearsQuery) -> dict[str, object]:
    """Count how many documents of each year have the most frequent tags."""
    years, tags = call.library.readable.overview.tags_by_year(tool=query.tool, where=query.filter(), limit=query.limit)
    return {"years": years, "tags": [TagCounts.fill(tag) for tag in tags]}


def select_documents(call: Call, body: SelectionBody) -> dict[str, object]:
    """Keep chosen documents under an id, which limits searches to them."""
    overview = call.library.readable.overview
    selection = overview.select(body.documents)
    return {"id": selection, "count": overview.selection_size(selection)}


ENDPOINTS = [
    Endpoint("GET", "/map", show_map, MapReply, right="read", has_etag=True, is_long=True),
    Endpoint("GET", "/map/position", locate_query, PositionReply, right="read", is_long=True),
    Endpoint("GET", "/calendar", show_calendar, CalendarReply, right="read", has_etag=True),
    Endpoint("GET", "/tags/years", show_tag_years, TagYearsReply, right="read", has_etag=True),
    Endpoint("POST", "/selections", select_documents, SelectionReply, right="read", status=201, errors=(409,)),
]
