"""Build, merge, save and load segments: immutable, searchable parts of an index.

A segment file is derived data: if it is damaged, the index is rebuilt from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.indexes.embedded import codes, postings, sentences
from bunko.indexes.embedded.codes import Codes
from bunko.indexes.embedded.postings import Postings
from bunko.indexes.embedded.sentences import Sentences
from bunko.indexes.moments import Moments
from bunko.runtime import array_file
from bunko.runtime.array_file import DamagedArrayFile
from bunko.text import ngrams
from bunko.text.line_joins import join_lines
from bunko.types.records import StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

__all__ = ["FORMAT", "DamagedArrayFile", "Segment", "build", "load", "merge", "merge_into"]

FORMAT = 5
_BATCH_ROWS = 8192
_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "chunk_ids": np.int64, "document_ids": np.int64, "order": np.uint64, "lengths": np.int32,
        "vectors": np.float32, **{f"codes.{code}": code_dtype for code, code_dtype in codes.DTYPES.items()},
        "sentences.starts": np.int64, "sentences.subwords": np.uint16,
        "words.keys": np.uint64, "words.starts": np.int64, "words.rows": np.int32, "words.counts": np.uint16,
        "grams.keys": np.uint64, "grams.starts": np.int64, "grams.rows": np.int32, "grams.counts": np.uint16,
    }.items()
}  # fmt: skip
_COLUMNS = ("chunk_ids", "document_ids", "order", "lengths")
_POSTINGS = ("words", "grams")
_POSTINGS_ARRAYS = ("keys", "starts", "rows", "counts")
_FLOAT_ARRAYS = [name for name, dtype in _DTYPES.items() if dtype.kind == "f"]


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks in import order, with their word and gram postings and their vectors."""

    chunk_ids: npt.NDArray[np.int64]
    document_ids: npt.NDArray[np.int64]
    order: npt.NDArray[np.uint64]  # sort keys among equal scores
    lengths: npt.NDArray[np.int32]  # in terms
    words: Postings
    grams: Postings  # of character n-grams, without counts
    vectors: Vectors  # zeros for a chunk without a vector; no columns if no chunk has one
    codes: Codes  # of the vectors; only in large segments
    sentences: Sentences
    stamp: dict[str, Any]

    def __len__(self) -> int:
        return len(self.chunk_ids)


def build(rows: Sequence[StoredChunk], dimension: int, stamp: dict[str, Any]) -> Segment:
    """Index rows; `dimension` is that of their vectors, 0 if there are none."""
    vectors = np.zeros((len(rows), dimension), np.float32)
    for index, row in enumerate(rows):
        if row.vector is not None and len(row.vector) == dimension:
            vectors[index] = row.vector
    # A vector of another size or without a direction cannot be compared: such a chunk is found by its words.
    vectors[~np.isfinite(vectors).all(axis=1)] = 0
    counts = np.concatenate([row.term_counts for row in rows] or [np.empty(0, np.uint16)])
    ends = np.cumsum([len(row.term_counts) for row in rows], dtype=np.int64)
    term_totals = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))[np.concatenate(([0], ends))]
    return Segment(
        chunk_ids=np.array([row.chunk_id for row in rows], np.int64),
        document_ids=np.array([row.document_id for row in rows], np.int64),
        order=np.array([row.tiebreak_order for row in rows], np.uint64),
        lengths=np.diff(term_totals).astype(np.int32),
        words=postings.build([row.term_keys for row in rows], [row.term_counts for row in rows]),
        grams=postings.Postings(*ngrams.invert([join_lines(row.text) for row in rows]), np.empty(0, np.uint16)),
        vectors=vectors,
        codes=codes.encode(vectors),
        sentences=sentences.collect(rows, dimension),
        stamp=stamp,
    )


