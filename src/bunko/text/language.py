"""Detect whether text is Japanese or English by its characters."""

from __future__ import annotations

import re
from typing import Literal

from bunko.text.characters import JAPANESE_CHARS

_JAPANESE_CHAR = re.compile(rf"[{JAPANESE_CHARS}]")
_LATIN_LETTER = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> Literal["ja", "en", ""]:
    """Return the main language of a text; a Japanese character counts as much as four Latin letters."""
    japanese, latin = len(_JAPANESE_CHAR.findall(text)), len(_LATIN_LETTER.findall(text))
    if not japanese and not latin:
        return ""
    return "ja" if japanese * 4 >= latin else "en"
