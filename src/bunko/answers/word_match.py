"""Compare words: are they the same, translations, synonyms, or the same name in other letters?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bunko.answers.clauses import MIN_BEGINNING, MIN_TRANSLATION_WEIGHT, Clause, Word, match_keys
from bunko.text import bridge
from bunko.text.romaji import fold_romaji

# How certain a match is.
TRANSLATION, SYNONYM, SAME_BEGINNING, SHARED_CHARACTERS = 0.9, 0.7, 0.8, 0.6


def best_match(word: Word, clauses: Sequence[Clause]) -> tuple[float, Word | None]:
    """Return the word of some clauses that is most like a word, and how certain it is the same."""
    best: tuple[float, Word | None] = (0.0, None)
    for clause in clauses:
        for other in clause.candidates(word):
            strength = match_strength(word, other)
            if strength > best[0]:
                best = (strength, other)
                if strength == 1.0:
                    return best
    return best


def match_strength(word: Word, other: Word) -> float:
    """Return the certainty, 0 to 1, that two words mean the same."""
    return 0.0 if match_keys(word).isdisjoint(match_keys(other)) else compare_words(word, other)


@lru_cache(20_000)
def compare_words(word: Word, other: Word) -> float:
    """Return the certainty that two words mean the same, with a common key or without."""
    if not set(word.spellings).isdisjoint(other.spellings):
        return 1.0
    if word.is_name or other.is_name:
        return _name_strength(word, other)
    if word.is_japanese != other.is_japanese:
        return TRANSLATION if _translates(word, other) or _translates(other, word) else 0.0
    if _are_synonyms(word, other) or _are_synonyms(other, word):
        return SYNONYM
    return _spelling_strength(word, other)


def _name_strength(word: Word, other: Word) -> float:
    """Compare names: by their letters, or as they are read."""
    if word.is_japanese != other.is_japanese:
        folded = {fold_romaji(spelling) for spelling in other.spellings}
        if not folded.isdisjoint(fold_romaji(spelling) for spelling in word.spellings):
            return 1.0
        if _translates(word, other) or _translates(other, word):
            return TRANSLATION
        return 0.0
    if not word.is_japanese and _begin_alike(word.spellings[0], other.spellings[0]):
        return SAME_BEGINNING
    if (
        word.is_japanese
        and (word.text in other.text or other.text in word.text)
        and min(len(word.text), len(other.text)) > 1
    ):
        return TRANSLATION
    return 0.0


def _begin_alike(first: str, second: str) -> bool:
    """Return whether one word begins with the other, as PostgreSQL with Postgres; TM-300 and TM-300X are different."""
    is_long = min(len(first), len(second)) >= MIN_BEGINNING
    return is_long and first.isalpha() and second.isalpha() and (first.startswith(second) or second.startswith(first))


def _translates(word: Word, other: Word) -> bool:
    return any(
        meaning.spelling in other.spellings and meaning.weight >= MIN_TRANSLATION_WEIGHT
        for spelling in word.spellings
        for meaning in bridge.meanings(spelling)
    )


def _are_synonyms(word: Word, other: Word) -> bool:
    return any(
        meaning.spelling in other.spellings for spelling in word.spellings for meaning in bridge.synonyms(spelling)
    )


def _spelling_strength(word: Word, other: Word) -> float:
    first, second = word.spellings[0], other.spellings[0]
    if word.is_japanese:
        kanji = {char for char in first if "一" <= char <= "鿿"}
        shared = kanji & set(second)
        if shared and (len(shared) > 1 or first in second or second in first):
            return SAME_BEGINNING
        return SHARED_CHARACTERS if shared and (word.is_predicate or other.is_predicate) else 0.0
    length = min(len(first), len(second))
    if length >= MIN_BEGINNING and first[: max(MIN_BEGINNING, length - 2)] == second[: max(MIN_BEGINNING, length - 2)]:
        return SAME_BEGINNING
    return 0.0
