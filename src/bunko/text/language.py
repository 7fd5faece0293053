"""Detect whether text is Japanese or English by its characters."""

from __future__ import annotations

import re
from typing import Literal

# Kanji, hiragana and katakana with their iteration and length marks; no punctuation, no middle dot.
JAPANESE_CHARS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
HALF_WIDTH_KANA = "\uff66-\uff9f"


_JAPANESE_CHAR = re.compile(rf"[{JAPANESE_CHARS}]")
_LATIN_LETTER = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> Literal["ja", "en", ""]:
    """Return the main language of a text; a Japanese character counts as much as four Latin letters."""
    japanese, latin = len(_JAPANESE_CHAR.findall(text)), len(_LATIN_LETTER.findall(text))
    if not japanese and not latin:
        return ""
    return "ja" if japanese * 4 >= latin else "en"
