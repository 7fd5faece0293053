"""A table of a page comes in, a Markdown table whose every row can stand alone goes out."""

from __future__ import annotations

from collections.abc import Callable

from bunko.readers.html.tree import Node

_WIDEST = 200  # columns
_MOST_CELLS = 300_000  # beyond it cells are taken to be one column wide and one row high
_LAYOUT = ("presentation", "none")

_Cells = list[str]
_Held = dict[int, tuple[int, str]]  # by column: for how many more rows a cell takes it, and its text


def is_layout(table: Node) -> bool:
    """Say whether a table only puts things beside each other: it nests tables or headings, or is one row or column."""
    if table.structured or table.attributes.get("role") in _LAYOUT:
        return True
    rows = [[one for one in _cells(row) if one.chars or one.children] for row in _rows(table)]
    rows = [row for row in rows if row]
    if len(rows) < 2:
        return not any(cell.tag == "th" for row in rows for cell in row) or sum(map(len, rows)) < 2
    return all(len(row) == 1 for row in rows)


def markdown(table: Node, text: Callable[[Node], str]) -> str:
    """Return the table with one header row; `text` makes a line of a cell."""
    rows = _rows(table)
    heads = _head_rows(table, rows)
    filled = _filled([_cells(row) for row in rows], heads, text)
    width = max((len(row) for row in filled), default=0)
    for row in filled:
        row += [""] * (width - len(row))
    body = [row for row in filled[heads:] if any(row)]
    used = [at for at in range(width) if any(row[at] for row in filled)]
    if not used:
        return ""
    head = [" ".join(dict.fromkeys(row[at] for row in filled[:heads] if row[at])) for at in used]
    lines = [_line(head), _line(["---"] * len(used)), *(_line([row[at] for at in used]) for row in body)]
    captions = [text(child) for child in table.children if isinstance(child, Node) and child.tag == "caption"]
    return "\n\n".join([*(caption for caption in captions if caption), "\n".join(lines)])


def _line(cells: _Cells) -> str:
    return f"| {' | '.join(cells)} |"


def _rows(table: Node) -> list[Node]:
    """Return the rows as a browser shows them: head, bodies, foot."""
    found: dict[str, list[Node]] = {"thead": [], "": [], "tfoot": []}
    for part in table.children:
        if not isinstance(part, Node) or part.boilerplate:
            continue
        if part.tag == "tr":
            found[""].append(part)
        elif part.tag in ("thead", "tbody", "tfoot"):
            rows = [row for row in part.children if isinstance(row, Node) and row.tag == "tr"]
            found[part.tag if part.tag in found else ""] += rows
    return found["thead"] + found[""] + found["tfoot"]


def _cells(row: Node) -> list[Node]:
    return [cell for cell in row.children if isinstance(cell, Node) and cell.tag in ("td", "th")]


def _head_rows(table: Node, rows: list[Node]) -> int:
    """Return how many rows are the header; none where names stand in the first column only."""
    for part in table.children:
        if isinstance(part, Node) and part.tag == "thead":
            number = sum(isinstance(row, Node) and row.tag == "tr" for row in part.children)
            if 0 < number < len(rows):
                return number
    number = 0
    for row in rows[:-1]:
        cells = _cells(row)
        if not cells or any(cell.tag != "th" for cell in cells):
            break
        number += 1
    if number:
        return number
    # A corner that is an empty cell above names that stand in the first column.
    first = _cells(rows[0]) if rows else []
    if len(first) > 1 and all(cell.tag == "th" or not cell.chars for cell in first):
        return 1
    return 0 if any(cell.tag == "th" for row in rows for cell in _cells(row)) else 1


def _filled(rows: list[list[Node]], heads: int, text: Callable[[Node], str]) -> list[_Cells]:
    """Return the texts in their columns: one that spans rows is in each of them, one that spans columns in the first.

    In the header it is in each of its columns, for every column needs a name.
    """
    widest = max((sum(_span(cell, "colspan") for cell in row) for row in rows), default=0)
    spans = widest * len(rows) <= _MOST_CELLS
    filled: list[_Cells] = []
    waiting: _Held = {}
    for number, row in enumerate(rows):
        made: _Cells = []
        below: _Held = {}
        for cell in row:
            _take(made, waiting, below)
            wide, high = (_span(cell, "colspan"), _span(cell, "rowspan")) if spans else (1, 1)
            # A head does not reach into the rows below it.
            high = min(high, (heads if number < heads else len(rows)) - number)
            said = text(cell).replace("|", "\\|")
            for at in range(min(wide, _WIDEST - len(made))):
                own = said if at == 0 or number < heads else ""
                if high > 1:
                    below[len(made)] = (high - 1, own)
                made.append(own)
        while waiting:
            _take(made, waiting, below)
            if waiting:
                made.append("")
        waiting = below
        filled.append(made)
    return filled


def _take(made: _Cells, waiting: _Held, below: _Held) -> None:
    """Fill the next columns with what cells of earlier rows hold there."""
    while len(made) in waiting:
        left, held = waiting.pop(len(made))
        if left > 1:
            below[len(made)] = (left - 1, held)
        made.append(held)


def _span(cell: Node, name: str) -> int:
    written = cell.attributes.get(name)
    if not written:
        return 1
    digits = written.strip()[:6]
    if not digits.isdecimal():
        return 1
    if name == "colspan":
        return min(max(int(digits), 1), _WIDEST)
    return int(digits) or 1_000_000  # 0 means all rows that follow
