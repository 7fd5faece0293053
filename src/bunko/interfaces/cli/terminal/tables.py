"""Show tables and messages that fit a terminal, where wide characters take two cells, and break texts into its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bunko.interfaces.cli.help_formatter import wrap_cells
from bunko.interfaces.cli.terminal.columns import Column
from bunko.interfaces.cli.terminal.printing import replace_controls
from bunko.messages import language, translate
from bunko.text.language import JAPANESE_CHARS
from bunko.text.snippets import TermMatch

# Characters of two cells: a row may end after each of them, as Japanese is written without spaces.
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd"
)
# No row begins with one of the first or ends with one of the second.
_CLOSING = (
    "、。，．・：；？！ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ）〕］｝〉》」』】’”…‥"
    + "\u3099\u309a\ufe0e\ufe0f\u200d"
)
_OPENING = "（〔［｛〈《「『【‘“"
_PART = re.compile(rf"\s+|[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}]+)[{_CLOSING}]*|.")
_LINE = re.compile(r"[^\n]*\S[^\n]*")
# The end of a line that was broken at a margin, within a sentence.
_MARGIN_CELLS = 60
_WRAPPED_LINE = re.compile(
    rf"(?m)^(?![ \t|#>])[^\n]*?(?:(?P<latin>[\w,])\n(?=[a-z])|[{JAPANESE_CHARS}]\n(?=[{JAPANESE_CHARS}]))"
)
# A further match of a word adds little to a row that has it.
_REPEAT_WEIGHT = 0.1


class Row(NamedTuple):
    """The range of a text that one row shows."""

    start: int
    end: int


def cell_width(text: str) -> int:
    """Return how many cells rich draws a text in."""
    return Text(text).cell_len


def join_paragraphs(text: str) -> str:
    """Return a text without the line ends of sentences that were broken at a margin; the terminal has another one."""
    if "```" in text or "~~~" in text:
        return text
    return _WRAPPED_LINE.sub(_join_line, text)


def _join_line(match: re.Match[str]) -> str:
    line = match[0][:-1]
    if cell_width(line) < _MARGIN_CELLS:
        return match[0]
    return f"{line} " if match["latin"] else line


def wrap_rows(text: str, width: int) -> list[Row]:
    """Return the rows of a text; blank lines are left out, words are kept together if they fit."""
    return [row for line in _LINE.finditer(text) for row in _wrap_line(text, line.start(), line.end(), width)]


def _wrap_line(text: str, start: int, end: int, width: int) -> Iterator[Row]:
    row_start, cells = start, 0
    for part_start, part_end in _parts(text, start, end, width):
        size = cell_width(text[part_start:part_end])
        if cells + size > width and cells:
            if text[row_start:part_start].strip():
                yield _strip_row(text, row_start, part_start)
            row_start, cells = part_start, 0
            if text[part_start].isspace():
                row_start = part_end
                continue
        cells += size
    if text[row_start:end].strip():
        yield _strip_row(text, row_start, end)


def _parts(text: str, start: int, end: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges that stay together on a row; one wider than a row is divided."""
    for part in _PART.finditer(text, start, end):
        part_start = part.start()
        if cell_width(part[0]) > width:
            for position in range(part_start + 1, part.end()):
                if cell_width(text[part_start : position + 1]) > width:
                    yield part_start, position
                    part_start = position
        yield part_start, part.end()


def _strip_row(text: str, start: int, end: int) -> Row:
    return Row(start, start + len(text[start:end].rstrip()))


def best_window(rows: Sequence[Row], matches: Sequence[TermMatch], weights: Mapping[str, float], count: int) -> int:
    """Return the first of the `count` neighbouring rows that show most of the matches.

    The rows begin with the text if they can, else one row before the first match.
    """
    last_start = max(0, len(rows) - count)
    scores = [_score(rows[start : start + count], matches, weights) for start in range(last_start + 1)]
    best = [start for start, score in enumerate(scores) if score > max(scores) - 1e-9]
    if best[0] == 0:
        return 0
    # Of the first run of best windows, the last one begins with the first match.
    run_end = next((start for start in best if start + 1 not in best), best[0])
    return max(best[0], run_end - 1) if count > 1 else run_end


def _score(rows: Sequence[Row], matches: Sequence[TermMatch], weights: Mapping[str, float]) -> float:
    score, spellings = 0.0, set()
    for match in matches:
        if rows[0].start <= match.start and match.start < rows[-1].end:
            weight = weights.get(match.spelling, 1.0)
            score += weight * (_REPEAT_WEIGHT if match.spelling in spellings else 1.0)
            spellings.add(match.spelling)
    return score


Cell = str | Text

_GAP = 2  # cells between two columns
_ELLIPSIS = "…"
_COMMAND = re.compile(r"(?<=: )(?:bunko |pip install |uv |pipx )[^\n]*?(?=[.。]?$)")


def new_console(*, stderr: bool = False) -> Console:
    """Return a console for stdout, or for stderr, that colours only what it is told to colour."""
    return Console(stderr=stderr, highlight=False)


def plain_text(text: str, style: str = "") -> Text:
    """Return text for a console; Rich would parse a plain string as markup, in which [/x] is an error."""
    return Text(replace_controls(text), style=style)


