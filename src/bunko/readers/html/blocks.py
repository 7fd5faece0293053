"""An element of a page comes in, its text as Markdown goes out: headings, lists, tables, listings and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bunko.readers.html import tables
from bunko.readers.html.tree import Node, text_of
from bunko.text.hidden_chars import clean

_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure"
    " footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p search section summary table tbody td"
    " tfoot th thead tr ul".split()
)
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LISTS = ("ul", "ol", "menu", "dir")
_DENSE = ("div", "ul", "ol", "p", "section", "dl", "td", "center")

WIDE = "\u2e80-\u2fdf\u3001-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"
# A line end in the source of a Japanese text is no blank: the language has none.
_WRAP = re.compile(rf"(?<=[{WIDE}])[ \t]*\n[ \t\n]*(?=[{WIDE}])")
_BLANKS = re.compile(r"[ \t\n\f\xa0]+")
_BREAK = re.compile(r" ?\r[ \r]*")  # <br>, which no text of a page contains as such
# What would make a line of text a heading, a ruler, a fence or raw HTML to whoever reads Markdown.
_MARKUP = re.compile(
    r"(?m)^(?=#{1,6}(?:\s|$)|`{3}|~{3}|<(?i:!--|pre\b|script\b|style\b|textarea\b|h[1-6]\b)|[ \t:|]*+[-=][-=:| \t]*+$)"
)
_FILE_NAME = re.compile(r"(?i)[\w./-]*\.(?:png|jpe?g|gif|svg|webp|avif|bmp)")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]{1,20})")
_TICKS = re.compile("`+")
_LONGEST_FENCE = 20
_DEEPEST_MARKS = 8  # of lists and quotes; with more, each short line would carry hundreds of characters


def markdown(root: Node, *, dense: bool = True, boilerplate: bool = False, readings: bool = True) -> str:
    """Return the text of an element; blocks of nothing but links only where `dense`, boilerplate only if asked for."""
    return "\n".join(_Writer(dense, boilerplate, readings).blocks(root)).strip("\n")


def line(root: Node, *, readings: bool = True) -> str:
    """Return the text of an element on one line, without marks."""
    writer = _Writer(True, False, readings, plain=True)
    return _BLANKS.sub(" ", " ".join(writer.blocks(root))).strip()


class _Writer:
    """Walks through an element without recursion, for nothing limits how deep pages nest."""

    def __init__(self, dense: bool, boilerplate: bool, readings: bool, *, plain: bool = False) -> None:
        self._dense = dense
        self._boilerplate = boilerplate
        self._readings = readings
        self._plain = plain  # on one line: the text of a cell or a title
        self._out: list[str] = []
        self._inline: list[str] = []
        self._marks: list[list[str]] = []  # of lists and quotes around: what their first line begins with, and others
        self._numbers: list[int] = []  # of the lists around; 0 or less: it has none
        self._pending: dict[str, str] = {}  # words and the readings to write behind the block
        self._said: set[str] = set()
        self._tight = False  # the last block was an item of a list

    def blocks(self, root: Node) -> Iterator[str]:
        """Yield the lines and blank lines of the text."""
        stack: list[tuple[Node, Iterator[Node | str], int]] = [(root, iter(root.children), 0)]
        while stack:
            node, children, began = stack[-1]
            for child in children:
                if isinstance(child, str):
                    self._inline.append(child.replace("\r", " ") if "\r" in child else child)
                elif not self._skips(child) and not self._whole(child):
                    stack.append((child, iter(child.children), self._enter(child)))
                    break
            else:
                stack.pop()
                self._leave(node, began)
            if len(self._out) > 64:
                yield from self._out
                self._out = []
        self._flush()
        yield from self._out

    def _skips(self, node: Node) -> bool:
        if node.boilerplate and not self._boilerplate:
            return True
        # A menu that nothing else tells from a text: many short links and hardly a word between them.
        return (
            not self._dense
            and node.links >= 4
            and node.tag in _DENSE
            and node.linked > 0.85 * node.chars
            and node.linked < 30 * node.links
        )

    def _whole(self, node: Node) -> bool:
        """Write an element that is not walked through, and say whether it was one."""
        tag = node.tag
        if tag == "br":
            self._inline.append("\r")
        elif tag == "wbr":
            pass
        elif tag == "img":
            alt = (node.attributes.get("alt") or "").strip()
            if alt and not _FILE_NAME.fullmatch(alt):
                self._inline.append(f" {alt} ")
        elif tag == "hr":
            self._flush()
        elif tag == "pre" and not self._plain:
            self._flush()
            self._code(node)
        elif tag == "table" and not self._plain and not tables.is_layout(node):
            self._flush()
            self._block(tables.markdown(node, self._cell), bare=True)
        elif tag == "sup" and node.chars <= 3 and text_of(node).strip().isdigit():
            self._inline.append(f"^{text_of(node).strip()}")
        else:
            return False
        return True

    def _cell(self, node: Node) -> str:
        writer = _Writer(True, self._boilerplate, self._readings, plain=True)
        writer._said = self._said
        return _BLANKS.sub(" ", " ".join(writer.blocks(node))).strip()

    def _enter(self, node: Node) -> int:
        tag = node.tag
        if tag in _BLOCKS:
            self._flush()
            if not self._plain:
                self._open(node)
        elif tag == "code" and not self._plain:
            self._inline.append("`")
        elif tag == "a" and self._inline and self._inline[-1] == "\0":
            self._inline.append(" ")  # links side by side are words of their own
        return len(self._inline)

    def _open(self, node: Node) -> None:
        tag = node.tag
        if tag in _LISTS:
            start = node.attributes.get("start") or ""
            self._numbers.append((int(start[:6]) if start[:6].isdecimal() else 1) if tag == "ol" else 0)
        elif tag == "li":
            mark = "- "
            if self._numbers and self._numbers[-1] > 0:
                mark = f"{self._numbers[-1]}. "
                self._numbers[-1] += 1
            self._marks.append([mark, " " * len(mark)])
        elif tag == "blockquote":
            self._marks.append(["> ", "> "])
        elif tag == "dd":
            self._marks.append([": ", "  "])

    def _leave(self, node: Node, began: int) -> None:
        tag = node.tag
        if tag in _LEVELS and not self._plain:
            self._heading(_LEVELS[tag])
        elif tag in _BLOCKS:
            self._flush()
            if self._plain:
                return
            if tag in _LISTS and self._numbers:
                self._numbers.pop()
            elif tag in ("li", "blockquote", "dd") and self._marks:
                self._marks.pop()
        elif tag == "code" and not self._plain:
            self._inline_code(began)
        elif tag == "a":
            self._inline.append("\0")
        elif tag == "ruby" and node.reading and self._readings:
            base = _text(self._inline[began:])
            if base and base != node.reading and base not in self._said:
                self._said.add(base)
                self._pending[base] = node.reading

    def _inline_code(self, began: int) -> None:
        inner = "".join(self._inline[began:])
        if began > len(self._inline) or self._inline[began - 1] != "`":
            return  # a block inside has taken the beginning with it
        if inner.strip("\0 \n\t") and "`" not in inner and "\r" not in inner:
            self._inline.append("`")
        else:
            del self._inline[began - 1]

    def _flush(self) -> None:
        if not self._inline:
            return
        text = _text(self._inline)
        self._inline.clear()
        if text:
            self._block(text if self._plain else escaped(text))

    def _heading(self, level: int) -> None:
        text = _text(self._inline).replace("\n", " ")
        self._inline.clear()
        if text:
            pending, self._pending = self._pending, {}
            self._block(f"{'#' * level} {text}", bare=True)
            self._pending = pending

    def _code(self, node: Node) -> None:
        text = clean(listing(node))
        if text.strip():
            longest = max((len(run) for run in _TICKS.findall(text)), default=0)
            ticks = "`" * max(3, min(longest + 1, _LONGEST_FENCE))
            self._block(f"{ticks}{_language(node)}\n{text}\n{ticks}", bare=True)

    def _block(self, text: str, *, bare: bool = False) -> None:
        """Put a block behind the others, under the marks of the lists and quotes around it."""
        if not text:
            return
        if self._pending:
            told = "、".join(f"{word} {reading}" for word, reading in self._pending.items())
            text += f"（読み: {told}）"
            self._pending = {}
        first = rest = ""
        tight = False
        if not bare and self._marks:
            shown = self._marks[-_DEEPEST_MARKS:]
            first = "".join(mark for mark, _ in shown)
            rest = "".join(mark for _, mark in shown)
            tight = any(mark != other for mark, other in shown)
            for mark in shown:
                mark[0] = mark[1]
        if rest:
            text = text.replace("\n", f"\n{rest}")
        if not (tight and self._tight):
            self._out.append("")
        self._out.append(first + text)
        self._tight = tight


def escaped(text: str) -> str:
    """Return running text with a backslash before lines that Markdown would take for something else."""
    return _MARKUP.sub(r"\\", text)


def listing(node: Node) -> str:
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
            if one.tag in _BLOCKS:
                waiting.append(None)
            waiting.extend(reversed(one.children))
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").rstrip()
    return text.removeprefix("\n")


def _language(node: Node) -> str:
    children = (child for child in node.children if isinstance(child, Node))
    for one in (node, *children):
        names = f"{one.attributes.get('class') or ''}"
        if found := _LANGUAGE.search(names):
            return found[1]
    return ""


def _text(parts: list[str]) -> str:
    """Return running text with its blanks and line ends as a browser would show them."""
    text = "".join(parts).replace("\0", "")
    if not text or text.isspace():
        return ""
    if "\n" in text:
        text = _WRAP.sub("", text)
    text = clean(_BLANKS.sub(" ", text)).strip(" \r")
    return _BREAK.sub("\n", text) if "\r" in text else text
