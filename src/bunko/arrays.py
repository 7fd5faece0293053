"""Named arrays in, one file out that is whole or not there; mapped into memory as it lies when it is read.

A file is a header (JSON: what it is, where each array lies) and the arrays. Whoever wrote it can write it again: a file
that is not what was written is `Damaged`, never a wrong answer.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def save(path: Path, arrays: Mapping[str, npt.NDArray[Any]], *, format: int, stamp: dict[str, Any]) -> None:
    """Write arrays so that the file is either whole or not there."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    layout, offset, checksum = {}, 0, 0
    for name, array in arrays.items():
        layout[name] = {"dtype": array.dtype.str, "shape": array.shape, "at": offset}
        offset += -(-array.nbytes // _ALIGN) * _ALIGN
        checksum = zlib.crc32(array.data if array.nbytes else b"", checksum)
    told = {"format": format, "stamp": stamp, "arrays": layout, "bytes": offset, "checksum": checksum}
    header = json.dumps(told).encode()
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
