"""Read the data of a chart as a table: its categories and the values of each series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunko.readers.office.number_formats import format_number
from bunko.readers.office.package import child, local_name
from bunko.readers.office.tables import cell_text, markdown_table
from bunko.text.hidden_chars import remove_hidden_chars

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MAX_SERIES = 50
_MAX_POINTS = 1000


def chart_blocks(chart_space: Element) -> list[str]:
    """Return the title and the table of a chart."""
    chart = child(chart_space, "chart")
    if chart is None:
        return []
    title = child(chart, "title")
    words = [node.text or "" for node in title.iter() if local_name(node) in ("t", "v")] if title is not None else []
    text = " ".join("".join(words).split())
    series = [node for node in chart.iter() if local_name(node) == "ser"][:_MAX_SERIES]
    table = _table(series)
    return [block for block in (remove_hidden_chars(text), table) if block]


def _table(series: list[Element]) -> str:
    names = [cell_text(" ".join(_points(child(node, "tx")).values())) for node in series]
    categories: dict[int, str] = {}
    columns: list[dict[int, str]] = []
    for node in series:
        categories = categories or _points(_first_child(node, "cat", "xVal"))
        columns.append(_points(_first_child(node, "val", "yVal")))
    rows = sorted({*categories, *(index for column in columns for index in column)})
    if not rows:
        return ""
    grid = [["", *names]]
    grid += [[categories.get(row, ""), *(column.get(row, "") for column in columns)] for row in rows]
    return markdown_table([[cell_text(remove_hidden_chars(cell)) for cell in row] for row in grid])


def _first_child(element: Element, *names: str) -> Element | None:
    return next((inner for name in names if (inner := child(element, name)) is not None), None)


def _points(element: Element | None) -> dict[int, str]:
    """Return the stored values of a reference to cells, by their position."""
    points: dict[int, str] = {}
    for node in element.iter() if element is not None else ():
        if local_name(node) == "pt" and (value := child(node, "v")) is not None and len(points) < _MAX_POINTS:
            index = node.get("idx", "")
            position = int(index) if index.isdecimal() and len(index) < 7 else len(points)
            points[position] = format_number((value.text or "").strip(), "number", since_1904=False)
        elif local_name(node) == "v" and not points and element is not None and child(element, "v") is node:
            points[0] = (node.text or "").strip()
    return points