def show_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, title: str = "", console: Console | None = None
) -> None:
    """Show a table that is no wider than the terminal; empty columns and those without room are left out."""
    console = console or new_console()
    columns = [replace(column, name=translate(column.name)) for column in columns]
    cells = [
        [
            cell
            if isinstance(cell, Text)
            else plain_text(cell if column.fit == "wrap" else " ".join(cell.splitlines()))
            for cell, column in zip(row, columns, strict=True)
        ]
        for row in rows
    ]
    widths = _column_widths(columns, cells, console.width)
    if title:
        console.print(plain_text(translate(title), "bold"))
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold",
    )  # fmt: skip
    shown = [(index, column, widths[index]) for index, column in enumerate(columns) if index in widths]
    has_room = _total_width(widths) <= console.width
    for _, column, width in shown:
        table.add_column(
            plain_text(column.name),
            justify="right" if column.is_number else "left",
            overflow="fold",
            width=width if has_room else None,
        )
    ellipsis = "..." if console.options.ascii_only else _ELLIPSIS
    for row in cells:
        table.add_row(*(_fit_cell(row[index], column, width, ellipsis) for index, column, width in shown))
    console.print(table)


def print_message(text: str, style: str = "", *, console: Console | None = None) -> None:
    """Print sentences in the user's language; a command at their end that does not fit gets a line of its own."""
    console, text = console or new_console(), translate(text)
    command = _COMMAND.search(text)
    if command is None or cell_width(text) <= console.width:
        console.print(plain_text(_wrap_japanese(text, console.width), style))
        return
    console.print(plain_text(_wrap_japanese(text[: command.start()].rstrip(), console.width), style))
    console.print(plain_text(f"  {command[0]}"), soft_wrap=True)


def _wrap_japanese(text: str, width: int) -> str:
    """Return Japanese text in lines that fit; Rich breaks lines only at spaces, of which it has few."""
    if language() != "ja" or _widest_line(Text(text)) <= width:
        return text
    indent = text[: len(text) - len(text.lstrip())]
    return "\n".join(f"{indent}{line}" for line in wrap_cells(text.lstrip(), max(2, width - len(indent))))


def _column_widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], room: int) -> dict[int, int]:
    """Return the widths of the columns that have room, by index."""
    widths = {}
    for index, column in enumerate(columns):
        longest = max((_widest_line(row[index]) for row in rows), default=0)
        if longest or not rows or column.priority == 1:
            widths[index] = max(min(longest, room), cell_width(column.name))

    def smallest(index: int) -> int:
        needed = max(columns[index].min_width, cell_width(columns[index].name))
        return widths[index] if columns[index].fit == "keep" else min(widths[index], needed)

    while _total_width({index: smallest(index) for index in widths}) > room:
        index = max(widths, key=lambda index: columns[index].priority)
        if columns[index].priority == 1:
            break
        del widths[index]
    # Wide and unimportant columns give way first: a short one stays whole beside them.
    while _total_width(widths) > room and (wide := [index for index in widths if widths[index] > smallest(index)]):
        widths[max(wide, key=lambda index: widths[index] * columns[index].priority)] -= 1
    return widths


def _total_width(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _widest_line(text: Text) -> int:
    return max(map(cell_width, text.plain.splitlines()), default=0)


def _fit_cell(cell: Text, column: Column, width: int, ellipsis: str) -> Text:
    if column.fit == "wrap":
        wrapped = _wrap_japanese(cell.plain, width)
        return cell if wrapped == cell.plain else Text(wrapped, style=cell.style)
    if column.fit == "keep" or cell_width(cell.plain) <= width:
        return cell
    shorten = shorten_path if column.fit == "path" else shorten_text
    return Text(shorten(cell.plain, width, ellipsis), style=cell.style)


def shorten_text(text: str, width: int, ellipsis: str = _ELLIPSIS) -> str:
    """Return text on one line that takes at most `width` cells of a terminal, cut at its end."""
    text = " ".join(text.split())
    if cell_width(text) <= width:
        return text
    return _take_cells(text, width - cell_width(ellipsis)).rstrip() + ellipsis


def shorten_path(path: str, width: int, ellipsis: str = _ELLIPSIS) -> str:
    """Return a path, URL or citation that takes at most `width` cells, with folders in its middle left out."""
    if cell_width(path) <= width:
        return path
    path = path.partition("://")[2] or path  # the host says more than https
    if cell_width(path) <= width:
        return path
    separator = "\\" if "\\" in path and "/" not in path else "/"
    parts = path.split(separator)
    # The beginning of a path, its root or ~ and the first folder, says where it is.
    for start in range(min(2, len(parts) - 1), -1, -1):
        for end in range(start + 1, len(parts)):
            shorter = separator.join([*parts[:start], ellipsis, *parts[end:]])
            if cell_width(shorter) <= width:
                return shorter
    text = parts[-1] or path
    # More of the end: it holds the ending and the line numbers.
    room = max(0, width - cell_width(ellipsis))
    head = _take_cells(text, room // 2)
    tail = _take_cells(text[::-1], room - cell_width(head))[::-1]
    return f"{head}{ellipsis}{tail}"


def _take_cells(text: str, width: int) -> str:
    """Return as many of the first characters as fit into `width` cells."""
    end = 0
    while end < len(text) and cell_width(text[: end + 1]) <= width:
        end += 1
    return text[:end]