def merge(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], stamp: dict[str, Any]) -> Segment:
    """Merge segments into one, without the rows that are no longer alive."""
    if len(segments) == 1 and alive[0] is None:
        return replace(segments[0], stamp=stamp)
    vectors = _concatenate_alive(segments, alive, "vectors")
    merged_sentences = Sentences(
        sentences.merged_starts(segments, alive), np.concatenate(list(sentences.alive_batches(segments, alive)))
    )
    sizes = [len(segment) for segment in segments]
    return Segment(
        **_merge_columns(segments, alive),
        words=postings.merge([segment.words for segment in segments], sizes, alive),
        grams=postings.merge([segment.grams for segment in segments], sizes, alive),
        vectors=vectors,
        codes=codes.encode(vectors, _merged_moments(segments, alive, len(vectors))),
        sentences=merged_sentences,
        stamp=stamp,
    )


def merge_into(
    path: Path,
    segments: Sequence[Segment],
    alive: Sequence[npt.NDArray[np.bool_] | None],
    stamp: dict[str, Any],
    *,
    durable: bool = True,
    mode: int | None = None,
) -> None:
    """Merge segments into a file; vectors and postings, which are the largest parts, are streamed."""
    dimension = segments[0].vectors.shape[1]
    rows = sum(
        len(segment) if mask is None else int(np.count_nonzero(mask))
        for segment, mask in zip(segments, alive, strict=True)
    )
    merged_codes = codes.encode_without_bytes(
        lambda: _vector_batches(segments, alive), (rows, dimension), _merged_moments(segments, alive, rows)
    )

    def coarse() -> Iterator[npt.NDArray[np.int8]]:
        return codes.byte_batches(_vector_batches(segments, alive), merged_codes.scales)

    starts = sentences.merged_starts(segments, alive)
    sizes = [len(segment) for segment in segments]
    words = postings.Merger([segment.words for segment in segments], sizes, alive)
    grams = postings.Merger([segment.grams for segment in segments], sizes, alive)
    merged = Segment(  # without the arrays that are streamed
        **_merge_columns(segments, alive),
        words=Postings(words.keys, words.starts, np.empty(0, np.int32), np.empty(0, np.uint16)),
        grams=Postings(grams.keys, grams.starts, np.empty(0, np.int32), np.empty(0, np.uint16)),
        vectors=np.empty((0, dimension), np.float32),
        codes=merged_codes,
        sentences=Sentences(starts, np.empty(0, np.uint16)),
        stamp=stamp,
    )
    streams: dict[str, npt.NDArray[Any] | array_file.ArrayStream] = {
        "vectors": array_file.ArrayStream((rows, dimension), np.float32, lambda: _vector_batches(segments, alive)),
        "codes.coarse": array_file.ArrayStream((len(merged_codes.scales), dimension), np.int8, coarse),
        "sentences.subwords": array_file.ArrayStream(
            (int(starts[-1]),), np.uint16, lambda: sentences.alive_batches(segments, alive)
        ),
        "words.rows": array_file.ArrayStream((int(words.starts[-1]),), np.int32, words.rows),
        "words.counts": array_file.ArrayStream((int(words.starts[-1]),), np.uint16, words.counts),
        "grams.rows": array_file.ArrayStream((int(grams.starts[-1]),), np.int32, grams.rows),
    }
    arrays = _arrays(merged) | streams
    array_file.save_arrays(path, arrays, format_version=FORMAT, stamp=stamp, durable=durable, mode=mode)


