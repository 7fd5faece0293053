"""Clean the titles that files carry in their properties."""

from __future__ import annotations

import re

from bunko.text.hidden_chars import remove_hidden_chars

_MAX_TITLE_CHARS = 300
# Titles that programs write when the author gave none.
_PLACEHOLDER = re.compile(
    r"(?i)(?:untitled|無題|microsoft (?:word|powerpoint|excel) - .*|.*\.(?:docx?|pptx?|xlsx?|tex|indd)"
    r"|(?:powerpoint )?(?:presentation|プレゼンテーション)\d*|(?:document|文書|book|workbook|スライド|slide) ?\d*)?"
)


def clean_title(title: str) -> str:
    """Return a title on one line, "" if a program made it up."""
    clean = " ".join(remove_hidden_chars(title).split())[:_MAX_TITLE_CHARS]
    return "" if _PLACEHOLDER.fullmatch(clean) else clean
