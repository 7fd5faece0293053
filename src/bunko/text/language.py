"""Text in, its language out: Japanese or English, told by its characters."""

from __future__ import annotations

import re
from typing import Literal

from bunko.text.analyzer import JAPANESE_CHARS

_JAPANESE_CHAR = re.compile(rf"[{JAPANESE_CHARS}]")
_LATIN_LETTER = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> Literal["ja", "en", ""]:
    """Return the language most of a text is in; one Japanese character says as much as four Latin letters."""
    japanese, latin = len(_JAPANESE_CHAR.findall(text)), len(_LATIN_LETTER.findall(text))
    if not japanese and not latin:
        return ""
    return "ja" if japanese * 4 >= latin else "en"
