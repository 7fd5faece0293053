"""Raw text in, text in one width and composition out, so that ＡＰＩ is API and ｶﾞ is ガ."""

from __future__ import annotations

import unicodedata


def normalise(text: str) -> str:
    """Return the NFKC form, case kept: identifiers are split at case borders later."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


def strip_accents(word: str) -> str:
    """Return a Western word without accents: Café and cafe are one word to whoever types it."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if unicodedata.category(c) != "Mn"))


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates made visible, so that it can be stored and printed."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
