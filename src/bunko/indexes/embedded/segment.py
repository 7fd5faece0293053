"""Rows of chunks in, one immutable, searchable piece of an index out, in memory or in a file.

A file is derived: whatever is wrong with it, it is rebuilt from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko import array_file
from bunko.array_file import DamagedArrayFile
from bunko.indexes.embedded import postings
from bunko.indexes.embedded.postings import Postings
from bunko.records import StoredChunk
from bunko.text import ngrams

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

__all__ = ["COARSE_ROWS", "FORMAT", "DamagedArrayFile", "Segment", "build", "load", "merge", "merge_into"]

FORMAT = 1
# From here on a scan of bytes with rescoring beats a scan of floats, which no longer fits the processor's cache.
COARSE_ROWS = 32_768
_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks in the order they were imported, with both lanes' lists and their vectors."""

    chunk_ids: npt.NDArray[np.int64]
    document_ids: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    words: Postings
    grams: Postings
    vectors: Vectors  # a row of zeros where a chunk has none; no columns where no chunk has any
    coarse: npt.NDArray[np.int8]  # the same in a quarter of the space, for segments so large that it pays
    scales: npt.NDArray[np.float32]  # what a coarse row is to be multiplied with
    stamp: dict[str, Any]

    def __len__(self) -> int:
        return len(self.chunk_ids)


def build(rows: Sequence[StoredChunk], dimension: int, stamp: dict[str, Any]) -> Segment:
    """Index rows; `size` is the dimension of their vectors, 0 where there are none."""
    vectors = np.zeros((len(rows), dimension), np.float32)
    for number, row in enumerate(rows):
        if row.vector is not None and dimension:
            vectors[number] = row.vector
    return Segment(
        np.array([row.chunk_id for row in rows], np.int64),
        np.array([row.document_id for row in rows], np.int64),
        np.array([row.tiebreak_order for row in rows], np.uint64),
        np.array([int(row.term_counts.sum()) for row in rows], np.int32),
        postings.build([row.term_keys for row in rows], [row.term_counts for row in rows]),
        postings.build_presence(*ngrams.occurrences([row.text for row in rows])),
        vectors,
        *_quantize(vectors),
        stamp,
    )


def merge(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], stamp: dict[str, Any]) -> Segment:
    """Join segments into one, leaving out the rows that are no longer alive."""
    if len(segments) == 1 and alive[0] is None:
        return replace(segments[0], stamp=stamp)
    vectors = _concatenate_alive(segments, alive, "vectors")
    return _merge_with_vectors(segments, alive, vectors, *_quantize(vectors), stamp)


def merge_into(
    path: Path,
    segments: Sequence[Segment],
    alive: Sequence[npt.NDArray[np.bool_] | None],
    stamp: dict[str, Any],
    *,
    durable: bool = True,
) -> None:
    """Join segments into a file; their vectors, most of what there is, are never in memory all at once."""
    size = segments[0].vectors.shape[1]
    rows = sum(
        len(part) if keep is None else int(np.count_nonzero(keep)) for part, keep in zip(segments, alive, strict=True)
    )
    many = rows >= COARSE_ROWS and size > 0
    scales = (
        np.concatenate([_scales(some) for some in _vector_batches(segments, alive)])
        if many
        else np.empty(0, np.float32)
    )

    def coarse() -> Iterator[npt.NDArray[np.int8]]:
        at = 0
        for some in _vector_batches(segments, alive) if many else ():
            yield _round_to_int8(some, scales[at : at + len(some)])
            at += len(some)

    found = _arrays(
        _merge_with_vectors(
            segments, alive, np.empty((0, size), np.float32), np.empty((0, size), np.int8), scales, stamp
        )
    )
    streams: dict[str, npt.NDArray[Any] | array_file.ArrayStream] = {
        "vectors": array_file.ArrayStream((rows, size), np.float32, lambda: _vector_batches(segments, alive)),
        "coarse": array_file.ArrayStream((rows if many else 0, size), np.int8, coarse),
    }
    array_file.save_arrays(path, found | streams, format_version=FORMAT, stamp=stamp, durable=durable)


def _merge_with_vectors(
    segments: Sequence[Segment],
    alive: Sequence[npt.NDArray[np.bool_] | None],
    vectors: Vectors,
    coarse: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    stamp: dict[str, Any],
) -> Segment:
    sizes = [len(part) for part in segments]
    return Segment(
        _concatenate_alive(segments, alive, "chunk_ids"),
        _concatenate_alive(segments, alive, "document_ids"),
        _concatenate_alive(segments, alive, "order"),
        _concatenate_alive(segments, alive, "lengths"),
        postings.merge([part.words for part in segments], sizes, alive),
        postings.merge([part.grams for part in segments], sizes, alive),
        vectors,
        coarse,
        scales,
        stamp,
    )


def _concatenate_alive(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], name: str) -> Any:
    found = [getattr(part, name) for part in segments]
    return np.concatenate([a if keep is None else a[keep] for a, keep in zip(found, alive, strict=True)])


def _vector_batches(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]) -> Iterator[Vectors]:
    """Return the vectors of the rows that are alive, some rows at a time."""
    for part, keep in zip(segments, alive, strict=True):
        for at in range(0, len(part), _BATCH_ROWS):
            some = part.vectors[at : at + _BATCH_ROWS]
            yield some if keep is None else some[keep[at : at + _BATCH_ROWS]]


def _quantize(vectors: Vectors) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    if len(vectors) < COARSE_ROWS or not vectors.shape[1]:
        return np.empty((0, vectors.shape[1]), np.int8), np.empty(0, np.float32)
    coarse, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    # Some rows at a time: all at once would be in memory three times more.
    for at in range(0, len(vectors), _BATCH_ROWS):
        some = vectors[at : at + _BATCH_ROWS]
        scales[at : at + _BATCH_ROWS] = own = _scales(some)
        coarse[at : at + _BATCH_ROWS] = _round_to_int8(some, own)
    return coarse, scales


def _scales(vectors: Vectors) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / 127
    return found


def _round_to_int8(vectors: Vectors, scales: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    return np.round(vectors / scales[:, None]).astype(np.int8)


def _arrays(segment: Segment) -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {
        "chunk_ids": segment.chunk_ids,
        "document_ids": segment.document_ids,
        "order": segment.order,
        "lengths": segment.lengths,
        "vectors": segment.vectors,
        "coarse": segment.coarse,
        "scales": segment.scales,
    }
    for lane in ("words", "grams"):
        part: Postings = getattr(segment, lane)
        for name in ("keys", "starts", "rows", "counts"):
            found[f"{lane}.{name}"] = getattr(part, name)
    return found


def load(path: Path, *, check: bool = False) -> Segment:
    """Map a segment's file; raise `Damaged` if it is not one, `FileNotFoundError` if there is none."""
    found, stamp = array_file.load_arrays(path, format_version=FORMAT, verify_checksum=check or None)
    lanes = {
        lane: Postings(*(found[f"{lane}.{name}"] for name in ("keys", "starts", "rows", "counts")))
        for lane in ("words", "grams")
    }
    return Segment(
        found["chunk_ids"],
        found["document_ids"],
        found["order"],
        found["lengths"],
        lanes["words"],
        lanes["grams"],
        found["vectors"],
        found["coarse"],
        found["scales"],
        stamp,
    )
