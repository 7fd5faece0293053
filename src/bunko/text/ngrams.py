"""Split text into n-grams: pairs of Japanese characters, triples of letters.

They back up the index of words: however a dictionary splits a text, its characters are found. A key contains the
characters, 21 bits each below a set top bit, so that all n-grams with the same first character are neighbours.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.text.normalise import normalise

if TYPE_CHECKING:
    import numpy.typing as npt

VERSION = 1

_TOP_BIT = 1 << 63
_HIRAGANA, _DENSE, _LETTER = 1, 2, 3
# Scripts without spaces: a word can begin and end anywhere, so pairs of characters stand for words.
_DENSE_RANGES = (
    (0x0E01, 0x0E5B), (0x1100, 0x11FF), (0x3005, 0x3007), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x3130, 0x318F),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF),
)  # fmt: skip
_LETTER_RANGES = (
    (0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2AF), (0x370, 0x3FF),
    (0x400, 0x52F), (0x531, 0x587), (0x5D0, 0x5EA), (0x620, 0x669), (0x904, 0x97F), (0x1E00, 0x1FFF),
)  # fmt: skip
_HIRAGANA_RANGES = ((0x3041, 0x3096), (0x309D, 0x309F))
# An n-gram and its text as one number, for sorting: two characters of which any may be dense, a letter, the text.
_DENSE_BITS, _LETTER_BITS, _TEXT_BITS = 18, 13, 15
_FIRST, _SECOND = _DENSE_BITS + _LETTER_BITS + _TEXT_BITS, _LETTER_BITS + _TEXT_BITS
MAX_TEXTS = 1 << _TEXT_BITS
# Characters whose arrays are in memory at a time: the system takes longer to provide larger ones than to fill them.
GROUP_CHARS = 20_000


class Gram(NamedTuple):
    """An n-gram of a query."""

    spelling: str
    key: int
    is_distinctive: bool  # False for pairs of hiragana, which are mostly grammar


def gram_keys(text: str) -> npt.NDArray[np.uint64]:
    """Return the distinct keys of a text, sorted."""
    return np.unique(occurrences([text])[0])


def occurrences(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return the key of every n-gram of the texts, and the index of its text; batched, since calls are expensive."""
    grams, text_indices = _pack(texts, (42, 21, 0))
    return grams | np.uint64(_TOP_BIT), text_indices.astype(np.int32)


