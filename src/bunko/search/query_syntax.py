"""Read the operators of a query: "a phrase" must be in a text, -word must not."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from bunko.text.language import JAPANESE_CHARS

# Keyboards and input methods write straight, curly and full-width quotes.
_QUOTES = '"“”＂'
# Beside quotes is a blank, Japanese or the end of a sentence; those of code are not operators.
_NOT_BEFORE, _NOT_AFTER = r"[^\s\u3000-\U0010ffff]", r"[^\s\u3000-\U0010ffff,.;:!?]"
_JAPANESE_CHAR = re.compile(f"[{JAPANESE_CHARS}]")
_MIN_EXCLUDED_LETTERS = 3  # people search for commands: rm -rf, docker run -it
_SENTENCE_ENDS = ".,;:!?、。"


class ParsedQuery(NamedTuple):
    """A query without its operators."""

    words: str  # to rank by, with those of the phrases
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def parse_query(query: str) -> ParsedQuery:
    """Return the words, phrases and exclusions of a query; one without operators is returned as it is.

    A hyphen excludes only at the beginning of a word of three letters or more, or of one in Japanese: --amend, -rf, -10
    and re-render are words.
    """
    if "-" not in query and not any(quote in query for quote in _QUOTES):
        return ParsedQuery(query)
    phrases: list[str] = []
    excluded: list[str] = []

    def remove_operator(match: re.Match[str]) -> str:
        phrase, word = match["phrase"], (match["word"] or "").rstrip(_SENTENCE_ENDS)
        if phrase is not None and phrase.strip():
            (excluded if match["minus"] else phrases).append(phrase.strip())
            return "" if match["minus"] else phrase
        if len(word) >= _MIN_EXCLUDED_LETTERS or _JAPANESE_CHAR.match(word):
            excluded.append(word)
            return ""
        return match[0]

    words = _operators().sub(remove_operator, query)
    if not phrases and not excluded:
        return ParsedQuery(query)
    return ParsedQuery(" ".join(words.split()), tuple(phrases), tuple(excluded))


@cache
def _operators() -> re.Pattern[str]:
    # Takes milliseconds to compile, and few queries have operators.
    return re.compile(
        rf"(?:(?P<minus>(?<!\S)-)|(?<!{_NOT_BEFORE}))[{_QUOTES}](?P<phrase>[^{_QUOTES}]+)[{_QUOTES}](?!{_NOT_AFTER})"
        rf"|(?<!\S)-(?P<word>[^\W\d_][^\s{_QUOTES}]*)"
    )
