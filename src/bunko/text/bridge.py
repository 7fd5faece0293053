"""Translate words between Japanese and English, and find synonyms through the translations.

The table was learned from translated texts (`training/bridge.py`) and is part of the package.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bunko.runtime import array_file
from bunko.text import analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TABLE_PATH = Path(__file__).parent.parent / "models" / "bridge.bin"
FORMAT = 2
# Of a word for who or what does something: reducer, generator, operator.
AGENT_ENDINGS = frozenset(("er", "or", "ator"))


class Meaning(NamedTuple):
    """A translation or a synonym of a word."""

    spelling: str
    weight: float  # 0…1


# A synonym counts half of its certainty; a less certain one is a different word.
_SYNONYM_DISCOUNT, _MIN_CERTAINTY, _MAX_SYNONYMS = 0.5, 0.9, 3


# The halves of a long word in katakana: a shorter half is too often a piece of a name.
_MIN_HALF_CHARS = 3
_KATAKANA = re.compile("[ァ-ヺー]+")


class _BridgeTable(NamedTuple):
    """Sorted word keys, and for each word the indices of its translations in the list of all words.

    `unlike` has the sorted keys of pairs of words that share a translation without being synonyms.
    """

    keys: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.uint32]
    targets: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.uint32]
    letters: npt.NDArray[np.uint8]
    unlike: npt.NDArray[np.uint64]


@lru_cache(4096)
def meanings(spelling: str) -> tuple[Meaning, ...]:
    """Return the translations of a word, most certain first, or () if it is unknown."""
    table = _load_table()
    row = _find(table.keys, analyzer.term_key(spelling))
    if row is None:
        return ()
    start, end = table.starts.item(row), table.starts.item(row + 1)
    results = []
    for target, weight in zip(table.targets[start:end].tolist(), table.weights[start:end].tolist(), strict=True):
        word_start = table.ends.item(target - 1) if target else 0
        letters = table.letters[word_start : table.ends.item(target)].tobytes()
        results.append(Meaning(letters.decode(), weight / 255))
    return tuple(results)


def is_katakana_run(spelling: str) -> bool:
    """Return whether a word may be two loanwords, as データフェッチ is."""
    return len(spelling) >= 2 * _MIN_HALF_CHARS and _KATAKANA.fullmatch(spelling) is not None


def halves(spelling: str) -> tuple[str, ...]:
    """Return the two loanwords that a word without translations consists of, if both surely mean their origins."""
    if is_katakana_run(spelling) and not meanings(spelling):
        for size in range(_MIN_HALF_CHARS, len(spelling) - _MIN_HALF_CHARS + 1):
            words = spelling[:size], spelling[size:]
            if all(map(_means_origin, words)):
                return words
    return ()


def _means_origin(word: str) -> bool:
    """Return whether a word is a loanword that is translated by the English word it comes from."""
    terms = analyzer.terms(word)
    if len(terms) != 2 or terms[0].spelling != word or terms[1].role != "loanword":
        return False
    weights = dict(meanings(word))
    return weights.get(terms[1].spelling, 0.0) >= _MIN_CERTAINTY


def form_spelling(word: str, stem: str) -> str:
    """Return the spelling that an English word has in the table: restor/ation if its form has its own translations.

    Who does something has no others: a trainer is no train.
    """
    ending = form_ending(word, stem)
    spelling = f"{stem}/{ending}"
    if ending in AGENT_ENDINGS or _find(_load_table().keys, analyzer.term_key(spelling)) is not None:
        return spelling
    return stem


def form_ending(word: str, stem: str) -> str:
    """Return what a word has after its stem, "" for the forms of a plain noun or verb, "ing" for parked and parking."""
    if not word.isalpha():
        return ""
    word = word.lower()
    size = next((size for size, pair in enumerate(zip(word, stem, strict=False)) if pair[0] != pair[1]), len(stem))
    ending = word[size:]
    if len(ending) > 2 and size == len(stem) and ending[0] == stem[-1]:  # setting
        ending = ending[1:]
    if not ending.endswith("ss"):
        ending = ending.removesuffix("s")
    if ending in ("", "e", "y", "i", "ie"):
        return ""
    for inflection in ("ing", "ed", "e", "d"):
        if ending.endswith(inflection):
            return ending.removesuffix(inflection) or "ing"
    return ending


def part_spelling(spelling: str, *, is_after: bool, is_before: bool) -> str:
    """Return the spelling of a word that stands beside others: a single kanji there is not the word that it is alone.

    再 in 再起動 is 再-, 票 in 住民票 is -票.
    """
    if len(spelling) > 1 or not "\u3400" <= spelling <= "\u9fff" or not (is_after or is_before):
        return spelling
    return f"-{spelling}" if is_after else f"{spelling}-"


@lru_cache(4096)
def synonyms(spelling: str) -> tuple[Meaning, ...]:
    """Return words of the same language with the same translation: 休暇 is a holiday, and so is 休日."""
    weights: dict[str, float] = {}
    word = spelling.strip("-").partition("/")[0]
    for meaning in meanings(spelling):
        for synonym in meanings(meaning.spelling):
            certainty = meaning.weight * synonym.weight
            if (
                synonym.spelling != word
                and certainty >= _MIN_CERTAINTY
                and _find(_load_table().unlike, pair_key(word, synonym.spelling)) is None
            ):
                weights[synonym.spelling] = max(weights.get(synonym.spelling, 0.0), _SYNONYM_DISCOUNT * certainty)
    best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_MAX_SYNONYMS]
    return tuple(Meaning(*item) for item in best)


def pair_key(first: str, second: str) -> int:
    """Return the key of two words, in any order."""
    return analyzer.term_key(first) ^ analyzer.term_key(second)


def _find(sorted_keys: npt.NDArray[np.uint64], key: int) -> int | None:
    """Return the position of a key, None if it is not there."""
    # As a key of the array's own type: NumPy would convert the whole array to compare it with a Python integer.
    position = int(sorted_keys.searchsorted(sorted_keys.dtype.type(key)))
    return position if position < len(sorted_keys) and sorted_keys.item(position) == key else None


@cache
def _load_table() -> _BridgeTable:
    arrays, _ = array_file.load_arrays(TABLE_PATH, format_version=FORMAT, verify_checksum=False)
    return _BridgeTable(*(arrays[name] for name in _BridgeTable._fields))
