"""Clean names and descriptions that other people may have written, and remove hidden characters."""

from __future__ import annotations

import re
import unicodedata

# Controls, bidirectional and other format marks, surrogates and unassigned characters.
_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Cn")
# Marks that show nothing by themselves; a row of variation selectors can spell out a text.
_INVISIBLE_MARKS = frozenset("\u034f\u180b\u180c\u180d\u180f") | {chr(code) for code in range(0xFE00, 0xFE10)}

_AUTHOR_END = re.compile(r"[<(][^<>()\s@]+@[^<>()\s@]+[>)]\s*\Z")


def is_author(label: str) -> bool:
    """Return whether a label names somebody with an address: Taro <taro@example.com>."""
    return _AUTHOR_END.search(label) is not None


def clean_label(text: str, max_length: int) -> str:
    """Return a name or description as a person sees it: on one line, without invisible characters, not too long."""
    visible = "".join(
        char
        for char in remove_hidden_chars(" ".join(text.split()))
        if char not in _INVISIBLE_MARKS and unicodedata.category(char) not in _INVISIBLE_CATEGORIES
    )
    label = " ".join(visible.split())
    return label if len(label) <= max_length else f"{label[: max_length - 1].rstrip()}…"


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


# Zero-width and bidirectional marks, tag characters, and controls other than tab and line ends: invisible to a
# person, read by a model.
HIDDEN_CHAR = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def remove_hidden_chars(text: str) -> str:
    """Return the text as a person sees it."""
    return HIDDEN_CHAR.sub("", text)
