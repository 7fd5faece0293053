"""Render an element of a page, its tables included, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bunko.readers.html.tree import Node, inner_text
from bunko.text.labels import remove_hidden_chars

pass

_BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p search section summary table tbody td"
    " tfoot th thead tr ul".split()
)
_HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LIST_TAGS = ("ul", "ol", "menu", "dir")
_MENU_TAGS = ("div", "ul", "ol", "p", "section", "dl", "td", "center")

WIDE_CHARS = "\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"
# A line end in Japanese source text is not a space: the language has none.
_WIDE_LINE_BREAK = re.compile(rf"(?<=[{WIDE_CHARS}])[ \t]*\n[ \t\n]*(?=[{WIDE_CHARS}])")
_BLANKS = re.compile(r"[ \t\n\f\xa0]+")
_BR_RUN = re.compile(r" ?\r[ \r]*")  # <br> is written as \r, which the text of a page never contains
# Where a Markdown reader would take a line of text for a heading, a rule, a fence or raw HTML.
_MARKDOWN_SYNTAX = re.compile(
    r"(?m)^(?=#{1,6}(?:\s|$)|`{3}|~{3}|<(?i:!--|pre\b|script\b|style\b|textarea\b|h[1-6]\b)|[ \t:|]*+[-=][-=:| \t]*+$)"
)
_IMAGE_FILE_NAME = re.compile(r"(?i)[\w./-]*\.(?:png|jpe?g|gif|svg|webp|avif|bmp)")
_LANGUAGE_CLASS = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]{1,20})")
_BACKTICKS = re.compile("`+")
_MAX_FENCE_CHARS = 20
_MAX_PREFIX_DEPTH = 8  # of lists and quotes; with more, each short line would have hundreds of characters of prefix


def markdown(root: Node, *, keep_menus: bool = True, keep_boilerplate: bool = False, keep_readings: bool = True) -> str:
    """Return the text of an element; blocks that are mostly links, boilerplate and readings are optional."""
    return "\n".join(_MarkdownWriter(keep_menus, keep_boilerplate, keep_readings).render_blocks(root)).strip("\n")


def one_line(root: Node, *, keep_readings: bool = True) -> str:
    """Return the text of an element on one line, without Markdown syntax."""
    writer = _MarkdownWriter(True, False, keep_readings, single_line=True)
    return _BLANKS.sub(" ", " ".join(writer.render_blocks(root))).strip()


class _MarkdownWriter:
    """Writes an element as Markdown, without recursion, since pages nest without limit."""

    def __init__(
        self, keep_menus: bool, keep_boilerplate: bool, keep_readings: bool, *, single_line: bool = False
    ) -> None:
        self._keep_menus = keep_menus
        self._keep_boilerplate = keep_boilerplate
        self._keep_readings = keep_readings
        self._single_line = single_line  # for cells and titles
        self._output: list[str] = []
        self._inline: list[str] = []
        # For each enclosing list item and quote: the prefix of its next line, and of all lines after that.
        self._prefixes: list[list[str]] = []
        self._list_numbers: list[int] = []  # the next number of each enclosing list; 0 or less: not numbered
        self._pending_readings: dict[str, str] = {}  # words and their readings, to write after the block
        self._annotated_words: set[str] = set()
        self._after_list_item = False  # the last block was in a list item

    def render_blocks(self, root: Node) -> Iterator[str]:
        """Yield the blocks of the text and the blank lines between them."""
        stack: list[tuple[Node, Iterator[Node | str], int]] = [(root, iter(root.children), 0)]
        while stack:
            node, children, inline_start = stack[-1]
            for child in children:
                if isinstance(child, str):
                    self._inline.append(child.replace("\r", " ") if "\r" in child else child)
                elif not self._should_skip(child) and not self._write_unit(child):
                    stack.append((child, iter(child.children), self._enter_element(child)))
                    break
            else:
                stack.pop()
                self._leave_element(node, inline_start)
            if len(self._output) > 64:
                yield from self._output
                self._output = []
        self._flush_inline()
        yield from self._output

    def _should_skip(self, node: Node) -> bool:
        if node.is_boilerplate and not self._keep_boilerplate:
            return True
        # A menu that is not marked as one: many short links with hardly a word between them.
        return (
            not self._keep_menus
            and node.link_count >= 4
            and node.tag in _MENU_TAGS
            and node.link_chars > 0.85 * node.chars
            and node.link_chars < 30 * node.link_count
        )

    def _write_unit(self, node: Node) -> bool:
        """Write an element whose children are not visited, and return whether it is one."""
        tag = node.tag
        if tag == "br":
            self._inline.append("\r")
        elif tag == "wbr":
            pass
        elif tag == "img":
            alt = (node.attributes.get("alt") or "").strip()
            if alt and not _IMAGE_FILE_NAME.fullmatch(alt):
                self._inline.append(f" {alt} ")
        elif tag == "hr":
            self._flush_inline()
        elif tag == "pre" and not self._single_line:
            self._flush_inline()
            self._write_code(node)
        elif tag == "table" and not self._single_line and not is_layout(node):
            self._flush_inline()
            self._write_block(table_markdown(node, self._cell_text), unprefixed=True)
        elif tag == "sup" and node.chars <= 3 and inner_text(node).strip().isdigit():
            self._inline.append(f"^{inner_text(node).strip()}")
        else:
            return False
        return True

    def _cell_text(self, node: Node) -> str:
        writer = _MarkdownWriter(True, self._keep_boilerplate, self._keep_readings, single_line=True)
        writer._annotated_words = self._annotated_words
        return _BLANKS.sub(" ", " ".join(writer.render_blocks(node))).strip()

    def _enter_element(self, node: Node) -> int:
        tag = node.tag
        if tag in _BLOCK_TAGS:
            self._flush_inline()
            if not self._single_line:
                self._open_block(node)
        elif tag == "code" and not self._single_line:
            self._inline.append("`")
        elif tag == "a" and self._inline and self._inline[-1] == "\0":
            self._inline.append(" ")  # adjacent links are separate words
        return len(self._inline)

    def _open_block(self, node: Node) -> None:
        tag = node.tag
        if tag in _LIST_TAGS:
            start = node.attributes.get("start") or ""
            self._list_numbers.append((int(start[:6]) if start[:6].isdecimal() else 1) if tag == "ol" else 0)
        elif tag == "li":
            marker = "- "
            if self._list_numbers and self._list_numbers[-1] > 0:
                marker = f"{self._list_numbers[-1]}. "
                self._list_numbers[-1] += 1
            self._prefixes.append([marker, " " * len(marker)])
        elif tag == "blockquote":
            self._prefixes.append(["> ", "> "])
        elif tag == "dd":
            self._prefixes.append([": ", "  "])

    def _leave_element(self, node: Node, inline_start: int) -> None:
        tag = node.tag
        if tag in _HEADING_LEVELS and not self._single_line:
            self._write_heading(_HEADING_LEVELS[tag])
        elif tag in _BLOCK_TAGS:
            self._flush_inline()
            if self._single_line:
                return
            if tag in _LIST_TAGS and self._list_numbers:
                self._list_numbers.pop()
            elif tag in ("li", "blockquote", "dd") and self._prefixes:
                self._prefixes.pop()
        elif tag == "code" and not self._single_line:
            self._close_inline_code(inline_start)
        elif tag == "a":
            self._inline.append("\0")
        elif tag == "ruby" and node.reading and self._keep_readings:
            base = _running_text(self._inline[inline_start:])
            if base and base != node.reading and base not in self._annotated_words:
                self._annotated_words.add(base)
                self._pending_readings[base] = node.reading

    def _close_inline_code(self, inline_start: int) -> None:
        inner = "".join(self._inline[inline_start:])
        if inline_start > len(self._inline) or self._inline[inline_start - 1] != "`":
            return  # a block inside has already been written with the opening mark
        if inner.strip("\0 \n\t") and "`" not in inner and "\r" not in inner:
            self._inline.append("`")
        else:
            del self._inline[inline_start - 1]

    def _flush_inline(self) -> None:
        if not self._inline:
            return
        text = _running_text(self._inline)
        self._inline.clear()
        if text:
            self._write_block(text if self._single_line else escape_markdown(text))

    def _write_heading(self, level: int) -> None:
        text = _running_text(self._inline).replace("\n", " ")
        self._inline.clear()
        if text:
            pending, self._pending_readings = self._pending_readings, {}
            self._write_block(f"{'#' * level} {text}", unprefixed=True)
            self._pending_readings = pending

    def _write_code(self, node: Node) -> None:
        text = remove_hidden_chars(preformatted_text(node))
        if text.strip():
            longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
            fence = "`" * max(3, min(longest + 1, _MAX_FENCE_CHARS))
            self._write_block(f"{fence}{_code_language(node)}\n{text}\n{fence}", unprefixed=True)

    def _write_block(self, text: str, *, unprefixed: bool = False) -> None:
        """Append a block, with the prefixes of the enclosing lists and quotes."""
        if not text:
            return
        if self._pending_readings:
            readings = "、".join(f"{word} {reading}" for word, reading in self._pending_readings.items())
            text += f"（読み: {readings}）"
            self._pending_readings = {}
        first_prefix = next_prefix = ""
        is_list_item = False
        if not unprefixed and self._prefixes:
            prefixes = self._prefixes[-_MAX_PREFIX_DEPTH:]
            first_prefix = "".join(prefix for prefix, _ in prefixes)
            next_prefix = "".join(prefix for _, prefix in prefixes)
            is_list_item = any(prefix != following for prefix, following in prefixes)
            for prefix in prefixes:  # the bullet or number of an item stands on its first line only
                prefix[0] = prefix[1]
        if next_prefix:
            text = text.replace("\n", f"\n{next_prefix}")
        if not (is_list_item and self._after_list_item):
            self._output.append("")
        self._output.append(first_prefix + text)
        self._after_list_item = is_list_item


def escape_markdown(text: str) -> str:
    """Return text with a backslash before lines that Markdown would interpret as syntax."""
    return _MARKDOWN_SYNTAX.sub(r"\\", text)


def preformatted_text(node: Node) -> str:
    """Return preformatted text unchanged."""
    parts: list[str] = []
    pending: list[Node | str | None] = [node]
    while pending:
        current = pending.pop()
        if current is None:
            if parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        elif isinstance(current, str):
            parts.append(current)
        elif current.tag == "br":
            parts.append("\n")
        else:
            if current.tag in _BLOCK_TAGS:
                pending.append(None)
            pending.extend(reversed(current.children))
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return text.removeprefix("\n")


def _code_language(node: Node) -> str:
    children = (child for child in node.children if isinstance(child, Node))
    for element in (node, *children):
        class_names = f"{element.attributes.get('class') or ''}"
        if match := _LANGUAGE_CLASS.search(class_names):
            return match[1]
    return ""


def _running_text(parts: list[str]) -> str:
    """Return inline text with spaces and line breaks as a browser would show them."""
    text = "".join(parts).replace("\0", "")
    if not text or text.isspace():
        return ""
    if "\n" in text:
        text = _WIDE_LINE_BREAK.sub("", text)
    text = remove_hidden_chars(_BLANKS.sub(" ", text)).strip(" \r")
    return _BR_RUN.sub("\n", text) if "\r" in text else text


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


def table_markdown(table: Node, cell_text: Callable[[Node], str]) -> str:
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
