"""Write and find the headings that say where a part of a text stands in its file: a page, a slide, cells of a sheet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

PDF = "application/pdf"
PRESENTATION = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_PAGE = re.compile(r"## Page (\d{1,6})(?:: .*)?")
_SLIDE = re.compile(r"## Slide (\d{1,6})(?:: .*)?")
_CELLS = re.compile(r"## (.+)!([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_HEADINGS = {PDF: _PAGE, PRESENTATION: _SLIDE, WORKBOOK: _CELLS}
_TABLE_RULE = re.compile(r"\|(?: --- \|)+")

# How a place is named in a citation: p12, slide3, Sheet1!B5 or Sheet1!A1:F20.
PLACE_PATTERN = r"p\.? ?\d{1,6}|slide ?\d{1,6}|[^:]+![A-Z]{1,3}\d{1,7}(?::[A-Z]{1,3}\d{1,7})?"
_NUMBERED_PLACE = re.compile(r"(?i)(p\.?|slide) ?(\d{1,6})")
_CELL_PLACE = re.compile(r"(.+)!([A-Z]{1,3})(\d{1,7})(?::[A-Z]{1,3}(\d{1,7}))?")


class _Section(NamedTuple):
    heading: re.Match[str]
    first: int  # line of the heading, counted from 1
    last: int  # line before the next heading


def page_heading(number: int, section: str = "") -> str:
    """Return the heading of a page; `section` is the heading that continues from an earlier page."""
    return f"## Page {number}: {section}" if section else f"## Page {number}"


def slide_heading(number: int, title: str = "") -> str:
    """Return the heading of a slide."""
    return f"## Slide {number}: {title}" if title else f"## Slide {number}"


def cells_heading(sheet: str, first: tuple[int, int], last: tuple[int, int]) -> str:
    """Return the heading of a range of cells, given by row and column, both counted from 1."""
    return f"## {sheet}!{column_name(first[1])}{first[0]}:{column_name(last[1])}{last[0]}"


def column_name(column: int) -> str:
    """Return the letters of a column, counted from 1: 28 is AB."""
    letters = ""
    while column > 0:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def place_of(text: str, media_type: str, line: int) -> str:
    """Return the place of a line, counted from 1, as a citation names it: p12, slide3, Sheet1!A5; "" if it has none."""
    section = next((part for part in _sections(text, media_type) if part.first <= line <= part.last), None)
    if section is None:
        return ""
    heading = section.heading
    if media_type != WORKBOOK:
        return f"{'p' if media_type == PDF else 'slide'}{heading[1]}"
    lines = text.split("\n")[section.first - 1 : section.last]
    row = max(0, line - section.first - _rows_offset(lines))
    row = max(0, row - 1) if _is_table(lines) else row
    return f"{heading[1]}!{heading[2]}{min(int(heading[3]) + row, int(heading[5]))}"


def find_place(text: str, media_type: str, place: str, *, whole_section: bool = False) -> tuple[int, int] | None:
    """Return the first and last line of a place, counted from 1; None if the text has no such place.

    Cells are the lines of their rows, or with `whole_section` the whole range that contains them.
    """
    if media_type == WORKBOOK:
        return _find_cells(text, place, whole_section=whole_section)
    numbered = _NUMBERED_PLACE.fullmatch(place.strip())
    if numbered is None or (numbered[1].lower() == "slide") != (media_type == PRESENTATION):
        return None
    number = int(numbered[2])
    return next(
        ((part.first, part.last) for part in _sections(text, media_type) if int(part.heading[1]) == number), None
    )


def _find_cells(text: str, place: str, *, whole_section: bool) -> tuple[int, int] | None:
    cells = _CELL_PLACE.fullmatch(place.strip())
    if cells is None:
        return None
    first_row, last_row = int(cells[3]), int(cells[4] or cells[3])
    for section in _sections(text, WORKBOOK):
        heading = section.heading
        if heading[1] != cells[1] or not int(heading[3]) <= first_row <= int(heading[5]):
            continue
        if whole_section:
            return section.first, section.last
        lines = text.split("\n")[section.first - 1 : section.last]
        first, last = (
            section.first + _rows_offset(lines) + (row + 1 if row and _is_table(lines) else row)
            for row in (first_row - int(heading[3]), min(last_row, int(heading[5])) - int(heading[3]))
        )
        return first, last
    return None


def _sections(text: str, media_type: str) -> Iterator[_Section]:
    pattern = _HEADINGS.get(media_type)
    if pattern is None:
        return
    lines = text.split("\n")
    headings = [
        (number, heading)
        for number, line in enumerate(lines, 1)
        if line.startswith("## ") and (heading := pattern.fullmatch(line))
    ]
    ends = [number - 1 for number, _ in headings[1:]] + [len(lines)]
    for (first, heading), last in zip(headings, ends, strict=True):
        while last > first and not lines[last - 1].strip():
            last -= 1
        yield _Section(heading, first, last)


def _rows_offset(lines: list[str]) -> int:
    """Return how many lines after its heading the first row of a range stands."""
    return 2 if len(lines) > 1 and not lines[1].strip() else 1


def _is_table(lines: list[str]) -> bool:
    """Return whether a range is a table, whose second line is no row of the sheet."""
    return len(lines) > 3 and _TABLE_RULE.fullmatch(lines[3]) is not None
