"""Show a library as a whole: the map of its documents, its calendar, and its tags over the years."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, get_args

from bunko import sources
from bunko.embedders.embed import embed_and_check
from bunko.errors import QueryError
from bunko.library.overview.document_map import DocumentMaps
from bunko.library.reading.documents import Documents, ListRequest
from bunko.library.searching.selections import load_selection, store_selection
from bunko.library.tools import catalog
from bunko.library.tools.build_config import ToolConfig
from bunko.protocols import Store
from bunko.search.request import clean_query
from bunko.settings import Settings
from bunko.text.dates import local_date, time_zone
from bunko.text.readable import file_of
from bunko.types.records import NO_FILTER, Filter, ListedDocument

if TYPE_CHECKING:
    from datetime import tzinfo

    from bunko.library.overview.areas import Area
    from bunko.library.overview.document_map import MapPoint


Color = Literal["tool", "folder", "language", "tag", "kind", "year"]
COLORS: tuple[Color, ...] = get_args(Color)
# More colours look alike.
MAX_GROUPS = 8


@dataclass(frozen=True, slots=True)
class MapGroup:
    """Documents of one colour; `other` are those of smaller groups, `none` those without a tag or date."""

    name: str
    kind: Literal["value", "earlier", "other", "none"]
    count: int


def group_points(
    points: Sequence[MapPoint], color: Color, zone: tzinfo | None = None
) -> tuple[list[MapGroup], list[int]]:
    """Return the groups and the number of the group of each point: the largest first, or years in their order."""
    if color == "year":
        return _group_years([_year(point, zone) for point in points])
    return _group_values(_VALUES[color](points))


def choose_color(points: Sequence[MapPoint]) -> Color:
    """Return what tells documents apart at a glance: their tools, the folders of an only one, or else their years."""
    for color in ("tool", "folder"):
        if len({value for values in _VALUES[color](points) for value in values}) > 1:
            return color
    return "year"


def _folders(points: Sequence[MapPoint]) -> list[tuple[str, ...]]:
    """Return the folder of each document below those that all documents of its tool are in."""
    paths: defaultdict[str, list[list[str]]] = defaultdict(list)
    folders_of = [file_of(point.document.uri).rpartition("/")[0].split("/") for point in points]
    for point, folders in zip(points, folders_of, strict=True):
        paths[point.tool.name].append(folders)
    shared = {}
    for tool, of_tool in paths.items():
        first, last = min(of_tool), max(of_tool)  # what these two share, all between them do
        shared[tool] = sum(takewhile(bool, map(str.__eq__, first, last)))
    names = []
    for point, folders in zip(points, folders_of, strict=True):
        folder = "".join(folders[shared[point.tool.name] :][:1])
        names.append(tuple(filter(None, ["/".join(filter(None, [point.tool.name if len(paths) > 1 else "", folder]))])))
    return names


def _kind(point: MapPoint) -> str:
    """Return the ending of the name of a file, or else of the name of its media type."""
    match = _SUFFIX.search(file_of(point.document.uri))
    return match[0].lower() if match else point.document.media_type.rpartition("/")[2]


_SUFFIX = re.compile(r"(?<=[^/])\.[A-Za-z]\w{0,7}$")
_VALUES: dict[str, Callable[[Sequence[MapPoint]], Sequence[Sequence[str]]]] = {
    "tool": lambda points: [(point.tool.name,) for point in points],
    "folder": _folders,
    "language": lambda points: [(point.language,) if point.language else () for point in points],
    "tag": lambda points: [point.document.tags for point in points],
    "kind": lambda points: [(_kind(point),) for point in points],
}


def _group_values(values: Sequence[Sequence[str]]) -> tuple[list[MapGroup], list[int]]:
    """Group by the most frequent value of each point."""
    counts = Counter(value for those in values for value in set(those))
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    rank_of = {value: rank for rank, value in enumerate(ranked[:MAX_GROUPS])}
    keys = [min((rank_of.get(value, MAX_GROUPS) for value in those), default=MAX_GROUPS + 1) for those in values]
    sizes = Counter(keys)
    used_ranks = [rank for rank in range(MAX_GROUPS + 2) if sizes[rank]]
    groups = []
    for rank in used_ranks:
        if rank < MAX_GROUPS:
            groups.append(MapGroup(ranked[rank], "value", sizes[rank]))
        else:
            groups.append(MapGroup("", "other" if rank == MAX_GROUPS else "none", sizes[rank]))
    return groups, [used_ranks.index(key) for key in keys]


def _group_years(years: Sequence[str]) -> tuple[list[MapGroup], list[int]]:
    all_years = sorted(set(years) - {""})
    first_shown = all_years[-MAX_GROUPS:][0] if all_years else ""
    keys = [year if year >= first_shown or not year else "0" for year in years]
    sizes = Counter(keys)
    sorted_keys = sorted(set(keys) - {""}) + ([""] if "" in sizes else [])
    groups = []
    for key in sorted_keys:
        if key == "0":
            groups.append(MapGroup(first_shown, "earlier", sizes[key]))
        else:
            groups.append(MapGroup(key, "value" if key else "none", sizes[key]))
    return groups, [sorted_keys.index(key) for key in keys]


def _year(point: MapPoint, zone: tzinfo | None) -> str:
    year = local_date(point.document.date, zone)[:4]
    return year if len(year) == 4 and year.isascii() and year.isdigit() else ""


@dataclass(frozen=True, slots=True)
class TagYears:
    """How many documents of each year have a tag."""

    tag: str
    total: int
    counts: list[int]  # of each year


@dataclass(frozen=True, slots=True)
class Calendar:
    """How many documents each day has, in the order of the days."""

    days: dict[date, int]
    undated: int  # documents that do not say which day they are from
    tools: list[str]  # that were counted; empty: all


def count_tags_by_year(
    documents: Iterable[ListedDocument], zone: tzinfo | None, *, limit: int
) -> tuple[list[int], list[TagYears]]:
    """Return all years from the first to the last with a tag, and the counts of the tags with the most documents."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for document in documents:
        if day := document_day(document, zone):
            for tag in set(document.tags):
                counts[tag][day.year] += 1
    ranked = sorted(counts, key=lambda tag: (-counts[tag].total(), tag))[:limit]
    tagged_years = {year for tag in ranked for year in counts[tag]}
    years = list(range(min(tagged_years), max(tagged_years) + 1)) if tagged_years else []
    return years, [TagYears(tag, counts[tag].total(), [counts[tag][year] for year in years]) for tag in ranked]


