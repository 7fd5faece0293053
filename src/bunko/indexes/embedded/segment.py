"""Build, merge, save and load segments: immutable, searchable parts of an index.

A segment file is derived data: if it is damaged, the index is rebuilt from the store.
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
from bunko.text.line_joins import join_lines

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

__all__ = ["COARSE_ROWS", "FORMAT", "DamagedArrayFile", "Segment", "build", "load", "merge", "merge_into"]

FORMAT = 1
# From this size on, scanning bytes and rescoring is faster than scanning floats, which no longer fit the CPU cache.
COARSE_ROWS = 32_768
_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks in import order, with their word and gram postings and their vectors."""

    chunk_ids: npt.NDArray[np.int64]
    document_ids: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int32]
    words: Postings
    grams: Postings
    vectors: Vectors  # zeros for a chunk without a vector; no columns if no chunk has one
    coarse: npt.NDArray[np.int8]  # the vectors as bytes, a quarter of the size; only in large segments
    scales: npt.NDArray[np.float32]  # the factor of each coarse row
    stamp: dict[str, Any]

    def __len__(self) -> int:
        return len(self.chunk_ids)


def build(rows: Sequence[StoredChunk], dimension: int, stamp: dict[str, Any]) -> Segment:
    """Index rows; `dimension` is that of their vectors, 0 if there are none."""
    vectors = np.zeros((len(rows), dimension), np.float32)
    for index, row in enumerate(rows):
        if row.vector is not None and dimension:
            vectors[index] = row.vector
    return Segment(
        np.array([row.chunk_id for row in rows], np.int64),
        np.array([row.document_id for row in rows], np.int64),
        np.array([row.tiebreak_order for row in rows], np.uint64),
        np.array([int(row.term_counts.sum()) for row in rows], np.int32),
        postings.build([row.term_keys for row in rows], [row.term_counts for row in rows]),
        postings.build_presence(*ngrams.occurrences([join_lines(row.text) for row in rows])),
        vectors,
        *_quantize(vectors),
        stamp,
    )


def merge(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], stamp: dict[str, Any]) -> Segment:
    """Merge segments into one, without the rows that are no longer alive."""
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
    """Merge segments into a file; the vectors, which are the largest part, are streamed."""
    dimension = segments[0].vectors.shape[1]
    rows = sum(
        len(segment) if mask is None else int(np.count_nonzero(mask))
        for segment, mask in zip(segments, alive, strict=True)
    )
    has_coarse = rows >= COARSE_ROWS and dimension > 0
    scales = (
        np.concatenate([_scales(batch) for batch in _vector_batches(segments, alive)])
        if has_coarse
        else np.empty(0, np.float32)
    )

    def coarse() -> Iterator[npt.NDArray[np.int8]]:
        start = 0
        for batch in _vector_batches(segments, alive) if has_coarse else ():
            yield _round_to_int8(batch, scales[start : start + len(batch)])
            start += len(batch)

    arrays = _arrays(
        _merge_with_vectors(
            segments, alive, np.empty((0, dimension), np.float32), np.empty((0, dimension), np.int8), scales, stamp
        )
    )
    streams: dict[str, npt.NDArray[Any] | array_file.ArrayStream] = {
        "vectors": array_file.ArrayStream((rows, dimension), np.float32, lambda: _vector_batches(segments, alive)),
        "coarse": array_file.ArrayStream((rows if has_coarse else 0, dimension), np.int8, coarse),
    }
    array_file.save_arrays(path, arrays | streams, format_version=FORMAT, stamp=stamp, durable=durable)


def _merge_with_vectors(
    segments: Sequence[Segment],
    alive: Sequence[npt.NDArray[np.bool_] | None],
    vectors: Vectors,
    coarse: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    stamp: dict[str, Any],
) -> Segment:
    sizes = [len(segment) for segment in segments]
    return Segment(
        _concatenate_alive(segments, alive, "chunk_ids"),
        _concatenate_alive(segments, alive, "document_ids"),
        _concatenate_alive(segments, alive, "order"),
        _concatenate_alive(segments, alive, "lengths"),
        postings.merge([segment.words for segment in segments], sizes, alive),
        postings.merge([segment.grams for segment in segments], sizes, alive),
        vectors,
        coarse,
        scales,
        stamp,
    )


def _concatenate_alive(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], name: str) -> Any:
    arrays = [getattr(segment, name) for segment in segments]
    return np.concatenate([array if mask is None else array[mask] for array, mask in zip(arrays, alive, strict=True)])


def _vector_batches(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]) -> Iterator[Vectors]:
    """Yield the vectors of the rows that are alive in batches."""
    for segment, mask in zip(segments, alive, strict=True):
        for start in range(0, len(segment), _BATCH_ROWS):
            batch = segment.vectors[start : start + _BATCH_ROWS]
            yield batch if mask is None else batch[mask[start : start + _BATCH_ROWS]]


def _quantize(vectors: Vectors) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    if len(vectors) < COARSE_ROWS or not vectors.shape[1]:
        return np.empty((0, vectors.shape[1]), np.int8), np.empty(0, np.float32)
    coarse, scales = np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32)
    # In batches: all rows at once would need three times the memory.
    for start in range(0, len(vectors), _BATCH_ROWS):
        batch = vectors[start : start + _BATCH_ROWS]
        scales[start : start + _BATCH_ROWS] = batch_scales = _scales(batch)
        coarse[start : start + _BATCH_ROWS] = _round_to_int8(batch, batch_scales)
    return coarse, scales


def _scales(vectors: Vectors) -> npt.NDArray[np.float32]:
    scales: npt.NDArray[np.float32] = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / 127
    return scales


def _round_to_int8(vectors: Vectors, scales: npt.NDArray[np.float32]) -> npt.NDArray[np.int8]:
    return np.round(vectors / scales[:, None]).astype(np.int8)


def _arrays(segment: Segment) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        "chunk_ids": segment.chunk_ids,
        "document_ids": segment.document_ids,
        "order": segment.order,
        "lengths": segment.lengths,
        "vectors": segment.vectors,
        "coarse": segment.coarse,
        "scales": segment.scales,
    }
    for lane in ("words", "grams"):
        lane_postings: Postings = getattr(segment, lane)
        for name in ("keys", "starts", "rows", "counts"):
            arrays[f"{lane}.{name}"] = getattr(lane_postings, name)
    return arrays


def load(path: Path, *, check: bool = False) -> Segment:
    """Map a segment file; raise `DamagedArrayFile` if it is invalid, `FileNotFoundError` if it does not exist."""
    arrays, stamp = array_file.load_arrays(path, format_version=FORMAT, verify_checksum=check or None)
    lanes = {
        lane: Postings(*(arrays[f"{lane}.{name}"] for name in ("keys", "starts", "rows", "counts")))
        for lane in ("words", "grams")
    }
    return Segment(
        arrays["chunk_ids"],
        arrays["document_ids"],
        arrays["order"],
        arrays["lengths"],
        lanes["words"],
        lanes["grams"],
        arrays["vectors"],
        arrays["coarse"],
        arrays["scales"],
        stamp,
    )
