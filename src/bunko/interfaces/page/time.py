"""The page about time: memos on a calendar, and tags over the years; each day and year is a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.rendering import render, translate
from bunko.interfaces.page.view import PageView, error_values
from bunko.interfaces.sender import LANGUAGES, choose_language
from bunko.interfaces.text import single_line
from bunko.messages import Language
from bunko.sources import section_of
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.access import LibraryAccess
    from bunko.library.overview.views import Calendar, TagYears

CELL, STEP = 11, 13  # of a day and of the way to the next, in pixels
LEFT, TOP = 30, 18  # room for the names of weekdays and months
LEVELS = 4
_MONDAY, _SUNDAY = 0, 6

AREA_WIDTH, AREA_HEIGHT = 180, 48


@dataclass(frozen=True, slots=True)
class DayCell:
    """A day with documents."""

    day: date
    count: int
    level: int  # from 1 to LEVELS
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class YearGrid:
    """A year: a column for each week, a row for each day of the week."""

    year: int
    total: int
    days: list[DayCell]
    rows: list[tuple[int, int, int]]  # of each weekday: where its days begin and end, and its height
    months: list[tuple[int, int]]  # the number of each month and where it begins
    weekdays: list[tuple[int, int]]  # the numbers of some weekdays, from Monday on, and their heights
    width: int = LEFT + 54 * STEP
    height: int = TOP + 7 * STEP


def build_year(
    year: int, counts: Mapping[date, int], limits: Sequence[int], *, week_begins_on_sunday: bool
) -> YearGrid:
    """Return where the days of a year are; `limits` divide the counts into levels."""
    first_weekday = _SUNDAY if week_begins_on_sunday else _MONDAY

    def row_of(day: date) -> int:
        return (day.weekday() - first_weekday) % 7

    begin, end = date(year, 1, 1), date(year, 12, 31)
    before = row_of(begin)

    def column_of(day: date) -> int:
        return ((day - begin).days + before) // 7

    def x_of(day: date) -> int:
        return LEFT + STEP * column_of(day)

    days = [
        DayCell(day, count, 1 + sum(count > limit for limit in limits), x_of(day), TOP + STEP * row_of(day))
        for day, count in counts.items()
        if day.year == year
    ]
    rows = []
    for row in range(7):
        first = begin + timedelta((row - before) % 7)
        last = end - timedelta((row_of(end) - row) % 7)
        rows.append((x_of(first), x_of(last) + CELL, TOP + STEP * row + CELL // 2))
    months = [(month, x_of(date(year, month, 1) + timedelta(6))) for month in range(1, 13)]
    weekdays = [(weekday, TOP + STEP * ((weekday - first_weekday) % 7) + CELL - 2) for weekday in (0, 2, 4)]
    return YearGrid(year, sum(day.count for day in days), days, rows, months, weekdays)


def level_limits(counts: Sequence[int]) -> list[int]:
    """Return the counts above which a day has the next level: a quarter of the days has each, if they differ."""
    ordered = sorted(counts)
    if not ordered:
        return []
    quarters = [ordered[min(len(ordered) * part // LEVELS, len(ordered) - 1)] for part in range(1, LEVELS)]
    # Most days have one or two: then each further one counts.
    return [max(quarter, number) for number, quarter in enumerate(quarters, 1)]


@dataclass(frozen=True, slots=True)
class Area:
    """The counts of some years as an area, and the column of each year."""

    path: str
    line: str  # its upper edge
    columns: list[tuple[int, int, int]]  # where each begins, its width, and the count


def build_area(counts: Sequence[int], largest: int) -> Area:
    """Return the area of the counts of some years; `largest` is as high as the picture."""
    width = AREA_WIDTH / max(len(counts), 1)
    edges = [round(number * width) for number in range(len(counts) + 1)]
    columns = [(edges[number], edges[number + 1] - edges[number], count) for number, count in enumerate(counts)]
    heights = [round(AREA_HEIGHT - (AREA_HEIGHT - 4) * count / max(largest, 1)) for count in counts]
    if len(counts) == 1:
        line = f"M0 {heights[0]}H{AREA_WIDTH}"
        return Area(f"{line}V{AREA_HEIGHT}H0Z", line, columns)
    points = [f"{round((number + 0.5) * width)} {height}" for number, height in enumerate(heights)]
    first, last = round(width / 2), round(AREA_WIDTH - width / 2)
    line = f"M{'L'.join(points)}"
    return Area(f"{line}L{last} {AREA_HEIGHT}H{first}Z", line, columns)


_YEARS = 6  # of a page
_TAGS = 12


class TimePage(PageView):
    """Shows when documents were written."""

    async def answer(self, request: Request) -> Response:
        """Return the page with the calendars of some years and the most frequent tags."""
        return await self.run(request, lambda library: self._build(request, library))

    def _build(self, request: Request, library: LibraryAccess) -> Response:
        parameters, language = request.query_params, choose_language(request)
        tool, tag = parameters.get("tool", "").strip(), parameters.get("tag", "").strip()
        before = parameters.get("before", "")
        override = parameters.get("lang", "")
        values: dict[str, object] = {
            "tool": tool, "tag": tag, "error": None, "years": [], "tags": [], "tag_years": [], "total": 0, "undated": 0,
            "has_memos": any(each.active and section_of(each.kind) == "memos" for each in library.tools()),
            "tools": [(each.name, single_line(each.name)) for each in library.tools() if each.active],
            "language_override": override if override in LANGUAGES else "", "earlier": "", "later": "",
            "cell": CELL, "area": (AREA_WIDTH, AREA_HEIGHT), "counted": [],
        }  # fmt: skip
        status = 200
        try:
            where = Filter(tags=(normalise_tag(tag),) if tag else ())
            calendar = library.readable.overview.calendar(tool=[tool] if tool else [], where=where)
            values |= _calendar_values(calendar, language, tool, tag, int(before) if before.isdecimal() else None)
            values |= _tag_values(library, language, calendar.tools)
        except BunkoError as error:
            values["error"], status = error_values(request, error, library), error_status(error)
        return render(request, "time.html", values, status=status)


def _calendar_values(
    calendar: Calendar, language: Language, tool: str, tag: str, before: int | None
) -> dict[str, object]:
    counts, counted = calendar.days, calendar.tools
    all_years = sorted({day.year for day in counts}, reverse=True)
    years = [year for year in all_years if before is None or year < before][:_YEARS]
    limits = level_limits(list(counts.values()))
    filters = [*(("tool", name) for name in counted), *((("tag", tag),) if tag else ())]
    page_filters = [(name, value) for name, value in (("tool", tool), ("tag", tag)) if value]
    return {
        "years": [
            _year_values(build_year(year, counts, limits, week_begins_on_sunday=language == "ja"), language, filters)
            for year in years
        ],
        "total": sum(counts.values()),
        "undated": calendar.undated,
        "counted": [single_line(name) for name in counted],
        "earlier": _address("/time", [*page_filters, ("before", str(years[-1]))])
        if years and years[-1] > all_years[-1]
        else "",
        "later": _address("/time", page_filters) if years and years[0] < all_years[0] else "",
    }


def _year_values(grid: YearGrid, language: Language, filters: list[tuple[str, str]]) -> dict[str, object]:
    months, weekdays = _names(language, "months"), _names(language, "weekdays")
    return {
        "grid": grid,
        "months": [(months[month - 1], x) for month, x in grid.months],
        "weekdays": [(weekdays[weekday], y) for weekday, y in grid.weekdays],
        "address": _address("/", [*filters, *_range(str(grid.year))]),
        "days": [
            {
                "cell": cell,
                "address": _address("/", [*filters, *_range(cell.day.isoformat())]),
                "label": translate(
                    language,
                    "time.day",
                    year=cell.day.year,
                    month=_names(language, "months")[cell.day.month - 1],
                    day=cell.day.day,
                    weekday=_names(language, "weekdays")[cell.day.weekday()],
                    count=cell.count,
                ),
            }
            for cell in grid.days
        ],
    }


def _tag_values(library: LibraryAccess, language: Language, tools: Sequence[str]) -> dict[str, object]:
    """Return the tags of the documents of some tools."""
    years, tags = library.readable.overview.tags_by_year(tool=tools, limit=_TAGS)
    largest = max((count for tag in tags for count in tag.counts), default=0)
    filters = [("tool", name) for name in tools]

    def row(tag: TagYears) -> dict[str, object]:
        tag_filters = [*filters, ("tag", tag.tag)]
        return {
            "tag": single_line(tag.tag),
            "total": tag.total,
            "address": _address("/", tag_filters),
            "area": build_area(tag.counts, largest),
            "years": [
                {"year": year, "count": count, "address": _address("/", [*tag_filters, *_range(str(year))])}
                for year, count in zip(years, tag.counts, strict=True)
            ],
        }

    return {"tag_years": years, "tags": [row(tag) for tag in tags]}


def _names(language: Language, kind: str) -> list[str]:
    return translate(language, f"time.{kind}").split()


def _range(when: str) -> list[tuple[str, str]]:
    """Return the filter for a day or a year."""
    return [("since", when), ("until", when)]


def _address(path: str, parameters: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(parameters, quote_via=quote)}" if parameters else path
