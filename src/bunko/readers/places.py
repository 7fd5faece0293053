"""Write and find the headings that say where a part of a text stands in its file: a page, a slide, cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bunko.readers.outline import Heading, scan_outline

PDF = "application/pdf"
PRESENTATION = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NOTEBOOK = "application/x-ipynb+json"

_PAGE = re.compile(r"## Page (\d{1,6})(?:: .*)?")
_SLIDE = re.compile(r"## Slide (\d{1,6})(?:: .*)?")
_CELLS = re.compile(r"## (.+)!([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_CELL_RANGE = re.compile(r"(?m)![A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7}$")
_NOTEBOOK_CELL = re.compile(r"### Cell (\d{1,6})")
_HEADINGS = {PDF: _PAGE, PRESENTATION: _SLIDE, WORKBOOK: _CELLS, NOTEBOOK: _NOTEBOOK_CELL}
_NUMBER_NAMES = {PDF: "p", PRESENTATION: "slide", NOTEBOOK: "cell"}
_NOTEBOOK_CELL_LEVEL = 3
_TABLE_RULE = re.compile(r"\|(?: --- \|)+")

# How a place is named in a citation: p12, slide3-slide5, cell7, Sheet1!B5 or Sheet1!A1:F20.
PLACE_PATTERN = (
    r"(?:p\.?|slide|cell) ?\d{1,6}(?:-(?:p\.?|slide|cell)? ?\d{1,6})?"
    r"|[^:]+![A-Z]{1,3}\d{1,7}(?::[A-Z]{1,3}\d{1,7})?"
)
_NUMBERED_PLACE = re.compile(r"(?i)(p|slide|cell)\.? ?(\d{1,6})(?:-(?:\1\.?)? ?(\d{1,6}))?")
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


def without_cells(text: str) -> str:
    """Return a heading, or a text with headings, without the ranges of cells: with the names of the sheets."""
    return _CELL_RANGE.sub("", text)


def column_name(column: int) -> str:
    """Return the letters of a column, counted from 1: 28 is AB."""
    letters = ""
    while column > 0:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def place_of(text: str, media_type: str, first: int, last: int = 0) -> str:
    """Return the place of lines, counted from 1, as a citation names it; "" if they have none.

    It is p12, slide3 or Sheet1!A5, and p12-p13 or Sheet1!A5:F20 if the lines have several pages or rows.
    """
    last = max(first, last)
    sections = [part for part in _sections(text, media_type) if part.first <= last and first <= part.last]
    if not sections:
        return ""
    if media_type != WORKBOOK:
        name = _NUMBER_NAMES[media_type]
        start, end = (f"{name}{sections[index].heading[1]}" for index in (0, -1))
        return start if start == end else f"{start}-{end}"
    lines = text.split("\n")
    sheet = sections[0].heading[1]
    sections = [part for part in sections if part.heading[1] == sheet]
    first_row, last_row = _row_of(lines, sections[0], first), _row_of(lines, sections[-1], last)
    columns = [part.heading[2] for part in sections]
    start = f"{min(columns, key=_column_key)}{first_row}"
    if first_row == last_row:
        return f"{sheet}!{start}"
    return f"{sheet}!{start}:{max((part.heading[4] for part in sections), key=_column_key)}{last_row}"


def find_place(text: str, media_type: str, place: str, *, whole_section: bool = False) -> tuple[int, int] | None:
    """Return the first and last line of a place, counted from 1; None if the text has no such place.

    Cells of a sheet are the lines of their rows, or with `whole_section` the whole ranges that contain them.
    """
    if media_type == WORKBOOK:
        return _find_cells(text, place, whole_section=whole_section)
    numbered = _NUMBERED_PLACE.fullmatch(place.strip())
    if numbered is None or numbered[1].lower() != _NUMBER_NAMES.get(media_type):
        return None
    first, last = int(numbered[2]), int(numbered[3] or numbered[2])
    sections = [part for part in _sections(text, media_type) if first <= int(part.heading[1]) <= last]
    return (sections[0].first, sections[-1].last) if sections else None


def _find_cells(text: str, place: str, *, whole_section: bool) -> tuple[int, int] | None:
    cells = _CELL_PLACE.fullmatch(place.strip())
    if cells is None:
        return None
    sheet = cells[1]
    quoted_sheet = sheet[1:-1].replace("''", "'") if sheet[0] == sheet[-1] == "'" else sheet
    first_row, last_row = int(cells[3]), int(cells[4] or cells[3])
    sections = [
        part
        for part in _sections(text, WORKBOOK)
        if part.heading[1] in (sheet, quoted_sheet)
        and int(part.heading[3]) <= last_row
        and first_row <= int(part.heading[5])
    ]
    if not sections:
        return None
    if whole_section:
        return sections[0].first, sections[-1].last
    lines = text.split("\n")
    return _line_of(lines, sections[0], first_row), _line_of(lines, sections[-1], last_row)


def _row_of(lines: list[str], section: _Section, line: int) -> int:
    """Return the row of the sheet that stands on a line of a range, or the one nearest to it."""
    section_lines = lines[section.first - 1 : section.last]
    index = max(0, line - section.first - _rows_offset(section_lines))
    index = max(0, index - 1) if _is_table(section_lines) else index
    return min(int(section.heading[3]) + index, int(section.heading[5]))


def _line_of(lines: list[str], section: _Section, row: int) -> int:
    """Return the line of a row of a range, or of the nearest one."""
    section_lines = lines[section.first - 1 : section.last]
    first_row, last_row = int(section.heading[3]), int(section.heading[5])
    index = min(max(row, first_row), last_row) - first_row
    return section.first + _rows_offset(section_lines) + (index + 1 if index and _is_table(section_lines) else index)


def _column_key(name: str) -> tuple[int, str]:
    return len(name), name


def _sections(text: str, media_type: str) -> Iterator[_Section]:
    pattern = _HEADINGS.get(media_type)
    if pattern is None:
        return
    lines = text.split("\n")
    headings = list(_notebook_headings(text) if media_type == NOTEBOOK else _headings(lines, pattern))
    ends = [number - 1 for number, _ in headings[1:]] + [len(lines)]
    for (first, heading), last in zip(headings, ends, strict=True):
        while last > first and not lines[last - 1].strip():
            last -= 1
        yield _Section(heading, first, last)


def _headings(lines: list[str], pattern: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines, 1):
        if line.startswith("## ") and (heading := pattern.fullmatch(line)):
            yield number, heading


def _notebook_headings(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the start of each cell: its number, or the headings of its text right above it."""
    begin: int | None = None
    end = line = position = 0
    for mark in scan_outline(text):
        if not isinstance(mark, Heading):
            continue
        if begin is None or text[end : mark.start].strip():
            begin = mark.start
        end = mark.end
        if mark.level >= _NOTEBOOK_CELL_LEVEL:
            if cell := _NOTEBOOK_CELL.fullmatch(mark.source):
                line, position = line + text.count("\n", position, begin), begin
                yield line + 1, cell
            begin = None


def _rows_offset(lines: list[str]) -> int:
    """Return how many lines after its heading the first row of a range stands."""
    return 2 if len(lines) > 1 and not lines[1].strip() else 1


def is_table_rule(line: str) -> bool:
    """Return whether a line of a table is no row of the sheet, but stands below the first one."""
    return _TABLE_RULE.fullmatch(line) is not None


def _is_table(lines: list[str]) -> bool:
    """Return whether a range is a table, whose second line is no row of the sheet."""
    return len(lines) > 3 and is_table_rule(lines[3])
