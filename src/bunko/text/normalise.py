"""Normalise the width and composition of text, so that ＡＰＩ is API and ｶﾞ is ガ."""

from __future__ import annotations

import unicodedata


def normalise(text: str) -> str:
    """Return the NFKC form; case is kept, since identifiers are split at case changes later."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


def strip_accents(word: str) -> str:
    """Return a Western word without accents: Café and cafe are the same word to a user."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if unicodedata.category(char) != "Mn"))


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates escaped, so that it can be stored and printed."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
