"""An element of a page comes in, its text as Markdown goes out: headings, lists, tables, listings and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bunko.readers.html import tables
from bunko.readers.html.tree import Node, inner_text
from bunko.text.hidden_chars import remove_hidden_chars

_BLOCK_TAGS = frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p search section summary table tbody td"
    " tfoot th thead tr ul".split()
)
_HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LIST_TAGS = ("ul", "ol", "menu", "dir")
_MENU_TAGS = ("div", "ul", "ol", "p", "section", "dl", "td", "center")

WIDE_CHARS = "\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"
# A line end in the source of a Japanese text is no blank: the language has none.
_WIDE_LINE_BREAK = re.compile(rf"(?<=[{WIDE_CHARS}])[ \t]*\n[ \t\n]*(?=[{WIDE_CHARS}])")
_BLANKS = re.compile(r"[ \t\n\f\xa0]+")
_BR_RUN = re.compile(r" ?\r[ \r]*")  # <br>, which no text of a page contains as such
# What would make a line of text a heading, a ruler, a fence or raw HTML to whoever reads Markdown.
_MARKDOWN_SYNTAX = re.compile(
    r"(?m)^(?=#{1,6}(?:\s|$)|`{3}|~{3}|<(?i:!--|pre\b|script\b|style\b|textarea\b|h[1-6]\b)|[ \t:|]*+[-=][-=:| \t]*+$)"
)
_IMAGE_FILE_NAME = re.compile(r"(?i)[\w./-]*\.(?:png|jpe?g|gif|svg|webp|avif|bmp)")
_LANGUAGE_CLASS = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]{1,20})")
_BACKTICKS = re.compile("`+")
_MAX_FENCE_CHARS = 20
_MAX_PREFIX_DEPTH = 8  # of lists and quotes; with more, each short line would carry hundreds of characters


def markdown(root: Node, *, keep_menus: bool = True, keep_boilerplate: bool = False, keep_readings: bool = True) -> str:
    """Return the text of an element; blocks of nothing but links only where `dense`, boilerplate only if asked for."""
    return "\n".join(_MarkdownWriter(keep_menus, keep_boilerplate, keep_readings).render_blocks(root)).strip("\n")


def one_line(root: Node, *, keep_readings: bool = True) -> str:
    """Return the text of an element on one line, without marks."""
    writer = _MarkdownWriter(True, False, keep_readings, single_line=True)
    return _BLANKS.sub(" ", " ".join(writer.render_blocks(root))).strip()


class _MarkdownWriter:
    """Walks through an element without recursion, for nothing limits how deep pages nest."""

    def __init__(
        self, keep_menus: bool, keep_boilerplate: bool, keep_readings: bool, *, single_line: bool = False
    ) -> None:
        self._keep_menus = keep_menus
        self._keep_boilerplate = keep_boilerplate
        self._keep_readings = keep_readings
        self._single_line = single_line  # on one line: the text of a cell or a title
        self._output: list[str] = []
        self._inline: list[str] = []
        self._prefixes: list[
            list[str]
        ] = []  # of lists and quotes around: what their first line begins with, and others
        self._list_numbers: list[int] = []  # of the lists around; 0 or less: it has none
        self._pending_readings: dict[str, str] = {}  # words and the readings to write behind the block
        self._annotated_words: set[str] = set()
        self._after_list_item = False  # the last block was an item of a list

    def render_blocks(self, root: Node) -> Iterator[str]:
        """Yield the lines and blank lines of the text."""
        stack: list[tuple[Node, Iterator[Node | str], int]] = [(root, iter(root.children), 0)]
        while stack:
            node, children, began = stack[-1]
            for child in children:
                if isinstance(child, str):
                    self._inline.append(child.replace("\r", " ") if "\r" in child else child)
                elif not self._should_skip(child) and not self._write_unit(child):
                    stack.append((child, iter(child.children), self._enter_element(child)))
                    break
            else:
                stack.pop()
                self._leave_element(node, began)
            if len(self._output) > 64:
                yield from self._output
                self._output = []
        self._flush_inline()
        yield from self._output

    def _should_skip(self, node: Node) -> bool:
        if node.is_boilerplate and not self._keep_boilerplate:
            return True
        # A menu that nothing else tells from a text: many short links and hardly a word between them.
        return (
            not self._keep_menus
            and node.link_count >= 4
            and node.tag in _MENU_TAGS
            and node.link_chars > 0.85 * node.chars
            and node.link_chars < 30 * node.link_count
        )

    def _write_unit(self, node: Node) -> bool:
        """Write an element that is not walked through, and say whether it was one."""
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
        elif tag == "table" and not self._single_line and not tables.is_layout(node):
            self._flush_inline()
            self._write_block(tables.markdown(node, self._cell_text), unprefixed=True)
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
            self._inline.append(" ")  # links side by side are words of their own
        return len(self._inline)

    def _open_block(self, node: Node) -> None:
        tag = node.tag
        if tag in _LIST_TAGS:
            start = node.attributes.get("start") or ""
            self._list_numbers.append((int(start[:6]) if start[:6].isdecimal() else 1) if tag == "ol" else 0)
        elif tag == "li":
            mark = "- "
            if self._list_numbers and self._list_numbers[-1] > 0:
                mark = f"{self._list_numbers[-1]}. "
                self._list_numbers[-1] += 1
            self._prefixes.append([mark, " " * len(mark)])
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
            return  # a block inside has taken the beginning with it
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
            ticks = "`" * max(3, min(longest + 1, _MAX_FENCE_CHARS))
            self._write_block(f"{ticks}{_code_language(node)}\n{text}\n{ticks}", unprefixed=True)

    def _write_block(self, text: str, *, unprefixed: bool = False) -> None:
        """Put a block behind the others, under the marks of the lists and quotes around it."""
        if not text:
            return
        if self._pending_readings:
            told = "、".join(f"{word} {reading}" for word, reading in self._pending_readings.items())
            text += f"（読み: {told}）"
            self._pending_readings = {}
        first = rest = ""
        tight = False
        if not unprefixed and self._prefixes:
            shown = self._prefixes[-_MAX_PREFIX_DEPTH:]
            first = "".join(mark for mark, _ in shown)
            rest = "".join(mark for _, mark in shown)
            tight = any(mark != other for mark, other in shown)
            for mark in shown:
                mark[0] = mark[1]
        if rest:
            text = text.replace("\n", f"\n{rest}")
        if not (tight and self._after_list_item):
            self._output.append("")
        self._output.append(first + text)
        self._after_list_item = tight


def escape_markdown(text: str) -> str:
    """Return running text with a backslash before lines that Markdown would take for something else."""
    return _MARKDOWN_SYNTAX.sub(r"\\", text)


def preformatted_text(node: Node) -> str:
    """Return preformatted text as it stands."""
    parts: list[str] = []
    waiting: list[Node | str | None] = [node]
    while waiting:
        one = waiting.pop()
        if one is None:
            if parts and not parts[-1].endswith("\n"):
                parts.append("\n")
        elif isinstance(one, str):
            parts.append(one)
        elif one.tag == "br":
            parts.append("\n")
        else:
            if one.tag in _BLOCK_TAGS:
                waiting.append(None)
            waiting.extend(reversed(one.children))
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return text.removeprefix("\n")


def _code_language(node: Node) -> str:
    children = (child for child in node.children if isinstance(child, Node))
    for one in (node, *children):
        names = f"{one.attributes.get('class') or ''}"
        if found := _LANGUAGE_CLASS.search(names):
            return found[1]
    return ""


def _running_text(parts: list[str]) -> str:
    """Return running text with its blanks and line ends as a browser would show them."""
    text = "".join(parts).replace("\0", "")
    if not text or text.isspace():
        return ""
    if "\n" in text:
        text = _WIDE_LINE_BREAK.sub("", text)
    text = remove_hidden_chars(_BLANKS.sub(" ", text)).strip(" \r")
    return _BR_RUN.sub("\n", text) if "\r" in text else text