def document_day(document: ListedDocument, zone: tzinfo | None) -> date | None:
    """Return the day that a document says in a time zone; None if it says none.

    The time of a file is no day of its document: a copy or a clone gives all its files that of the moment.
    """
    if document.is_dated_by_file:
        return None
    try:
        return date.fromisoformat(local_date(document.date, zone)[:10])
    except ValueError:
        return None


_ALL = 10**9  # documents of a list


@dataclass(frozen=True, slots=True)
class MapView:
    """The documents of a map with their colours."""

    points: list[MapPoint]
    areas: list[Area]
    color: Color
    groups: list[MapGroup]
    group_of: list[int]  # the number of the group of each point
    left_out: int  # documents without vectors, or with those of another embedder


class Overview:
    """What somebody may see of a library as a whole."""

    def __init__(
        self, settings: Settings, store: Store, tool_config: ToolConfig, documents: Documents, maps: DocumentMaps
    ) -> None:
        self._settings, self._store, self._tool_config = settings, store, tool_config
        self._documents, self._maps = documents, maps

    def map(self, color: Color | None = None) -> MapView:
        """Return the documents in two dimensions, after importing changes; it depends on no document but these."""
        points, areas, left_out = self._maps.points(self._documents.fresh_tools())
        color = color or choose_color(points)
        groups, group_of = group_points(points, color, self._zone())
        return MapView(points, areas, color, groups, group_of, left_out)

    def areas(self) -> tuple[list[Area], list[MapPoint]]:
        """Return the areas of the map that a person sees at once, and the documents with the number of their area."""
        points, areas, _ = self._maps.points(self._documents.fresh_tools())
        return [area for area in areas if area.level == 0], points

    def locate_query(self, query: str) -> tuple[float, float] | None:
        """Return where a query is among the documents, or None if it has no place there."""
        if not query.strip():
            raise QueryError("The query is empty", hint="Give words or a question.")
        tools = self._documents.fresh_tools()
        computed = self._maps.build(tools)
        owner = next((tool for tool in tools if tool.built.embedder == computed.embedder), None)
        embedder = self._tool_config.embedder_of(owner) if owner else None
        if embedder is None:
            return None
        return computed.layout.place(embed_and_check(embedder, [clean_query(query)], query=True)[0])

    def calendar(self, *, tool: Sequence[str] = (), where: Filter = NO_FILTER) -> Calendar:
        """Return how many documents of the named tools each day has; without a name of memos, else of all tools."""
        names, zone = list(tool) or self._memo_tools(), self._zone()
        days = Counter(document_day(document, zone) for document in self._list(names, where))
        undated = days.pop(None, 0)
        return Calendar({day: days[day] for day in sorted(filter(None, days))}, undated, names)

    def tags_by_year(
        self, *, tool: Sequence[str] = (), where: Filter = NO_FILTER, limit: int = 12
    ) -> tuple[list[int], list[TagYears]]:
        """Return the years, and how many documents of each have the most frequent tags."""
        return count_tags_by_year(self._list(list(tool), where), self._zone(), limit=limit)

    def select(self, documents: Mapping[str, Sequence[str]]) -> str:
        """Keep chosen documents, given by the names of their tools, and return the id that limits searches to them."""
        return store_selection(self._store, documents)

    def selection_size(self, selection: str) -> int:
        """Return how many documents a selection has."""
        return sum(map(len, load_selection(self._store, selection).values()))

    def _memo_tools(self) -> list[str]:
        kinds = sources.kinds_of_section("memos")
        return [tool.name for tool in catalog.tools(self._store) if tool.active and tool.kind in kinds]

    def _list(self, names: list[str], where: Filter) -> list[ListedDocument]:
        if not any(tool.active for tool in catalog.tools(self._store)):
            return []
        listing = self._documents.list_documents(ListRequest(tuple(names) or None, where=where, limit=_ALL))
        return [document for _, document in listing.documents]

    def _zone(self) -> tzinfo | None:
        return time_zone(self._settings.search.timezone)
