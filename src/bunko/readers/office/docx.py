"""Read Word documents as Markdown: headings, lists, tables, footnotes, text boxes, readings and styles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from bunko.errors import SourceError
from bunko.readers.html import keeps_readings
from bunko.readers.html.blocks import escape_markdown
from bunko.readers.office.package import (
    Archive,
    attribute,
    cell_text,
    child,
    document_text,
    iter_elements,
    local_name,
    main_part,
    markdown_table,
    parse_optional,
    relationships,
)
from bunko.text.labels import remove_hidden_chars

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from bunko.types import Text


MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAX_CHARS = 20_000_000
MAX_PARAGRAPHS = 100_000  # empty ones included; a book of 1,000 pages has 20,000
_MAX_COLUMNS = 200
_LONG_FENCE_CHARS = 20
# Deleted and moved text, field codes, settings; a fallback repeats what stands beside it.
_SKIPPED = frozenset(
    "pPr rPr del moveFrom delText instrText delInstrText fldData sdtPr sdtEndPr tblPr trPr tcPr sectPr Fallback"
    " annotationRef commentReference rubyPr bookmarkStart bookmarkEnd".split()
)
_FIXED_TEXTS = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
_CONTAINERS = frozenset("sdt sdtContent ins moveTo smartTag customXml AlternateContent Choice body".split())
_PLAIN_NUMBER = re.compile(r"\d+[.)]")


@dataclass(slots=True)
class _Block:
    kind: str  # text, heading, item, code, quote, table
    text: str
    readings: dict[str, str] = field(default_factory=dict)


def read(data: bytes) -> Text:
    """Return the text of a Word document; raise SourceError if it has none."""
    archive = Archive(data, "Word document")
    part = main_part(archive)
    parts = {relationship.kind: relationship.target for relationship in relationships(archive, part).values()}
    styles = parse_optional(archive, parts.get("styles", ""))
    writer = _Writer(
        read_styles(styles),
        default_style_id(styles),
        Numbering.from_xml(parse_optional(archive, parts.get("numbering", ""))),
        {
            (kind, attribute(note, "id")): note
            for kind in ("footnote", "endnote")
            for note in parse_optional(archive, parts.get(f"{kind}s", ""))
        },
    )
    for element in iter_elements(archive, part, "body"):
        writer.write_blocks([element])
        if writer.paragraphs > MAX_PARAGRAPHS:
            raise SourceError(f"The Word document has more than {MAX_PARAGRAPHS:,} paragraphs", hint="Split it.")
        if writer.chars > _MAX_CHARS:
            raise SourceError(f"The Word document has more than {_MAX_CHARS:,} characters", hint="Split it.")
    text = writer.markdown()
    if not text:
        raise SourceError("The Word document has no text", hint="Exclude it, or run text recognition on its pictures.")
    return document_text(archive, text, MEDIA_TYPE, title=writer.title)


class _Writer:
    """Writes the blocks of a document as Markdown."""

    def __init__(
        self, styles: dict[str, Style], default_style: str, numbering: Numbering, notes: dict[tuple[str, str], Element]
    ) -> None:
        self._styles, self._default_style, self._numbering, self._notes = styles, default_style, numbering, notes
        self._blocks: list[_Block] = []
        self._note_count = 0
        self._pending_notes: list[str] = []  # to write after the block that refers to them
        self._pending_boxes: list[Element] = []  # text boxes of the current block
        self._readings: dict[str, str] = {}  # of the current block
        self._annotated_words: set[str] = set()
        self._reading_chars = 0
        self.chars = self.paragraphs = 0
        self.title = ""

    def write_blocks(self, elements: Iterable[Element]) -> None:
        """Write paragraphs and tables."""
        for element in elements:
            name = local_name(element)
            if name == "p":
                self._write_paragraph(element)
                self._flush_pending()
            elif name == "tbl":
                self._write_table(element)
                self._flush_pending()
            elif name in _CONTAINERS and not _is_contents_list(element):
                self.write_blocks(element)

    def markdown(self) -> str:
        """Return the document; readings are left out if it has many."""
        with_readings = keeps_readings(self._reading_chars, self.chars)
        parts: list[str] = []
        previous = ""
        for block in self._blocks:
            text = block.text
            if block.readings and with_readings:
                readings = "、".join(f"{word} {reading}" for word, reading in block.readings.items())
                text += f"（読み: {readings}）"
            if block.kind == "code":
                fence = "`" * (3 if "```" not in text else _LONG_FENCE_CHARS)
                text = f"{fence}\n{text}\n{fence}"
            if parts:
                parts.append("\n" if previous == block.kind and block.kind in ("item", "quote") else "\n\n")
            parts.append(text)
            previous = block.kind
        return "".join(parts).strip("\n")

    def _add_block(self, kind: str, text: str) -> None:
        self.chars += len(text)
        if kind == "code" and self._blocks and self._blocks[-1].kind == "code":
            self._blocks[-1].text += f"\n{text}"
            return
        self._blocks.append(_Block(kind, text, self._readings))
        self._readings = {}

    def _flush_pending(self) -> None:
        """Write the text boxes and footnotes of a block after it."""
        boxes, self._pending_boxes = self._pending_boxes, []
        notes, self._pending_notes = self._pending_notes, []
        for box in boxes:
            self.write_blocks(box)
        for note in notes:
            self._add_block("text", note)

    def _write_paragraph(self, paragraph: Element) -> None:
        self.paragraphs += 1
        properties = child(paragraph, "pPr")
        style_id = value(properties, "pStyle") if properties is not None else ""
        style = self._styles.get(style_id or self._default_style, Style())
        if style.role == "contents":
            return
        text = self._inline_text(paragraph)
        item = read_numbering(paragraph) or style.numbering
        label = self._numbering.next_label(item) if item and text else ""
        if not text:
            return
        level = heading_level(paragraph) or style.heading_level
        if style.role == "title" or level:
            self._write_heading(level or 1, text, label)
        elif style.role == "code":
            self._add_block("code", self._inline_text(paragraph, strip=False))
        elif label and item:
            self._write_item(item, label, text)
        elif style.role == "quote":
            self._add_block("quote", "> " + text.replace("\n", "\n> "))
        else:
            self._add_block("text", escape_markdown(text))

    def _write_heading(self, level: int, text: str, label: str) -> None:
        title = " ".join(f"{'' if label == '-' else label} {text}".split())
        self.title = self.title or title
        self._add_block("heading", f"{'#' * min(level, 6)} {title}")

    def _write_item(self, item: ListLevel, label: str, text: str) -> None:
        if label != "-" and not _PLAIN_NUMBER.fullmatch(label):
            self._add_block("text", f"{label} {text}")  # 第3条
            return
        indent = "  " * item.level
        self._add_block("item", f"{indent}{label} " + text.replace("\n", f"\n{indent}  "))

    def _inline_text(self, element: Element, *, strip: bool = True) -> str:
        text = remove_hidden_chars("".join(self._inline_parts(element)))
        if not strip:
            return text.rstrip()
        return "\n".join(line.strip() for line in text.split("\n")).strip()

    def _inline_parts(self, element: Element) -> Iterator[str]:
        for node in element:
            name = local_name(node)
            if name == "t":
                yield node.text or ""
            elif name in _FIXED_TEXTS:
                yield _FIXED_TEXTS[name]
            elif name == "br":
                yield "" if attribute(node, "type") in ("page", "column") else "\n"
            elif name == "ruby":
                yield self._ruby_base(node)
            elif name in ("footnoteReference", "endnoteReference"):
                yield self._note_mark(name.removesuffix("Reference"), attribute(node, "id"))
            elif name == "docPr":
                yield f" {description} " if (description := attribute(node, "descr").strip()) else ""
            elif name == "txbxContent":
                self._pending_boxes.append(node)
            elif name not in _SKIPPED and not (name == "r" and _is_hidden(node)):
                yield from self._inline_parts(node)

    def _ruby_base(self, ruby: Element) -> str:
        base, reading = (
            "" if (part := child(ruby, name)) is None else "".join(self._inline_parts(part)).strip()
            for name in ("rubyBase", "rt")
        )
        self._reading_chars += len(reading)
        if base and reading and base != reading and base not in self._annotated_words:
            self._annotated_words.add(base)
            self._readings[base] = reading
        return base

    def _note_mark(self, kind: str, note_id: str) -> str:
        note = self._notes.pop((kind, note_id), None)  # it may refer to itself
        texts = [] if note is None else [self._inline_text(paragraph) for paragraph in _paragraphs(note)]
        text = " ".join(part for part in texts if part)
        if not text:
            return ""
        self._note_count += 1
        self._pending_notes.append(f"[^{self._note_count}]: {' '.join(text.split())}")
        return f"[^{self._note_count}]"

    def _write_table(self, table: Element) -> None:
        rows = [list(_unwrap(row, "tc")) for row in _unwrap(table, "tr")]
        if len(rows) < 2 or all(len(row) < 2 for row in rows):
            # A frame around text, not a table.
            for row in rows:
                for cell in row:
                    self.write_blocks(cell)
            return
        grid: list[list[str]] = []
        for row in rows:
            grid.append(self._row_texts(row, grid[-1] if grid else [], is_header=not grid))
        if any(any(row) for row in grid):
            self._add_block("table", markdown_table(grid))

    def _row_texts(self, cells: list[Element], above: list[str], *, is_header: bool) -> list[str]:
        """Return the texts of a row: a cell that spans rows is repeated, one that spans columns only in a header."""
        texts: list[str] = []
        for cell in cells:
            properties = child(cell, "tcPr")
            span = 1 if properties is None else to_int(value(properties, "gridSpan"), 1)
            merge = None if properties is None else child(properties, "vMerge")
            if merge is not None and attribute(merge, "val") != "restart" and len(texts) < len(above):
                text = above[len(texts)]
            else:
                text = cell_text(" ".join(self._inline_text(paragraph) for paragraph in _paragraphs(cell)))
            span = min(max(span, 1), max(_MAX_COLUMNS - len(texts), 0))
            texts += ([text] * span if is_header else [text, *[""] * (span - 1)])[:span]
        return texts


def _unwrap(element: Element, name: str) -> Iterator[Element]:
    """Yield the rows or cells of a table, also those inside content controls and marked insertions."""
    for node in element:
        if local_name(node) == name:
            yield node
        elif local_name(node) in _CONTAINERS:
            yield from _unwrap(node, name)


def _paragraphs(element: Element) -> Iterator[Element]:
    """Yield the paragraphs of a cell or note, also those of tables in it."""
    for node in element:
        if local_name(node) == "p":
            yield node
        elif local_name(node) in ("tbl", "tr", "tc") or local_name(node) in _CONTAINERS:
            yield from _paragraphs(node)


def _is_hidden(run: Element) -> bool:
    properties = child(run, "rPr")
    if properties is None:
        return False
    hidden = child(properties, "vanish")
    return hidden is not None and attribute(hidden, "val") not in ("0", "false")


def _is_contents_list(element: Element) -> bool:
    """Return whether a content control is the table of contents, which repeats the headings."""
    gallery = child(element, "sdtPr", "docPartObj", "docPartGallery")
    return gallery is not None and "Contents" in attribute(gallery, "val")


Role = Literal["", "title", "contents", "code", "quote"]

_HEADING_NAME = re.compile(r"heading ([1-9])")
_CONTENTS_NAME = re.compile(r"toc (?:[1-9]|heading)|table of figures|contents heading|contents \d")
_ROLES_BY_NAME: dict[str, Role] = {
    "title": "title", "quote": "quote", "intense quote": "quote", "block text": "quote", "quotations": "quote",
    "source code": "code", "html preformatted": "code", "preformatted text": "code", "macro text": "code",
}  # fmt: skip
_MAX_BASES = 20  # styles that are based on each other
_MAX_LEVELS = 9


class ListLevel(NamedTuple):
    """The list and level of a paragraph; list 0 is none."""

    list_id: int
    level: int


@dataclass(frozen=True, slots=True)
class Style:
    """What the style of a paragraph says about it."""

    heading_level: int = 0  # 1 to 9; 0: not a heading
    role: Role = ""
    numbering: ListLevel | None = None


def read_styles(root: Element) -> dict[str, Style]:
    """Return the paragraph styles by id, with what they inherit."""
    elements = {attribute(style, "styleId"): style for style in root if local_name(style) == "style"}
    return {style_id: _resolve_style(style_id, elements) for style_id in elements}


def default_style_id(root: Element) -> str:
    """Return the style of paragraphs that name none."""
    for style in root:
        if attribute(style, "type") == "paragraph" and attribute(style, "default") in ("1", "true"):
            return attribute(style, "styleId")
    return ""


def _resolve_style(style_id: str, elements: dict[str, Element]) -> Style:
    level, role, numbering = 0, "", None
    for _ in range(_MAX_BASES):
        element = elements.get(style_id)
        if element is None:
            break
        name = value(element, "name").lower()
        if match := _HEADING_NAME.fullmatch(name):
            level = level or int(match[1])
        if not role and not level:
            role = "contents" if _CONTENTS_NAME.fullmatch(name) else _ROLES_BY_NAME.get(name, "")
        level = level or heading_level(element)
        numbering = numbering or read_numbering(element)
        style_id = value(element, "basedOn")
    return Style(0 if role == "contents" else level, role, numbering)  # type: ignore[arg-type]


def heading_level(element: Element) -> int:
    """Return the outline level of a style or paragraph, counted from 1; 0 if it has none."""
    properties = child(element, "pPr")
    level = to_int(value(properties, "outlineLvl"), -1) if properties is not None else -1
    return level + 1 if 0 <= level < _MAX_LEVELS else 0


def read_numbering(element: Element) -> ListLevel | None:
    """Return the list that a style or paragraph belongs to, None if it does not say."""
    numbering = child(element, "pPr", "numPr")
    if numbering is None or child(numbering, "numId") is None:
        return None
    level = to_int(value(numbering, "ilvl"), 0)
    return ListLevel(to_int(value(numbering, "numId"), 0), min(max(level, 0), _MAX_LEVELS - 1))


def value(element: Element, name: str) -> str:
    """Return the value of a property element inside another one; "" if there is none."""
    inner = child(element, name)
    return "" if inner is None else attribute(inner, "val")


def to_int(text: str, default: int) -> int:
    """Return a number of at most six digits, or the default."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,6}", text) else default


