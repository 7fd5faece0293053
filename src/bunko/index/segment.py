"""Rows of chunks in, one immutable, searchable piece of an index out, in memory or in a file.

A file is a header (JSON: generation, versions, where each array lies) and the arrays, mapped into memory as they are.
It is derived: written to a temporary name, synced, renamed. Whatever is wrong with it, it is rebuilt from the store.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.failpoints import reach
from bunko.index import postings
from bunko.index.postings import Postings
from bunko.protocols import StoredChunk
from bunko.text import grams

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

FORMAT = 1
_MAGIC = b"bunko.segment\n\0\0"
_ALIGN = 64
# Checksumming a file costs about 1 ms a megabyte; a large one is only checked for its shape when it is opened.
_CHECKED_BYTES = 16 * 2**20


# From here on a scan of bytes with rescoring beats a scan of floats, which no longer fits the processor's cache.
COARSE_ROWS = 32_768


class Damaged(Exception):
    """A derived file cannot be used; its reader rebuilds it."""


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


def build(rows: Sequence[StoredChunk], size: int, stamp: dict[str, Any]) -> Segment:
    """Index rows; `size` is the dimension of their vectors, 0 where there are none."""
    vectors = np.zeros((len(rows), size), np.float32)
    for number, row in enumerate(rows):
        if row.vector is not None and size:
            vectors[number] = row.vector
    return Segment(
        np.array([row.chunk_id for row in rows], np.int64),
        np.array([row.document_id for row in rows], np.int64),
        np.array([row.order for row in rows], np.uint64),
        np.array([int(row.counts.sum()) for row in rows], np.int32),
        postings.build([row.keys for row in rows], [row.counts for row in rows]),
        postings.build_present(*grams.occurrences([row.text for row in rows])),
        vectors,
        *_coarse(vectors),
        stamp,
    )


def merge(parts: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None], stamp: dict[str, Any]) -> Segment:
    """Join segments into one, leaving out the rows that are no longer alive."""

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate([a if keep is None else a[keep] for a, keep in zip(arrays, alive, strict=True)])

    sizes = [len(part) for part in parts]
    vectors = joined("vectors")
    return Segment(
        joined("chunk_ids"),
        joined("document_ids"),
        joined("order"),
        joined("lengths"),
        postings.merge([part.words for part in parts], sizes, alive),
        postings.merge([part.grams for part in parts], sizes, alive),
        vectors,
        *_coarse(vectors),
        stamp,
    )


def _coarse(vectors: Vectors) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    if len(vectors) < COARSE_ROWS or not vectors.shape[1]:
        return np.empty((0, vectors.shape[1]), np.int8), np.empty(0, np.float32)
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / 127
    return np.round(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


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


def save(segment: Segment, path: Path) -> None:
    """Write a segment so that the file is either whole or not there."""
    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(segment).items()}
    layout, offset, checksum = {}, 0, 0
    for name, array in arrays.items():
        layout[name] = {"dtype": array.dtype.str, "shape": array.shape, "at": offset}
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
        checksum = zlib.crc32(array.data if array.nbytes else b"", checksum)
    header = json.dumps(
        {"format": FORMAT, "stamp": segment.stamp, "arrays": layout, "bytes": offset, "checksum": checksum}
    ).encode()
    head = _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(head + bytes(-len(head) % _ALIGN))
            reach("derived.header")
            for array in arrays.values():
                if array.nbytes:
                    file.write(array.data)
                file.write(bytes(-array.nbytes % _ALIGN))
            reach("derived.arrays")
            file.flush()
            os.fsync(file.fileno())
        reach("derived.synced")
        temporary.replace(path)
        reach("derived.renamed")
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def load(path: Path, *, check: bool = False) -> Segment:
    """Map a segment's file; raise `Damaged` if it is not one, `FileNotFoundError` if there is none."""
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC) + 16)
        if head[: len(_MAGIC)] != _MAGIC or len(head) < len(_MAGIC) + 16:
            raise Damaged(f"{path.name} is not an index file")
        length = int.from_bytes(head[-16:-8], "little")
        if length > 2**20:
            raise Damaged(f"{path.name} has a broken header")
        header = file.read(length)
        if zlib.crc32(header) != int.from_bytes(head[-8:], "little"):
            raise Damaged(f"{path.name} has a broken header")
        told = json.loads(header)
        if told["format"] != FORMAT:
            raise Damaged(f"{path.name} has format {told['format']}, this bunko writes {FORMAT}")
        begin = -(-(len(head) + length) // _ALIGN) * _ALIGN
        size = os.fstat(file.fileno()).st_size
        if size != begin + told["bytes"]:
            raise Damaged(f"{path.name} is cut off")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, place in told["arrays"].items():
        count = int(np.prod(place["shape"], dtype=np.int64))
        array = np.frombuffer(data, np.dtype(place["dtype"]), count, begin + place["at"])
        arrays[name] = array.reshape(place["shape"])
    if check or size <= _CHECKED_BYTES:
        checksum = 0
        for array in arrays.values():
            checksum = zlib.crc32(array.data if array.nbytes else b"", checksum)
        if checksum != told["checksum"]:
            raise Damaged(f"{path.name} does not have the content that was written")
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
        told["stamp"],
    )
