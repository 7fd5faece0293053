"""Group the documents of a map by tool, tag or year, in few enough groups to tell their colours apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bunko.text.dates import local_date

if TYPE_CHECKING:
    from datetime import tzinfo

    from bunko.library.maps.document_map import MapPoint

Color = Literal["tool", "tag", "year"]
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
    values = [point.document.tags for point in points] if color == "tag" else [(point.tool.name,) for point in points]
    return _group_values(values)


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
