"""Words and clauses as they are compared, and keys that tell which of them can match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from bunko.answers.quantities import Quantity
from bunko.text import bridge
from bunko.text.language import JAPANESE_CHARS
from bunko.text.romaji import fold_romaji

MIN_TRANSLATION_WEIGHT = 0.2
MIN_BEGINNING = 5  # letters that two words must share
_NAME_WEIGHT = 1.5
_JAPANESE = re.compile(rf"[{JAPANESE_CHARS}]")

MatchKey = tuple[str, str]  # the kind of the key, and the letters


@dataclass(frozen=True, slots=True)
class Word:
    """A content word of a clause."""

    text: str  # as it is written
    spellings: tuple[str, ...]  # lemma or stem, and the origin of a loanword
    is_name: bool = False
    is_negated: bool = False
    is_predicate: bool = False

    def __hash__(self) -> int:
        return hash(self.text)  # words are compared very often, and few share a text

    @property
    def weight(self) -> float:
        """How much the word counts."""
        return _NAME_WEIGHT if self.is_name else 1.0

    @property
    def is_japanese(self) -> bool:
        """Whether the word is written in Japanese characters."""
        return _JAPANESE.match(self.text) is not None


@dataclass(frozen=True)
class Clause:
    """A part of a sentence that makes one claim."""

    text: str
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]
    negations: int
    topic: Word | None = None  # what the clause is about: its first word, in Japanese the one before は or が

    @property
    def is_empty(self) -> bool:
        """Whether the clause claims nothing that can be looked up."""
        return not self.words and not self.quantities

    @cached_property
    def japanese_count(self) -> int:
        """How many of the words are Japanese."""
        return sum(word.is_japanese for word in self.words)

    @cached_property
    def _positions(self) -> dict[MatchKey, list[int]]:
        """Where the words with each key are."""
        positions: dict[MatchKey, list[int]] = {}
        for position, word in enumerate(self.words):
            for key in match_keys(word):
                positions.setdefault(key, []).append(position)
        return positions

    def candidates(self, word: Word) -> Sequence[Word]:
        """Return the words of the clause, in order, that can match a word; most clauses have none."""
        keys, positions = match_keys(word), self._positions
        if positions.keys().isdisjoint(keys):
            return ()
        return [self.words[position] for position in sorted({p for key in keys for p in positions.get(key, ())})]

    @property
    def names(self) -> tuple[Word, ...]:
        """The names in the clause."""
        return tuple(word for word in self.words if word.is_name)


@lru_cache(20_000)
def match_keys(word: Word) -> frozenset[MatchKey]:
    """Return keys of a word: two words without a common one do not match, which most pairs need not be compared for.

    They are its spellings and their translations and synonyms as they sound, the beginning of a Western word, and the
    kanji and pairs of characters of a Japanese one.
    """
    spellings = {*word.spellings}
    for spelling in word.spellings:
        spellings |= {
            meaning.spelling for meaning in bridge.meanings(spelling) if meaning.weight >= MIN_TRANSLATION_WEIGHT
        }
        spellings |= {meaning.spelling for meaning in bridge.synonyms(spelling)}
    keys = {("sound", fold_romaji(spelling)) for spelling in spellings}
    for first in word.spellings[:1]:
        if word.is_japanese:
            keys |= {("kanji", char) for char in first if "一" <= char <= "鿿"}
            keys |= {("pair", char + following) for char, following in pairwise(word.text)}
        elif len(first) >= MIN_BEGINNING:
            keys.add(("beginning", first[:MIN_BEGINNING]))
    return frozenset(keys)
