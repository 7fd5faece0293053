"""Clean names and descriptions that other people may have written."""

from __future__ import annotations

import unicodedata

from bunko.text.hidden_chars import remove_hidden_chars

# Controls, bidirectional and other format marks, surrogates and unassigned characters.
_INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Cn")
# Marks that show nothing by themselves; a row of variation selectors can spell out a text.
_INVISIBLE_MARKS = frozenset("\u034f\u180b\u180c\u180d\u180f") | {chr(code) for code in range(0xFE00, 0xFE10)}


def clean_label(text: str, max_length: int) -> str:
    """Return a name or description as a person sees it: on one line, without invisible characters, not too long."""
    visible = "".join(
        char
        for char in remove_hidden_chars(" ".join(text.split()))
        if char not in _INVISIBLE_MARKS and unicodedata.category(char) not in _INVISIBLE_CATEGORIES
    )
    label = " ".join(visible.split())
    return label if len(label) <= max_length else f"{label[: max_length - 1].rstrip()}…"
