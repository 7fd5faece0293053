"""Read workbooks as Markdown: each block of cells is a table under a heading that names its range."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bunko.errors import SourceError
from bunko.readers.html.blocks import escape_markdown
from bunko.readers.office.number_formats import NumberKind, format_number, read_number_kinds
from bunko.readers.office.package import (
    Archive,
    attribute,
    cell_text,
    child,
    children,
    document_text,
    iter_elements,
    local_name,
    main_part,
    markdown_table,
    parse_optional,
    parse_part,
    relationships,
)
from bunko.readers.office.pptx import attribute_id
from bunko.readers.places import WORKBOOK, cells_heading
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from bunko.types import Text

# Of all sheets together; a table of 50,000 rows and 10 columns is data for a database, not text to search.
MAX_CELLS = 500_000
_MAX_CHARS = 20_000_000
_MAX_STRINGS = 1_000_000
_MAX_COLUMNS = 200
_MAX_TABLE_CELLS = 2_000_000  # empty ones included; a larger table is mostly blank
_MAX_MERGED_CELLS = 100_000
_REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")

_Rows = dict[int, dict[int, str]]  # texts by row and column, counted from 1


@dataclass(slots=True)
class _Workbook:
    archive: Archive
    strings: Sequence[str]
    number_kinds: Sequence[NumberKind]
    since_1904: bool
    cells_left: int
    chars_left: int


@dataclass(slots=True)
class _Sheet:
    rows: _Rows = field(default_factory=dict)
    left_out: str = ""  # where reading stopped


def read(data: bytes) -> Text:
    """Return the text of a workbook; raise SourceError if it has none."""
    archive = Archive(data, "workbook")
    part = main_part(archive)
    targets = relationships(archive, part)
    root = parse_part(archive, part)
    parts = {relationship.kind: relationship.target for relationship in targets.values()}
    properties = child(root, "workbookPr")
    workbook = _Workbook(
        archive,
        list(_shared_strings(archive, parts.get("sharedStrings", ""))),
        read_number_kinds(parse_optional(archive, parts.get("styles", ""))),
        properties is not None and attribute(properties, "date1904") in ("1", "true"),
        MAX_CELLS,
        _MAX_CHARS,
    )
    blocks: list[str] = []
    for sheet in children(root, "sheets"):
        relationship = targets.get(attribute_id(sheet))
        if relationship is None or relationship.kind != "worksheet" or relationship.target not in archive:
            continue
        if sheet.get("state", "visible") == "visible":
            name = " ".join(remove_hidden_chars(sheet.get("name", "")).split()) or "Sheet"
            blocks += _sheet_blocks(name, _read_sheet(workbook, relationship.target))
    if not blocks:
        raise SourceError("The workbook has no text: its visible sheets are empty", hint="Exclude it.")
    return document_text(archive, "\n\n".join(blocks), WORKBOOK)


def _shared_strings(archive: Archive, name: str) -> Iterator[str]:
    """Yield the strings that cells refer to by number."""
    if name in archive:
        for number, element in enumerate(iter_elements(archive, name, "sst")):
            if number >= _MAX_STRINGS:
                return
            yield _rich_text(element)


def _rich_text(element: Element) -> str:
    """Return the text of a string; the readings that Japanese input methods leave behind are not part of it."""
    parts: list[str] = []
    for node in element:
        if local_name(node) == "t":
            parts.append(node.text or "")
        elif local_name(node) == "r" and (text := child(node, "t")) is not None:
            parts.append(text.text or "")
    return "".join(parts)


def _read_sheet(workbook: _Workbook, name: str) -> _Sheet:
    sheet = _Sheet()
    row_number = 0
    merges: list[tuple[re.Match[str], re.Match[str]]] = []
    for row in iter_elements(workbook.archive, name, "sheetData", "mergeCells"):
        if local_name(row) == "mergeCell":
            first, _, last = row.get("ref", "").partition(":")
            if (top := _REFERENCE.fullmatch(first)) and (bottom := _REFERENCE.fullmatch(last)):
                merges.append((top, bottom))
            continue
        stated = row.get("r", "")
        row_number = int(stated) if stated.isdecimal() and len(stated) < 8 else row_number + 1
        texts: dict[int, str] = {}
        column = 0
        for cell in row:
            reference = _REFERENCE.fullmatch(cell.get("r", ""))
            column = _column_number(reference[1]) if reference else column + 1
            if column > _MAX_COLUMNS:
                break
            if text := cell_text(remove_hidden_chars(_cell_value(workbook, cell))):
                texts[column] = text
        if not texts:
            continue
        workbook.cells_left -= len(texts)
        workbook.chars_left -= sum(map(len, texts.values()))
        if workbook.cells_left < 0 or workbook.chars_left < 0:
            sheet.left_out = f"(The rows from {row_number} on are not indexed: the workbook is too large.)"
            return sheet
        sheet.rows[row_number] = texts
    _fill_merged_cells(merges, sheet.rows)
    return sheet


def _cell_value(workbook: _Workbook, cell: Element) -> str:
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        inline = child(cell, "is")
        return "" if inline is None else _rich_text(inline)
    node = child(cell, "v")
    value = "" if node is None else node.text or ""
    if not value:
        formula = child(cell, "f")  # a program that does not calculate stores no value
        return f"={formula.text}" if formula is not None and formula.text else ""
    if kind == "s":
        index = int(value) if value.isdecimal() and len(value) < 9 else len(workbook.strings)
        return workbook.strings[index] if index < len(workbook.strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind != "n":
        return value
    style = cell.get("s", "")
    index = int(style) if style.isdecimal() and len(style) < 7 else 0
    number_kind = workbook.number_kinds[index] if index < len(workbook.number_kinds) else "number"
    return format_number(value, number_kind, since_1904=workbook.since_1904)


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _fill_merged_cells(merges: Iterable[tuple[re.Match[str], re.Match[str]]], rows: _Rows) -> None:
    """Repeat a cell that spans rows in each of them, so that every row stands alone."""
    filled = 0
    for top, bottom in merges:
        column = _column_number(top[1])
        text = rows.get(int(top[2]), {}).get(column, "")
        # Rows without any cell of their own stay empty.
        for row in range(int(top[2]) + 1, int(bottom[2]) + 1) if text else ():
            filled += 1
            if filled > _MAX_MERGED_CELLS:
                return
            if row in rows:
                rows[row].setdefault(column, text)


def _sheet_blocks(name: str, sheet: _Sheet) -> list[str]:
    """Return the blocks of a sheet: rows that follow each other are one table."""
    blocks: list[str] = []
    for rows in _row_runs(sheet.rows):
        first_row, last_row = rows[0], rows[-1]
        columns = {column for row in rows for column in sheet.rows[row]}
        first, last = min(columns), max(columns)
        blocks.append(cells_heading(name, (first_row, first), (last_row, last)))
        if first == last or len(rows) == 1 or len(rows) * (last - first) > _MAX_TABLE_CELLS:
            texts = (sorted(sheet.rows[row].items()) for row in rows)
            blocks.append(escape_markdown("\n".join(" ".join(text for _, text in row) for row in texts)))
        else:
            columns_range = range(first, last + 1)
            blocks.append(
                markdown_table([[sheet.rows[row].get(column, "") for column in columns_range] for row in rows])
            )
    if sheet.left_out:
        blocks.append(sheet.left_out)
    return blocks


def _row_runs(rows: _Rows) -> Iterator[list[int]]:
    run: list[int] = []
    for row in sorted(rows):
        if run and row != run[-1] + 1:
            yield run
            run = []
        run.append(row)
    if run:
        yield run
