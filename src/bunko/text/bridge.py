"""Translate words between Japanese and English, and find synonyms through the translations.

The table was learned from translated texts (`training/bridge.py`) and is part of the package.
"""

from __future__ import annotations

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


class Meaning(NamedTuple):
    """A translation or a synonym of a word."""

    spelling: str
    weight: float  # 0…1


# A synonym counts half of its certainty; a less certain one is a different word.
_SYNONYM_DISCOUNT, _MIN_CERTAINTY, _MAX_SYNONYMS = 0.5, 0.5, 3


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


@lru_cache(4096)
def synonyms(spelling: str) -> tuple[Meaning, ...]:
    """Return words of the same language with the same translation: 休暇 is a holiday, and so is 休日."""
    weights: dict[str, float] = {}
    for meaning in meanings(spelling):
        for synonym in meanings(meaning.spelling):
            certainty = meaning.weight * synonym.weight
            if (
                synonym.spelling != spelling
                and certainty >= _MIN_CERTAINTY
                and _find(_load_table().unlike, pair_key(spelling, synonym.spelling)) is None
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
