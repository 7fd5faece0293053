"""The terms of a document's chunks in, one blob out, and back: what a store keeps and an index is made from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_MAX_COUNT = np.iinfo(np.uint16).max


def pack_terms(chunks: Sequence[Sequence[int]]) -> bytes:
    """Return how many distinct keys each chunk has, then the keys, then how often each occurs."""
    keys = np.fromiter(chain.from_iterable(chunks), np.uint64)
    owners = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
    # One sort a document: sorting each chunk alone costs more in calls than in sorting.
    order = np.lexsort((keys, owners))
    keys, owners = keys[order], owners[order]
    new = np.flatnonzero(np.concatenate(([True], (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1]))))[: len(keys)]
    counts = np.minimum(np.diff(np.append(new, len(keys))), _MAX_COUNT).astype(np.uint16)
    sizes = np.bincount(owners[new], minlength=len(chunks)).astype(np.uint32)
    return len(chunks).to_bytes(4, "little") + sizes.tobytes() + keys[new].tobytes() + counts.tobytes()


def unpack_terms(blob: bytes) -> list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]]:
    """Return each chunk's distinct keys, sorted, and their counts."""
    number = int.from_bytes(blob[:4], "little")
    borders = [0, *np.cumsum(np.frombuffer(blob, np.uint32, number, 4)).tolist()]
    begin = 4 + 4 * number
    keys = np.frombuffer(blob, np.uint64, borders[-1], begin)
    counts = np.frombuffer(blob, np.uint16, borders[-1], begin + 8 * borders[-1])
    return [(keys[a:b], counts[a:b]) for a, b in itertools.pairwise(borders)]
