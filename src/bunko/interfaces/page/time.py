"""The page about time: memos on a calendar, and tags over the years; each day and year is a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from bunko.errors import BunkoError
from bunko.interfaces.api.problems import error_status
from bunko.interfaces.page.answering import PageView, error_values
from bunko.interfaces.page.language import translate
from bunko.interfaces.page.rendering import render
from bunko.interfaces.page.year_chart import (
    AREA_HEIGHT,
    AREA_WIDTH,
    CELL,
    YearGrid,
    build_area,
    build_year,
    level_limits,
)
from bunko.interfaces.sender import LANGUAGES, choose_language
from bunko.interfaces.text import single_line
from bunko.messages import Language
from bunko.sources import section_of
from bunko.text.tags import normalise_tag
from bunko.types.records import Filter

if TYPE_CHECKING:
    from datetime import date

    from starlette.requests import Request
    from starlette.responses import Response

    from bunko.library.maps.overview import TagYears
    from bunko.library.rights.access import LibraryAccess

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
        values: dict[str, Any] = {
            "tool": tool, "tag": tag, "error": None, "years": [], "tags": [], "tag_years": [], "total": 0,
            "has_memos": any(each.active and section_of(each.kind) == "memos" for each in library.tools()),
            "tools": [(each.name, single_line(each.name)) for each in library.tools() if each.active],
            "language_override": override if override in LANGUAGES else "", "earlier": "", "later": "",
            "cell": CELL, "area": (AREA_WIDTH, AREA_HEIGHT), "counted": [],
        }  # fmt: skip
        status = 200
        try:
            values |= _calendar_values(library, language, tool, tag, int(before) if before.isdecimal() else None)
            values |= _tag_values(library, language, tool)
        except BunkoError as error:
            values["error"], status = error_values(request, error, library), error_status(error)
        return render(request, "time.html", values, status=status)


def _calendar_values(
    library: LibraryAccess, language: Language, tool: str, tag: str, before: int | None
) -> dict[str, Any]:
    where = Filter(tags=(normalise_tag(tag),) if tag else ())
    counts, counted = library.readable.overview.calendar(tool=[tool] if tool else [], where=where)
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
        "counted": [single_line(name) for name in counted],
        "earlier": _address("/time", [*page_filters, ("before", str(years[-1]))])
        if years and years[-1] > all_years[-1]
        else "",
        "later": _address("/time", page_filters) if years and years[0] < all_years[0] else "",
    }


def _year_values(grid: YearGrid, language: Language, filters: list[tuple[str, str]]) -> dict[str, Any]:
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
                "label": _day_label(language, cell.day, cell.count),
            }
            for cell in grid.days
        ],
    }


def _tag_values(library: LibraryAccess, language: Language, tool: str) -> dict[str, Any]:
    years, tags = library.readable.overview.tags_by_year(tool=[tool] if tool else [], limit=_TAGS)
    largest = max((count for tag in tags for count in tag.counts), default=0)
    filters = [("tool", tool)] if tool else []

    def row(tag: TagYears) -> dict[str, Any]:
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


def _day_label(language: Language, day: date, count: int) -> str:
    return translate(
        language, "time.day", year=day.year, month=_names(language, "months")[day.month - 1], day=day.day,
        weekday=_names(language, "weekdays")[day.weekday()], count=count,
    )  # fmt: skip


def _names(language: Language, kind: str) -> list[str]:
    return translate(language, f"time.{kind}").split()


def _range(when: str) -> list[tuple[str, str]]:
    """Return the filter for a day or a year."""
    return [("since", when), ("until", when)]


def _address(path: str, parameters: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(parameters, quote_via=quote)}" if parameters else path