class _Level(NamedTuple):
    start: int
    number_format: str
    pattern: str  # %1 stands for the number of the first level


@dataclass(slots=True)
class Numbering:
    """The lists of a document, which count as its paragraphs are read."""

    lists: dict[int, tuple[int, dict[int, _Level]]] = field(default_factory=dict)  # by id: shared counters, levels
    _counters: dict[int, list[int | None]] = field(default_factory=dict)

    @classmethod
    def from_xml(cls, root: Element) -> Numbering:
        """Read the numbering part of a document."""
        shared: dict[int, dict[int, _Level]] = {}
        by_style: dict[str, int] = {}
        links: dict[int, str] = {}
        numbering = cls()
        for element in root:
            if local_name(element) == "abstractNum":
                shared_id = to_int(attribute(element, "abstractNumId"), 0)
                shared[shared_id] = _read_levels(element)
                links[shared_id] = value(element, "numStyleLink")
                by_style[value(element, "styleLink")] = shared_id
            elif local_name(element) == "num":
                shared_id = to_int(value(element, "abstractNumId"), 0)
                shared_id = by_style.get(links.get(shared_id) or "-", shared_id)
                levels = shared.get(shared_id, {})
                overrides: dict[int, _Level] = {}
                for inner in element:
                    if local_name(inner) != "lvlOverride":
                        continue
                    overrides |= _read_levels(inner)
                    number = to_int(attribute(inner, "ilvl"), 0)
                    level = overrides.get(number, levels.get(number))
                    if level and value(inner, "startOverride"):
                        overrides[number] = level._replace(start=to_int(value(inner, "startOverride"), 1))
                list_id = to_int(attribute(element, "numId"), 0)
                # A list with levels of its own counts for itself.
                counters = -1 - list_id if overrides else shared_id
                numbering.lists[list_id] = (counters, shared.get(shared_id, {}) | overrides)
        return numbering

    def next_label(self, item: ListLevel) -> str:
        """Return the label of the next item of a list: "-" for a bullet, "3." or "第3条" for a number, "" for none."""
        if item.list_id not in self.lists:
            return ""
        shared_id, levels = self.lists[item.list_id]
        level = levels.get(item.level)
        if level is None:
            return ""
        counters = self._counters.setdefault(shared_id, [None] * _MAX_LEVELS)
        current = counters[item.level]
        counters[item.level] = level.start if current is None else current + 1
        counters[item.level + 1 :] = [None] * (_MAX_LEVELS - item.level - 1)
        if level.number_format == "bullet":
            return "-"

        def number(match: re.Match[str]) -> str:
            position = int(match[1]) - 1
            part = levels.get(position, level)
            count = counters[position] if counters[position] is not None else part.start
            return format_number(count or 0, part.number_format)

        return "" if level.number_format == "none" else re.sub(r"%([1-9])", number, level.pattern).strip()


