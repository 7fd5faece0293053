"""Lay out what the page about time draws: a year of days in weeks, and counts of years as areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

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
