"""Pack the subwords of the sentences of a text into one array, as a library stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords

# Lengths are stored in this unit: the largest half float is 65,504.
_LENGTH_UNIT = np.float32(1024)


def pack_sentences(ids: Sequence[npt.NDArray[np.int32]], lengths: npt.NDArray[np.float32]) -> SentenceSubwords:
    """Return the subwords of each sentence and the length of its vector as one array.

    It holds the number of sentences, how many subwords each has, the lengths as half floats, and the subwords.
    """
    halves = (lengths / _LENGTH_UNIT).astype(np.float16).view(np.uint16)
    return np.concatenate([[len(ids), *map(len, ids)], halves, *ids]).astype(np.uint16)


def decode_sentences(data: bytes) -> SentenceSubwords:
    """Return a packed array from its bytes; raise `ValueError` if its parts do not fit together."""
    packed = np.frombuffer(data, np.uint16)
    # Plain numbers: a text has too few sentences for array operations to pay.
    sizes = packed[1 : 1 + int(packed[0])].tolist() if len(packed) else []
    if not sizes or 0 in sizes or 1 + 2 * len(sizes) + sum(sizes) != len(packed):
        raise ValueError(len(packed))
    return packed


def unpack_sentences(
    texts: Sequence[SentenceSubwords],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.uint16], npt.NDArray[np.float32], npt.NDArray[np.uint16]]:
    """Return how many sentences each text has, how many subwords each sentence has and its length, and the subwords.

    Raise `ValueError` if the parts of the texts do not fit together.
    """
    packed, text_sizes = np.concatenate(texts), np.array([len(text) for text in texts])
    begins = np.cumsum(text_sizes) - text_sizes
    counts = packed[begins].astype(np.intp) if text_sizes.all() else np.zeros_like(begins)
    if not counts.all() or (1 + 2 * counts > text_sizes).any():
        raise ValueError(counts)
    is_subword = np.ones(len(packed), np.bool_)
    is_subword[begins] = False
    places = np.repeat(begins + 1 - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    is_subword[places] = False
    sizes = packed[places]
    places += np.repeat(counts, counts)
    is_subword[places] = False
    subwords = packed[is_subword]
    if not sizes.all() or int(sizes.sum(dtype=np.intp)) != len(subwords):
        raise ValueError(sizes)
    return counts, sizes, packed[places].view(np.float16) * _LENGTH_UNIT, subwords
