"""A table of a page comes in, a Markdown table whose every row can stand alone goes out."""

from __future__ import annotations

from collections.abc import Callable

from bunko.readers.html.tree import Node

_MAX_COLUMNS = 200  # columns
_MAX_CELLS = 300_000  # beyond it cells are taken to be one column wide and one row high
_LAYOUT_ROLES = ("presentation", "none")

_RowTexts = list[str]
_RowSpans = dict[int, tuple[int, str]]  # by column: for how many more rows a cell takes it, and its text


def is_layout(table: Node) -> bool:
    """Say whether a table only puts things beside each other: it nests tables or headings, or is one row or column."""
    if table.has_structure or table.attributes.get("role") in _LAYOUT_ROLES:
        return True
    rows = [[one for one in _row_cells(row) if one.chars or one.children] for row in _table_rows(table)]
    rows = [row for row in rows if row]
    if len(rows) < 2:
        return not any(cell.tag == "th" for row in rows for cell in row) or sum(map(len, rows)) < 2
    return all(len(row) == 1 for row in rows)


def markdown(table: Node, cell_text: Callable[[Node], str]) -> str:
    """Return the table with one header row; `text` makes a line of a cell."""
    rows = _table_rows(table)
    heads = _header_row_count(table, rows)
    filled = _fill_spans([_row_cells(row) for row in rows], heads, cell_text)
    width = max((len(row) for row in filled), default=0)
    for row in filled:
        row += [""] * (width - len(row))
    body = [row for row in filled[heads:] if any(row)]
    used = [at for at in range(width) if any(row[at] for row in filled)]
    if not used:
        return ""
    head = [" ".join(dict.fromkeys(row[at] for row in filled[:heads] if row[at])) for at in used]
    lines = [_row_line(head), _row_line(["---"] * len(used)), *(_row_line([row[at] for at in used]) for row in body)]
    captions = [cell_text(child) for child in table.children if isinstance(child, Node) and child.tag == "caption"]
    return "\n\n".join([*(caption for caption in captions if caption), "\n".join(lines)])


def _row_line(cells: _RowTexts) -> str:
    return f"| {' | '.join(cells)} |"


def _table_rows(table: Node) -> list[Node]:
    """Return the rows as a browser shows them: head, bodies, foot."""
    found: dict[str, list[Node]] = {"thead": [], "": [], "tfoot": []}
    for part in table.children:
        if not isinstance(part, Node) or part.is_boilerplate:
            continue
        if part.tag == "tr":
            found[""].append(part)
        elif part.tag in ("thead", "tbody", "tfoot"):
            rows = [row for row in part.children if isinstance(row, Node) and row.tag == "tr"]
            found[part.tag if part.tag in found else ""] += rows
    return found["thead"] + found[""] + found["tfoot"]


def _row_cells(row: Node) -> list[Node]:
    return [cell for cell in row.children if isinstance(cell, Node) and cell.tag in ("td", "th")]


def _header_row_count(table: Node, rows: list[Node]) -> int:
    """Return how many rows are the header; none where names stand in the first column only."""
    for part in table.children:
        if isinstance(part, Node) and part.tag == "thead":
            number = sum(isinstance(row, Node) and row.tag == "tr" for row in part.children)
            if 0 < number < len(rows):
                return number
    number = 0
    for row in rows[:-1]:
        cells = _row_cells(row)
        if not cells or any(cell.tag != "th" for cell in cells):
            break
        number += 1
    if number:
        return number
    # A corner that is an empty cell above names that stand in the first column.
    first = _row_cells(rows[0]) if rows else []
    if len(first) > 1 and all(cell.tag == "th" or not cell.chars for cell in first):
        return 1
    return 0 if any(cell.tag == "th" for row in rows for cell in _row_cells(row)) else 1


def _fill_spans(rows: list[list[Node]], header_rows: int, cell_text: Callable[[Node], str]) -> list[_RowTexts]:
    """Return the texts in their columns: one that spans rows is in each of them, one that spans columns in the first.

    In the header it is in each of its columns, for every column needs a name.
    """
    widest = max((sum(_cell_span(cell, "colspan") for cell in row) for row in rows), default=0)
    spans = widest * len(rows) <= _MAX_CELLS
    filled: list[_RowTexts] = []
    waiting: _RowSpans = {}
    for number, row in enumerate(rows):
        made: _RowTexts = []
        below: _RowSpans = {}
        for cell in row:
            _fill_from_above(made, waiting, below)
            wide, high = (_cell_span(cell, "colspan"), _cell_span(cell, "rowspan")) if spans else (1, 1)
            # A head does not reach into the rows below it.
            high = min(high, (header_rows if number < header_rows else len(rows)) - number)
            said = cell_text(cell).replace("|", "\\|")
            for at in range(min(wide, _MAX_COLUMNS - len(made))):
                own = said if at == 0 or number < header_rows else ""
                if high > 1:
                    below[len(made)] = (high - 1, own)
                made.append(own)
        while waiting:
            _fill_from_above(made, waiting, below)
            if waiting:
                made.append("")
        waiting = below
        filled.append(made)
    return filled


def _fill_from_above(row_texts: _RowTexts, open_spans: _RowSpans, next_spans: _RowSpans) -> None:
    """Fill the next columns with what cells of earlier rows hold there."""
    while len(row_texts) in open_spans:
        left, held = open_spans.pop(len(row_texts))
        if left > 1:
            next_spans[len(row_texts)] = (left - 1, held)
        row_texts.append(held)


def _cell_span(cell: Node, attribute: str) -> int:
    written = cell.attributes.get(attribute)
    if not written:
        return 1
    digits = written.strip()[:6]
    if not digits.isdecimal():
        return 1
    if attribute == "colspan":
        return min(max(int(digits), 1), _MAX_COLUMNS)
    return int(digits) or 1_000_000  # 0 means all rows that follow