def _read_levels(element: Element) -> dict[int, _Level]:
    levels = (inner for inner in element if local_name(inner) == "lvl")
    return {
        to_int(attribute(level, "ilvl"), 0): _Level(
            to_int(value(level, "start"), 1), value(level, "numFmt") or "decimal", value(level, "lvlText")
        )
        for level in levels
    }


_KANJI_DIGITS = "〇一二三四五六七八九"
_IROHA = "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス"
_AIUEO = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]  # fmt: skip
_FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")


def format_number(number: int, number_format: str) -> str:
    """Return the number of a list item as Word shows it; formats that are rare become plain digits."""
    formatter = _FORMATTERS.get(number_format)
    return formatter(number) if formatter and 0 < number < 4000 else str(number)


def _from_alphabet(alphabet: str) -> Callable[[int], str]:
    return lambda number: alphabet[(number - 1) % len(alphabet)] * ((number - 1) // len(alphabet) + 1)


def _roman(number: int) -> str:
    digits = ""
    for amount, letters in _ROMAN:
        digits += letters * (number // amount)
        number %= amount
    return digits


def _kanji(number: int) -> str:
    """Return 二十三 for 23."""
    digits = ""
    for amount, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        count, number = divmod(number, amount)
        if count:
            digits += (_KANJI_DIGITS[count] if count > 1 or not unit else "") + unit
    return digits


_FORMATTERS: dict[str, Callable[[int], str]] = {
    "lowerLetter": _from_alphabet(_LATIN),
    "upperLetter": _from_alphabet(_LATIN.upper()),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "aiueo": _from_alphabet(_AIUEO),
    "aiueoFullWidth": _from_alphabet(_AIUEO),
    "iroha": _from_alphabet(_IROHA),
    "irohaFullWidth": _from_alphabet(_IROHA),
    "japaneseCounting": _kanji,
    "chineseCounting": _kanji,
    "ideographDigital": lambda number: "".join(_KANJI_DIGITS[int(digit)] for digit in str(number)),
    "decimalFullWidth": lambda number: str(number).translate(_FULL_WIDTH),
    "decimalFullWidth2": lambda number: str(number).translate(_FULL_WIDTH),
    "decimalZero": lambda number: f"{number:02}",
    "decimalEnclosedCircle": lambda number: chr(0x245F + number) if number <= 20 else str(number),
}
