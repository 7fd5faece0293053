"""Write an HTML table as a Markdown table whose rows can stand alone."""

from __future__ import annotations

from collections.abc import Callable

from bunko.readers.html.tree import Node

_MAX_COLUMNS = 200  # columns
_MAX_CELLS = 300_000  # beyond it, colspan and rowspan are ignored
_LAYOUT_ROLES = ("presentation", "none")

_RowTexts = list[str]
_RowSpans = dict[int, tuple[int, str]]  # by column: how many more rows a cell spans, and its text


def is_layout(table: Node) -> bool:
    """Return whether a table is only for layout: it contains tables or headings, or is a single row or column."""
    if table.has_structure or table.attributes.get("role") in _LAYOUT_ROLES:
        return True
    rows = [[cell for cell in _row_cells(row) if cell.chars or cell.children] for row in _table_rows(table)]
    rows = [row for row in rows if row]
    if len(rows) < 2:
        return not any(cell.tag == "th" for row in rows for cell in row) or sum(map(len, rows)) < 2
    return all(len(row) == 1 for row in rows)


def markdown(table: Node, cell_text: Callable[[Node], str]) -> str:
    """Return the table with one header row; `cell_text` renders a cell on one line."""
    rows = _table_rows(table)
    header_rows = _header_row_count(table, rows)
    grid = _fill_spans([_row_cells(row) for row in rows], header_rows, cell_text)
    width = max((len(row) for row in grid), default=0)
    for row in grid:
        row += [""] * (width - len(row))
    body_rows = [row for row in grid[header_rows:] if any(row)]
    columns = [column for column in range(width) if any(row[column] for row in grid)]
    if not columns:
        return ""
    header = [" ".join(dict.fromkeys(row[column] for row in grid[:header_rows] if row[column])) for column in columns]
    lines = [
        _row_line(header),
        _row_line(["---"] * len(columns)),
        *(_row_line([row[column] for column in columns]) for row in body_rows),
    ]
    captions = [cell_text(child) for child in table.children if isinstance(child, Node) and child.tag == "caption"]
    return "\n\n".join([*(caption for caption in captions if caption), "\n".join(lines)])


def _row_line(cells: _RowTexts) -> str:
    return f"| {' | '.join(cells)} |"


def _table_rows(table: Node) -> list[Node]:
    """Return the rows as a browser shows them: head, bodies, foot."""
    rows_by_section: dict[str, list[Node]] = {"thead": [], "": [], "tfoot": []}
    for section in table.children:
        if not isinstance(section, Node) or section.is_boilerplate:
            continue
        if section.tag == "tr":
            rows_by_section[""].append(section)
        elif section.tag in ("thead", "tbody", "tfoot"):
            rows = [row for row in section.children if isinstance(row, Node) and row.tag == "tr"]
            rows_by_section[section.tag if section.tag in rows_by_section else ""] += rows
    return rows_by_section["thead"] + rows_by_section[""] + rows_by_section["tfoot"]


def _row_cells(row: Node) -> list[Node]:
    return [cell for cell in row.children if isinstance(cell, Node) and cell.tag in ("td", "th")]


def _header_row_count(table: Node, rows: list[Node]) -> int:
    """Return the number of header rows; 0 where only the first column has header cells."""
    for section in table.children:
        if isinstance(section, Node) and section.tag == "thead":
            count = sum(isinstance(row, Node) and row.tag == "tr" for row in section.children)
            if 0 < count < len(rows):
                return count
    count = 0
    for row in rows[:-1]:
        cells = _row_cells(row)
        if not cells or any(cell.tag != "th" for cell in cells):
            break
        count += 1
    if count:
        return count
    # The empty corner above a first column of header cells may be a td.
    first_cells = _row_cells(rows[0]) if rows else []
    if len(first_cells) > 1 and all(cell.tag == "th" or not cell.chars for cell in first_cells):
        return 1
    return 0 if any(cell.tag == "th" for row in rows for cell in _row_cells(row)) else 1


def _fill_spans(rows: list[list[Node]], header_rows: int, cell_text: Callable[[Node], str]) -> list[_RowTexts]:
    """Return the cell texts by row and column: a rowspan is repeated in each row, a colspan stays in its first column.

    In the header a colspan is repeated too, since every column needs a name.
    """
    widest = max((sum(_cell_span(cell, "colspan") for cell in cells) for cells in rows), default=0)
    use_spans = widest * len(rows) <= _MAX_CELLS
    grid: list[_RowTexts] = []
    open_spans: _RowSpans = {}
    for row_index, cells in enumerate(rows):
        row_texts: _RowTexts = []
        next_spans: _RowSpans = {}
        for cell in cells:
            _fill_from_above(row_texts, open_spans, next_spans)
            colspan, rowspan = (_cell_span(cell, "colspan"), _cell_span(cell, "rowspan")) if use_spans else (1, 1)
            # A header cell does not span into the body.
            rowspan = min(rowspan, (header_rows if row_index < header_rows else len(rows)) - row_index)
            text = cell_text(cell).replace("|", "\\|")
            for offset in range(min(colspan, _MAX_COLUMNS - len(row_texts))):
                column_text = text if offset == 0 or row_index < header_rows else ""
                if rowspan > 1:
                    next_spans[len(row_texts)] = (rowspan - 1, column_text)
                row_texts.append(column_text)
        while open_spans:
            _fill_from_above(row_texts, open_spans, next_spans)
            if open_spans:
                row_texts.append("")
        open_spans = next_spans
        grid.append(row_texts)
    return grid


def _fill_from_above(row_texts: _RowTexts, open_spans: _RowSpans, next_spans: _RowSpans) -> None:
    """Fill the next columns with the cells that span down from earlier rows."""
    while len(row_texts) in open_spans:
        rows_left, text = open_spans.pop(len(row_texts))
        if rows_left > 1:
            next_spans[len(row_texts)] = (rows_left - 1, text)
        row_texts.append(text)


def _cell_span(cell: Node, attribute: str) -> int:
    value = cell.attributes.get(attribute)
    if not value:
        return 1
    digits = value.strip()[:6]
    if not digits.isdecimal():
        return 1
    if attribute == "colspan":
        return min(max(int(digits), 1), _MAX_COLUMNS)
    return int(digits) or 1_000_000  # 0 means all following rows
