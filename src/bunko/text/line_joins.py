"""Join the lines of hard-wrapped Japanese, since a line end may cut a word: ネットワー and ク are one.

Only a line end between two Japanese characters is removed, with the indentation of the next line. Paragraphs, list
items, headings, rows of tables and lines of code stay apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bunko.text.language import HALF_WIDTH_KANA, JAPANESE_CHARS

# The leading newline is a literal that the regex engine searches for at memory speed. A line that begins with a
# full-width space begins a paragraph.
_LINE_START = re.compile(rf"\n[ \t>]*+(?=[{JAPANESE_CHARS}{HALF_WIDTH_KANA}])")
_JAPANESE_CHAR = re.compile(rf"[{JAPANESE_CHARS}{HALF_WIDTH_KANA}]")
# 一、 or イ） at the beginning of a line is the number of a list item.
_ITEM_NUMBER = re.compile(r"[一二三四五六七八九十]{1,3}[、.．,)）\u3000 ]|[ぁ-んァ-ヶ甲乙丙丁][.．)）\u3000]")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_COLUMN_GAP = re.compile(r"(?<=[^\s>]) ?(?:\t| {2}|\u3000{2})(?=\s*+\S)")
_FENCE = re.compile(r"(?m)^[ \t>]*(?:`{3,}|~{3,})")


def join_lines(text: str) -> str:
    """Return a text without the line ends inside of Japanese paragraphs."""
    gaps = line_gaps(text)
    if not gaps:
        return text
    parts, position = [], 0
    for start, end in gaps:
        parts.append(text[position:start])
        position = end
    return "".join([*parts, text[position:]])


def line_gaps(text: str) -> list[tuple[int, int]]:
    """Return the ranges that `join_lines` removes: line ends with the blanks around them."""
    if "\n" not in text or text.isascii():
        return []
    gaps = [gap for gap in _candidates(text) if _is_inside_paragraph(text, *gap)]
    if gaps and ("```" in text or "~~~" in text):
        fences = [match.start() for match in _FENCE.finditer(text)]
        code = [*zip(fences[::2], [*fences[1::2], len(text)], strict=False)]
        gaps = [gap for gap in gaps if not any(start <= gap[0] < end for start, end in code)]
    return gaps


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    """Yield the line ends between two Japanese characters."""
    for match in _LINE_START.finditer(text):
        start = match.start()
        while start and text[start - 1] in " \t\r":
            start -= 1
        if start and _JAPANESE_CHAR.match(text, start - 1):
            yield start, match.end()


def _is_inside_paragraph(text: str, start: int, end: int) -> bool:
    gap = text[start:end]
    line = text[text.rfind("\n", 0, start) + 1 : start]
    next_end = text.find("\n", end)
    next_line = text[end : len(text) if next_end < 0 else next_end]
    if gap.startswith("  ") or _HEADING.match(line) or _ITEM_NUMBER.match(next_line):
        return False  # two spaces at its end make a line break in Markdown
    if next_line.rstrip().endswith((":", "：")):
        return False  # a label of what follows
    if (">" in gap) != line.lstrip().startswith(">"):
        return False  # a quote, and the answer to it
    is_row = "|" in line and "|" in next_line
    return not is_row and not (_COLUMN_GAP.search(line) and _COLUMN_GAP.search(next_line))
