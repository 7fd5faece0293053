"""A word in, words that mean it out, of the other language and by way of it, each with how sure that is.

The table is our own, learnt from translated texts (`training/bridge.py`), and lies in the package.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bunko.text import analyzer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TABLE_PATH = Path(__file__).parent.parent / "models" / "bridge.bin"
FORMAT = 1


class Meaning(NamedTuple):
    """A word of the other language."""

    spelling: str
    weight: float  # 0…1


# A word that shares a sure meaning is worth half of it; one that is less sure is another word.
_SYNONYM_DISCOUNT, _MIN_CERTAINTY, _MAX_SYNONYMS = 0.5, 0.5, 3


class _BridgeTable(NamedTuple):
    """Words by their number, sorted, and for each the places of its meanings among all words."""

    keys: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.uint32]
    targets: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.uint32]
    letters: npt.NDArray[np.uint8]


@lru_cache(4096)
def meanings(spelling: str) -> tuple[Meaning, ...]:
    """Return what a word may be in the other language, the surest first; nothing if it is not known."""
    table = _load_table()
    key = analyzer.term_key(spelling)
    at = int(table.keys.searchsorted(key))
    if at == len(table.keys) or int(table.keys[at]) != key:
        return ()
    begin, end = int(table.starts[at]), int(table.starts[at + 1])
    found = []
    for target, weight in zip(table.targets[begin:end].tolist(), table.weights[begin:end].tolist(), strict=True):
        first = int(table.ends[target - 1]) if target else 0
        found.append(Meaning(bytes(table.letters[first : table.ends[target]]).decode(), weight / 255))
    return tuple(found)


@lru_cache(4096)
def synonyms(spelling: str) -> tuple[Meaning, ...]:
    """Return words of the same language that mean the same in the other one: 休暇 is a holiday, and so is 休日."""
    found: dict[str, float] = {}
    for there in meanings(spelling):
        for back in meanings(there.spelling):
            shared = there.weight * back.weight
            if back.spelling != spelling and shared >= _MIN_CERTAINTY:
                found[back.spelling] = max(found.get(back.spelling, 0.0), _SYNONYM_DISCOUNT * shared)
    best = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:_MAX_SYNONYMS]
    return tuple(Meaning(*one) for one in best)


@cache
def _load_table() -> _BridgeTable:
    from bunko import array_file

    found, _ = array_file.load_arrays(TABLE_PATH, format_version=FORMAT, verify_checksum=False)
    return _BridgeTable(*(found[name] for name in _BridgeTable._fields))
