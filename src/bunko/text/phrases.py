"""Find exact phrases in a text: width, case and line ends do not count, as in the index."""

from __future__ import annotations

import re
from functools import lru_cache

from bunko.text.language import JAPANESE_CHARS
from bunko.text.line_joins import join_lines
from bunko.text.normalise import normalise

_WESTERN_CHAR = rf"[^\W_{JAPANESE_CHARS}]"


def fold_text(text: str) -> str:
    """Return a text in the form in which phrases are compared."""
    return " ".join(normalise(join_lines(text)).lower().split())


def has_phrase(folded_text: str, phrase: str) -> bool:
    """Return whether a folded text contains a phrase; a Western word at its ends must be whole.

    Japanese has no spaces between words, so a Japanese phrase is found wherever its characters occur.
    """
    folded, pattern = _compile(phrase)
    return folded in folded_text and pattern.search(folded_text) is not None


@lru_cache(256)
def _compile(phrase: str) -> tuple[str, re.Pattern[str]]:
    folded = fold_text(phrase)
    before = rf"(?<!{_WESTERN_CHAR})" if re.match(_WESTERN_CHAR, folded) else ""
    after = rf"(?!{_WESTERN_CHAR})" if folded and re.match(_WESTERN_CHAR, folded[-1]) else ""
    return folded, re.compile(f"{before}{re.escape(folded)}{after}")
