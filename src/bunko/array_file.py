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

from bunko.failpoints import reach_failpoint

if TYPE_CHECKING:
    import numpy.typing as npt

_MAGIC = b"bunko.segment\n\0\0"
_ALIGNMENT = 64
# Checksumming a file costs about 1 ms a megabyte; a large one is only checked for its shape when it is opened.
_MAX_VERIFIED_BYTES = 16 * 2**20


class DamagedArrayFile(Exception):
    """A file cannot be used; its reader makes it anew."""


class ArrayStream(NamedTuple):
    """An array that is never whole in memory: its shape, and what gives its rows, some at a time."""

    shape: tuple[int, ...]
    dtype: npt.DTypeLike
    blocks: Callable[[], Iterable[npt.NDArray[Any]]]


def save_arrays(
    path: Path,
    arrays: Mapping[str, npt.NDArray[Any] | ArrayStream],
    *,
    format_version: int,
    stamp: dict[str, Any],
    durable: bool = True,
) -> None:
    """Write arrays so that the file is either whole or not there; what is needed for a moment need not be durable."""
    layout, offset = {}, 0
    for name, array in arrays.items():
        dtype = np.dtype(array.dtype)
        layout[name] = {"dtype": dtype.str, "shape": array.shape, "at": offset}
        offset += -(-math.prod(array.shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    told = {"format": format_version, "stamp": stamp, "arrays": layout, "bytes": offset}
    # The checksum is known when everything is written: room for the largest is kept for it.
    room = len(_encode_header(told | {"checksum": 2**32}))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(bytes(-(-room // _ALIGNMENT) * _ALIGNMENT))
            checksum = 0
            for name, array in arrays.items():
                written = 0
                for piece in array.blocks() if isinstance(array, ArrayStream) else (array,):
                    data = np.ascontiguousarray(piece, np.dtype(array.dtype)).data if piece.size else b""
                    checksum = zlib.crc32(data, checksum)
                    file.write(data)
                    written += piece.nbytes
                if written != math.prod(array.shape) * np.dtype(array.dtype).itemsize:
                    raise ValueError(f"{name} has {written} bytes, and not those of its shape {array.shape}")
                file.write(bytes(-written % _ALIGNMENT))
            reach_failpoint("derived.arrays")
            file.seek(0)
            file.write(_encode_header(told | {"checksum": checksum}, room))
            reach_failpoint("derived.header")
            file.flush()
            if durable:
                os.fsync(file.fileno())
        reach_failpoint("derived.synced")
        temporary.replace(path)
        reach_failpoint("derived.renamed")
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _encode_header(fields: dict[str, Any], length: int = 0) -> bytes:
    header = json.dumps(fields).encode()
    before = len(_MAGIC) + 16
    header += b" " * (length - before - len(header))
    return _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header


def load_arrays(
    path: Path, *, format_version: int, verify_checksum: bool | None = None
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Map a file; raise `Damaged` if it is not one, `FileNotFoundError` if there is none.

    `check` says whether to compare the content too; by default that is done where it is cheap.
    """
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC) + 16)
        if head[: len(_MAGIC)] != _MAGIC or len(head) < len(_MAGIC) + 16:
            raise DamagedArrayFile(f"{path.name} is not an index file")
        length = int.from_bytes(head[-16:-8], "little")
        if length > 2**20:
            raise DamagedArrayFile(f"{path.name} has a broken header")
        header = file.read(length)
        if zlib.crc32(header) != int.from_bytes(head[-8:], "little"):
            raise DamagedArrayFile(f"{path.name} has a broken header")
        told = json.loads(header)
        if told["format"] != format_version:
            raise DamagedArrayFile(f"{path.name} has format {told['format']}, this bunko writes {format_version}")
        begin = -(-(len(head) + length) // _ALIGNMENT) * _ALIGNMENT
        size = os.fstat(file.fileno()).st_size
        if size != begin + told["bytes"]:
            raise DamagedArrayFile(f"{path.name} is cut off")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, place in told["arrays"].items():
        count = int(np.prod(place["shape"], dtype=np.int64))
        array = np.frombuffer(data, np.dtype(place["dtype"]), count, begin + place["at"])
        arrays[name] = array.reshape(place["shape"])
    if size <= _MAX_VERIFIED_BYTES if verify_checksum is None else verify_checksum:
        checksum = 0
        for array in arrays.values():
            checksum = zlib.crc32(array.data if array.nbytes else b"", checksum)
        if checksum != told["checksum"]:
            raise DamagedArrayFile(f"{path.name} does not have the content that was written")
    stamp: dict[str, Any] = told["stamp"]
    return arrays, stamp
