"""Name the characters of Japanese words, as ranges of a regular expression."""

from __future__ import annotations

# Kanji, hiragana and katakana with their iteration and length marks; no punctuation, no middle dot.
JAPANESE_CHARS = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
HALF_WIDTH_KANA = "\uff66-\uff9f"
