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
) -> tuple[list[int], npt.NDArray[np.uint16], npt.NDArray[np.float32], npt.NDArray[np.uint16]]:
    """Return how many sentences each text has, how many subwords each sentence has and its length, and the subwords."""
    counts = [text.item(0) for text in texts]
    pairs = list(zip(texts, counts, strict=True))
    sizes = np.concatenate([text[1 : 1 + count] for text, count in pairs])
    lengths = np.concatenate([text[1 + count : 1 + 2 * count] for text, count in pairs]).view(np.float16) * _LENGTH_UNIT
    return counts, sizes, lengths, np.concatenate([text[1 + 2 * count :] for text, count in pairs])
