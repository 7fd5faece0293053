"""Find where sentences end in Japanese and English text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from bunko.text.language import JAPANESE_CHARS

_CLOSERS = r"""[)\]}"'”’»）」』】〉》〕］｝〟]*+"""
# The leading character class lets the engine skip to the next candidate; look-behinds then distinguish them.
_SENTENCE_END = (
    r"[。｡！？…‥．!?.\n\r](?:"
    # Full-width ends: always, but a full-width point between digits is a decimal point.
    rf"(?<=[。｡！？…‥．])(?<!．(?=\d))[。｡！？…‥．!?.]*+{_CLOSERS}"
    # Half-width ends: before white space; ! and ? also before Japanese. Not inside URLs, numbers, operators.
    rf"|(?<=[!?])[!?.]*+{_CLOSERS}(?=\s|\Z|[^\x00-\x7f])"
    rf"|(?<=\.)[!?.]*+{_CLOSERS}(?=\s|\Z)"
    # An empty line ends text without punctuation, such as a title.
    r"|(?<=\n)(?=[^\S\n\r]*+[\n\r])"
    r"|(?<=\r)(?:\n|(?!\n))(?=[^\S\n\r]*+[\n\r])"
    r")"
)
_ABBREVIATION = (
    r"(?i:e\.?g|i\.?e|etc|cf|vs|viz|ca|approx|resp|al|mrs?|ms|dr|prof|st|[sj]r|rev|gen|inc|ltd|co|corp|dept|est"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|[a-hj-z](?:\.[a-z])*)"
)
_NUMBERED_ABBREVIATION = r"(?i:nos?|figs?|eqs?|sec|ch|vol|pp?|ver|ed|art|para|tab)"
# A list item, a heading, a table row or a quotation starts a new sentence, however the line before it ended, and so
# does the text below 【来週】 or a line that ends with a colon.
_ITEM_BORDER = r"\n(?=[ \t\u3000]*(?:[-*+・•◦●■□◆◇○#>|【]|\d{1,3}[.)．）]|[^\n]*:\s*(?:\n|\Z)))|(?<=[】:])\n"
# A heading ends with its line: text may come right below it.
_HEADING = r"(?m)^[ \t]{0,3}#{1,6}[ \t][^\n]*(?=\n)"
# ！ and ？ also end a sentence before a Latin word, unlike the half-width ! and ?.
_JAPANESE_SENTENCE_END = rf"(?<=[{JAPANESE_CHARS}][!?])(?=[A-Za-z0-9])"
LIST_MARKER = re.compile(r"^[\s\u3000]*(?:[-*+・•◦●■□◆◇○#>|]+(?:\s*\[[ xX]\])?|\d{1,3}[.)．）])[\s\u3000]*")
_LAST_WORD = re.compile(r"[^\s(\[{\"'「『（]*\Z")
# Vectors of shorter passages say little, and of longer ones too many things at once. See docs/quality.md.
_MIN_PASSAGE_CHARS, _MAX_PASSAGE_CHARS = 20, 300
# A text has no more passages than about this, however short its sentences are: each takes a quarter of a kilobyte.
_MAX_PASSAGES = 32
_WORD_REACH = 12  # characters before a point that can hold an abbreviation


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compile an expression at first use: a search that cuts no text does not need them."""
    return re.compile(expression)


def sentence_ends(text: str) -> list[int]:
    """Return the offsets just after each sentence end, closing brackets and quotes included.

    Text after the last sentence end has no offset.
    """
    ends = []
    for match in _pattern(_SENTENCE_END).finditer(text):
        start = match.start()
        mark = text[start]
        if mark == "." and match.end() - start == 1 and _is_abbreviation(text, start):
            continue
        ends.append(start if mark in "\n\r" else match.end())
    return list(dict.fromkeys(ends))


def sentence_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the sentences of a text with lists, headings and tables; together they are all of it."""
    borders = {0, *sentence_ends(text), len(text)}
    for expression in (_ITEM_BORDER, _JAPANESE_SENTENCE_END):
        borders.update(match.start() for match in _pattern(expression).finditer(text))
    borders.update(match.end() for match in _pattern(_HEADING).finditer(text))
    yield from pairwise(sorted(borders))


def passage_ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the passages of a text that have vectors of their own: about a sentence each.

    A short sentence belongs to the passage of the next one, and a long one is cut. White space at the ends is left out.
    """
    ranges = []
    start = 0
    min_chars = max(_MIN_PASSAGE_CHARS, len(text) // _MAX_PASSAGES)
    for end in (*sentence_ends(text), len(text)):
        is_last = end == len(text)
        stripped = text[start:end].strip()
        if not stripped or (len(stripped) < min_chars and not is_last):
            continue
        first = text.find(stripped[0], start)
        last = first + len(stripped)
        if len(stripped) <= _MAX_PASSAGE_CHARS:
            ranges.append((first, last))
        else:
            ranges += [
                (position, min(position + _MAX_PASSAGE_CHARS, last))
                for position in range(first, last, _MAX_PASSAGE_CHARS)
            ]
        start = end
    return ranges


def _is_abbreviation(text: str, point: int) -> bool:
    """Return whether a point belongs to an abbreviation or a list number, and does not end a sentence."""
    if point + 1 == len(text):
        return False
    word_limit = max(0, point - _WORD_REACH)
    match = _LAST_WORD.search(text, word_limit, point)
    word = match[0] if match else ""
    if _pattern(_NUMBERED_ABBREVIATION).fullmatch(word):
        return text[point + 1 : point + 3].lstrip()[:1].isdigit()
    if word.isdigit():
        before = text[word_limit : point - len(word)].rstrip(" \t")
        return before.endswith(("\n", "\r")) if before else word_limit == 0
    return _pattern(_ABBREVIATION).fullmatch(word) is not None