def invert(
    texts: Sequence[str],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the keys of up to `MAX_TEXTS` texts, sorted; where the list of each begins; and the texts that have it."""
    if len(texts) > MAX_TEXTS:
        raise ValueError(f"cannot invert more than {MAX_TEXTS} texts at a time")
    packed = np.concatenate([np.empty(0, np.uint64), *_packed_grams(texts)])
    packed.sort()
    packed = packed[_is_new(packed)]
    starts = np.flatnonzero(_is_new(packed >> np.uint64(_TEXT_BITS)))
    grams = packed[starts]
    keys = np.uint64(_TOP_BIT) | grams >> np.uint64(_FIRST) << np.uint64(42)
    keys |= (grams >> np.uint64(_SECOND) & np.uint64((1 << _DENSE_BITS) - 1)) << np.uint64(21)
    keys |= grams >> np.uint64(_TEXT_BITS) & np.uint64((1 << _LETTER_BITS) - 1)
    rows = (packed & np.uint64(MAX_TEXTS - 1)).astype(np.int32)
    return keys, np.append(starts, len(packed)).astype(np.int64), rows


def _packed_grams(texts: Sequence[str]) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield every n-gram and the index of its text as one number: they are sorted ten times as fast as two arrays."""
    start = chars = 0
    for end, text in enumerate(texts, 1):
        chars += len(text)
        if chars < GROUP_CHARS and end < len(texts):
            continue
        grams, text_indices = _pack(texts[start:end], (_FIRST, _SECOND, _TEXT_BITS))
        grams |= text_indices + np.uint32(start)
        yield grams
        start, chars = end, 0


def _is_new(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return for each value whether it differs from the one before it."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new


def _pack(texts: Sequence[str], shifts: Sequence[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Return every n-gram of the texts as one number, its three characters shifted, and the index of its text."""
    lower = [normalise(text).lower() for text in texts]
    # NUL on both sides of every text, so that no n-gram spans two texts.
    joined = f"\0{chr(0).join(lower)}\0"
    points = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _char_kinds().take(points, mode="clip")
    kinds[(points >= 0x20000) & (points < 0x40000)] = _DENSE
    is_letter, is_dense = kinds == _LETTER, (kinds == _DENSE) | (kinds == _HIRAGANA)
    letters, denses = points * is_letter, points * is_dense
    pairs, triples = np.flatnonzero(is_dense), np.flatnonzero(is_letter)
    first, second, third = map(np.uint64, shifts)
    grams = np.concatenate((denses[pairs], letters[triples - 1])).astype(np.uint64)
    grams <<= first - second
    grams |= np.concatenate((denses[pairs + 1], letters[triples]))
    grams <<= second - third
    grams[len(pairs) :] |= letters[triples + 1]
    grams <<= third
    text_indices = np.repeat(np.arange(len(lower), dtype=np.uint32), [len(text) + 1 for text in lower])
    return grams, text_indices[np.concatenate((pairs, triples)) - 1]


def query_grams(text: str) -> list[Gram]:
    """Return the distinct n-grams of a short text in order: the same keys, without the overhead of arrays."""
    grams_by_key: dict[int, Gram] = {}
    for run in _RUNS.findall(normalise(text).lower()):
        if _LETTER_START.match(run):
            padded = f"\0{run}\0"
            for index in range(len(run)):
                a, b, c = padded[index], padded[index + 1], padded[index + 2]
                key = _TOP_BIT | ord(a) << 42 | ord(b) << 21 | ord(c)
                grams_by_key[key] = Gram((a + b + c).strip("\0"), key, is_distinctive=False)
        elif len(run) == 1:
            key = _TOP_BIT | ord(run) << 42
            grams_by_key[key] = Gram(run, key, is_distinctive=False)
        else:
            for a, b in itertools.pairwise(run):
                key = _TOP_BIT | ord(a) << 42 | ord(b) << 21
                grams_by_key[key] = Gram(a + b, key, a not in _HIRAGANA_CHARS or b not in _HIRAGANA_CHARS)
    return list(grams_by_key.values())


def distinctive_grams(text: str) -> list[Gram]:
    """Return those of `query_grams` that are distinctive, without building the others."""
    pairs = {
        first + second: None
        for run in _DENSE_RUNS.findall(normalise(text).lower())
        for first, second in itertools.pairwise(run)
        if first not in _HIRAGANA_CHARS or second not in _HIRAGANA_CHARS
    }
    return [Gram(pair, _TOP_BIT | ord(pair[0]) << 42 | ord(pair[1]) << 21, True) for pair in pairs]


def is_single_char(gram: Gram) -> bool:
    """Return whether an n-gram is a single dense character, which matches all pairs that begin with it."""
    return gram.key & (1 << 42) - 1 == 0


def is_hiragana(gram: Gram) -> bool:
    """Return whether an n-gram is all hiragana, as most grammatical words are."""
    return _HIRAGANA_CHARS.issuperset(gram.spelling)


def pair_key_range(character: str) -> tuple[int, int]:
    """Return the range of keys (start, end) of the pairs that begin with a character."""
    return _TOP_BIT | ord(character) << 42, _TOP_BIT | (ord(character) + 1) << 42


def _char_class(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_DENSE_RUN = rf"[{_char_class(_HIRAGANA_RANGES)}{_char_class(_DENSE_RANGES)}\U00020000-\U0003ffff]+"
_DENSE_RUNS = re.compile(_DENSE_RUN)
_RUNS = re.compile(rf"{_DENSE_RUN}|[{_char_class(_LETTER_RANGES)}]+")
_LETTER_START = re.compile(rf"[{_char_class(_LETTER_RANGES)}]")
_HIRAGANA_CHARS = frozenset(chr(point) for first, last in _HIRAGANA_RANGES for point in range(first, last + 1))


@cache
def _char_kinds() -> npt.NDArray[np.uint8]:
    table = np.zeros(0x10001, np.uint8)
    for kind, ranges in ((_LETTER, _LETTER_RANGES), (_DENSE, _DENSE_RANGES), (_HIRAGANA, _HIRAGANA_RANGES)):
        for first, last in ranges:
            table[first : last + 1] = kind
    return table