def _merge_columns(
    segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays with one value for each row, of the rows that are alive."""
    return {name: _concatenate_alive(segments, alive, name) for name in _COLUMNS}


def _concatenate_alive(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], name: str) -> Any:
    arrays = [getattr(segment, name) for segment in segments]
    return np.concatenate([array if mask is None else array[mask] for array, mask in zip(arrays, alive, strict=True)])


def _vector_batches(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]) -> Iterator[Vectors]:
    """Yield the vectors of the rows that are alive in batches."""
    for segment, mask in zip(segments, alive, strict=True):
        for start in range(0, len(segment), _BATCH_ROWS):
            batch = segment.vectors[start : start + _BATCH_ROWS]
            yield batch if mask is None else batch[mask[start : start + _BATCH_ROWS]]


def _merged_moments(
    segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], row_count: int
) -> Moments | None:
    """Return the moments of the rows that are alive, None if there are too few to need them."""
    if row_count < codes.BYTE_ROWS:
        return None
    return reduce(
        add,
        map(
            codes.alive_moments,
            (segment.vectors for segment in segments),
            (segment.codes for segment in segments),
            alive,
        ),
    )


def _arrays(segment: Segment) -> dict[str, npt.NDArray[Any]]:
    arrays: dict[str, npt.NDArray[Any]] = {
        **{name: getattr(segment, name) for name in _COLUMNS},
        "vectors": segment.vectors,
        **{f"codes.{name}": array for name, array in segment.codes._asdict().items()},
        "sentences.starts": segment.sentences.starts,
        "sentences.subwords": segment.sentences.subwords,
    }
    for part in _POSTINGS:
        for name in _POSTINGS_ARRAYS:
            arrays[f"{part}.{name}"] = getattr(getattr(segment, part), name)
    return arrays


def load(path: Path, *, check: bool = False) -> Segment:
    """Map a segment file; raise `DamagedArrayFile` if it is invalid, `FileNotFoundError` if it does not exist.

    The values in a large file are only checked with `check`; without it, an impossible one raises an error when used.
    """
    arrays, stamp = array_file.load_arrays(
        path, format_version=FORMAT, verify_checksum=check or None, check_values=_check_values
    )
    _check_shapes(arrays)
    words, grams = (Postings(*(arrays[f"{part}.{name}"] for name in _POSTINGS_ARRAYS)) for part in _POSTINGS)
    return Segment(
        chunk_ids=arrays["chunk_ids"],
        document_ids=arrays["document_ids"],
        order=arrays["order"],
        lengths=arrays["lengths"],
        words=words,
        grams=grams,
        vectors=arrays["vectors"],
        codes=Codes(*(arrays[f"codes.{name}"] for name in Codes._fields)),
        sentences=Sentences(arrays["sentences.starts"], arrays["sentences.subwords"]),
        stamp=stamp,
    )


def _check_shapes(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise if the arrays are not those of a segment, or do not fit together."""
    if {name: array.dtype for name, array in arrays.items()} != _DTYPES:
        raise DamagedArrayFile("The index file has other arrays than bunko writes")
    shapes = {name: array.shape for name, array in arrays.items()}
    row_count = shapes["chunk_ids"]
    fits = (
        len(row_count) == 1
        and all(shapes[name] == row_count for name in _COLUMNS)
        and len(shapes["vectors"]) == 2
        and shapes["vectors"][:1] == row_count
        and codes.fit_shape(Codes(*(arrays[f"codes.{name}"] for name in Codes._fields)), shapes["vectors"])
        and shapes["sentences.starts"] == (row_count[0] + 1,)
        and len(shapes["sentences.subwords"]) == 1
        and int(arrays["sentences.starts"][0]) == 0
        and int(arrays["sentences.starts"][-1]) == shapes["sentences.subwords"][0]
        and bool((np.diff(arrays["sentences.starts"]) >= 0).all())
        and bool((arrays["lengths"] >= 0).all())
    )
    for part in _POSTINGS:
        keys, starts, rows, counts = (shapes[f"{part}.{name}"] for name in _POSTINGS_ARRAYS)
        fits = fits and len(keys) == 1 and starts == (keys[0] + 1,) and len(rows) == 1
        fits = fits and counts == (rows if part == "words" else (0,))
        fits = fits and int(arrays[f"{part}.starts"][-1]) == rows[0]
    if not fits:
        raise DamagedArrayFile("The index file has arrays that do not fit together")


def _check_values(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise if a value is impossible; reads everything but the coarse vectors."""
    _check_shapes(arrays)
    row_count = len(arrays["chunk_ids"])
    is_valid = bool(all(np.isfinite(arrays[name]).all() for name in _FLOAT_ARRAYS))
    is_valid = is_valid and sentences.fit_together(Sentences(arrays["sentences.starts"], arrays["sentences.subwords"]))
    for part in _POSTINGS:
        keys, starts, rows = (arrays[f"{part}.{name}"] for name in ("keys", "starts", "rows"))
        is_valid = is_valid and bool((keys[1:] > keys[:-1]).all() and (starts[1:] >= starts[:-1]).all())
        is_valid = is_valid and int(starts[0]) == 0
        is_valid = is_valid and (not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < row_count))
    if not is_valid:
        raise DamagedArrayFile("The index file has impossible values")
