"""Read the styles and numbered lists of a Word document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from bunko.readers.office.package import attribute, child, local_name

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
                overrides = _read_overrides(element, shared.get(shared_id, {}))
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


def _read_overrides(element: Element, levels: dict[int, _Level]) -> dict[int, _Level]:
    overrides: dict[int, _Level] = {}
    for inner in element:
        if local_name(inner) != "lvlOverride":
            continue
        overrides |= _read_levels(inner)
        number = to_int(attribute(inner, "ilvl"), 0)
        level = overrides.get(number, levels.get(number))
        if level and value(inner, "startOverride"):
            overrides[number] = level._replace(start=to_int(value(inner, "startOverride"), 1))
    return overrides


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
