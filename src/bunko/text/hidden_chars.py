"""Remove characters that hide or reorder what a reader sees."""

from __future__ import annotations

import re

# Zero-width and bidirectional marks, tag characters, and controls other than tab and line ends: invisible to a
# person, read by a model.
HIDDEN_CHAR = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def remove_hidden_chars(text: str) -> str:
    """Return the text as a person sees it."""
    return HIDDEN_CHAR.sub("", text)
