"""Break text into the rows of a terminal, where wide characters take two cells, and choose those with the matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

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
