"""Named arrays in, one file out that is whole or not there; mapped into memory as it lies when it is read.

A file is a header (JSON: what it is, where each array lies) and the arrays. Whoever wrote it can write it again: a file
that is not what was written is `Damaged`, never a wrong answer.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.failpoints import reach

if TYPE_CHECKING:
    import numpy.typing as npt

_MAGIC = b"bunko.segment\n\0\0"
_ALIGN = 64
# Checksumming a file costs about 1 ms a megabyte; a large one is only checked for its shape when it is opened.
_CHECKED_BYTES = 16 * 2**20


class Damaged(Exception):
    """A file cannot be used; its reader makes it anew."""


class Stream(NamedTuple):
    """An array that is never whole in memory: its shape, and what gives its rows, some at a time."""

    shape: tuple[int, ...]
    dtype: npt.DTypeLike
    pieces: Callable[[], Iterable[npt.NDArray[Any]]]


def save(
    path: Path,
    arrays: Mapping[str, npt.NDArray[Any] | Stream],
    *,
    format: int,
    stamp: dict[str, Any],
    durable: bool = True,
) -> None:
    """Write arrays so that the file is either whole or not there; what is needed for a moment need not be durable."""
    layout, offset = {}, 0
    for name, array in arrays.items():
        dtype = np.dtype(array.dtype)
        layout[name] = {"dtype": dtype.str, "shape": array.shape, "at": offset}
        offset += -(-math.prod(array.shape) * dtype.itemsize // _ALIGN) * _ALIGN
    told = {"format": format, "stamp": stamp, "arrays": layout, "bytes": offset}
    # The checksum is known when everything is written: room for the largest is kept for it.
    room = len(_head(told | {"checksum": 2**32}))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(bytes(-(-room // _ALIGN) * _ALIGN))
            checksum = 0
            for name, array in arrays.items():
                written = 0
                for piece in array.pieces() if isinstance(array, Stream) else (array,):
                    data = np.ascontiguousarray(piece, np.dtype(array.dtype)).data if piece.size else b""
                    checksum = zlib.crc32(data, checksum)
                    file.write(data)
                    written += piece.nbytes
                if written != math.prod(array.shape) * np.dtype(array.dtype).itemsize:
                    raise ValueError(f"{name} has {written} bytes, and not those of its shape {array.shape}")
                file.write(bytes(-written % _ALIGN))
            reach("derived.arrays")
            file.seek(0)
            file.write(_head(told | {"checksum": checksum}, room))
            reach("derived.header")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        reach("derived.synced")
        temporary.replace(path)
        reach("derived.renamed")
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _head(told: dict[str, Any], room: int = 0) -> bytes:
    header = json.dumps(told).encode()
    before = len(_MAGIC) + 16
    header += b" " * (room - before - len(header))
    return _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header


def load(path: Path, *, format: int, check: bool | None = None) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Map a file; raise `Damaged` if it is not one, `FileNotFoundError` if there is none.

    `check` says whether to compare the content too; by default that is done where it is cheap.
    """
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
        if told["format"] != format:
            raise Damaged(f"{path.name} has format {told['format']}, this bunko writes {format}")
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
    if size <= _CHECKED_BYTES if check is None else check:
        checksum = 0
        for array in arrays.values():
            checksum = zlib.crc32(array.data if array.nbytes else b"", checksum)
        if checksum != told["checksum"]:
            raise Damaged(f"{path.name} does not have the content that was written")
    stamp: dict[str, Any] = told["stamp"]
    return arrays, stamp
