"""Encode the terms of a document's chunks as a blob for the store, and decode it."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# Chunks whose terms are in memory at a time: a document may have a million terms.
_BATCH_CHUNKS = 1000
_MAX_COUNT = np.iinfo(np.uint16).max
# Up to about this many terms, calls of NumPy take longer than counting in Python; a memo has forty.
FEW_TERMS = 300


def pack_terms(chunks: Iterable[Sequence[int]]) -> bytes:
    """Encode the number of distinct keys of each chunk, then the keys, then their counts."""
    remaining = iter(chunks)
    batch = list(islice(remaining, _BATCH_CHUNKS))
    if len(batch) < _BATCH_CHUNKS and sum(map(len, batch)) <= FEW_TERMS:
        return _pack_few_terms(batch)
    parts = []
    while batch:
        parts.append(_count_terms(batch))
        batch = list(islice(remaining, _BATCH_CHUNKS))
    sizes, keys, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return len(sizes).to_bytes(4, "little") + sizes.tobytes() + keys.tobytes() + counts.tobytes()


def _pack_few_terms(chunks: Sequence[Sequence[int]]) -> bytes:
    sizes: list[int] = []
    keys: list[int] = []
    counts: list[int] = []
    for chunk in chunks:
        key_counts = Counter(chunk)
        chunk_keys = sorted(key_counts)
        sizes.append(len(chunk_keys))
        keys += chunk_keys
        counts += map(key_counts.__getitem__, chunk_keys)
    return struct.pack(f"<I{len(sizes)}I{len(keys)}Q{len(keys)}H", len(sizes), *sizes, *keys, *counts)


def _count_terms(
    chunks: Sequence[Sequence[int]],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Return the number of distinct keys of each chunk, the keys, and their counts."""
    keys = np.fromiter(chain.from_iterable(chunks), np.uint64)
    chunk_indices = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])
    # One sort for many chunks: for separate ones the calls cost more than the sorting.
    order = np.lexsort((keys, chunk_indices))
    keys, chunk_indices = keys[order], chunk_indices[order]
    run_starts = np.flatnonzero(
        np.concatenate(([True], (keys[1:] != keys[:-1]) | (chunk_indices[1:] != chunk_indices[:-1])))
    )[: len(keys)]
    counts = np.minimum(np.diff(np.append(run_starts, len(keys))), _MAX_COUNT).astype(np.uint16)
    sizes = np.bincount(chunk_indices[run_starts], minlength=len(chunks)).astype(np.uint32)
    return sizes, keys[run_starts], counts


def chunk_count(blob: bytes) -> int:
    """Return the number of chunks in a blob, of which the first four bytes are enough."""
    return int.from_bytes(blob[:4], "little")


def unpack_terms(blob: bytes) -> list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]]:
    """Return the sorted distinct keys of each chunk, and their counts."""
    count = chunk_count(blob)
    if count == 1:
        return [unpack_chunk_terms(blob, 0)]
    offsets = [0, *np.cumsum(np.frombuffer(blob, np.uint32, count, 4)).tolist()]
    keys_start = 4 + 4 * count
    keys = np.frombuffer(blob, np.uint64, offsets[-1], keys_start)
    counts = np.frombuffer(blob, np.uint16, offsets[-1], keys_start + 8 * offsets[-1])
    return [(keys[start:end], counts[start:end]) for start, end in itertools.pairwise(offsets)]


def unpack_chunk_terms(blob: bytes, index: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Return the sorted distinct keys of one chunk, and their counts."""
    count = chunk_count(blob)
    if len(blob) < 4 + 4 * count:
        raise ValueError("the blob is truncated")
    sizes = struct.unpack_from(f"<{count}I", blob, 4)
    first, size = sum(sizes[:index]), sizes[index]
    if not size:
        return np.empty(0, np.uint64), np.empty(0, np.uint16)
    keys_start = 4 + 4 * count
    counts_start = keys_start + 8 * sum(sizes)
    keys = np.frombuffer(blob, np.uint64, size, keys_start + 8 * first)
    return keys, np.frombuffer(blob, np.uint16, size, counts_start + 2 * first)
