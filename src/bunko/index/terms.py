"""The terms of a document's chunks in, one blob out, and back: what a store keeps and an index is made from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_MOST = np.iinfo(np.uint16).max


def pack(chunks: Sequence[Sequence[int]]) -> bytes:
    """Return how many distinct keys each chunk has, then the keys, then how often each occurs."""
    keys, counts = [], []
    for chunk in chunks:
        distinct, many = np.unique(np.array(chunk, np.uint64), return_counts=True)
        keys.append(distinct)
        counts.append(np.minimum(many, _MOST).astype(np.uint16))
    sizes = np.array([len(chunks), *map(len, keys)], np.uint32)
    return sizes.tobytes() + b"".join(k.tobytes() for k in keys) + b"".join(c.tobytes() for c in counts)


def unpack(blob: bytes) -> list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]]:
    """Return each chunk's distinct keys, sorted, and their counts."""
    number = int.from_bytes(blob[:4], "little")
    borders = [0, *np.cumsum(np.frombuffer(blob, np.uint32, number, 4)).tolist()]
    begin = 4 + 4 * number
    keys = np.frombuffer(blob, np.uint64, borders[-1], begin)
    counts = np.frombuffer(blob, np.uint16, borders[-1], begin + 8 * borders[-1])
    return [(keys[a:b], counts[a:b]) for a, b in itertools.pairwise(borders)]
