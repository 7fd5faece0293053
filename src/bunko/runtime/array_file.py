"""Write named arrays to one file atomically, and map them into memory to read them.

A file is a header (JSON: format, stamp, and the position of each array) followed by the arrays. Array files are derived
data that can be written again: a file whose content is not what was written raises `DamagedArrayFile` instead of giving
wrong answers.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from bunko.runtime.failpoints import reach_failpoint

if TYPE_CHECKING:
    import numpy.typing as npt

_MAGIC = b"bunko.segment\n\0\0"
_ALIGNMENT = 64
# Checksumming costs about 1 ms per megabyte; for larger files only the header and the size are checked on opening.
MAX_VERIFIED_BYTES = 16 * 2**20


class DamagedArrayFile(Exception):
    """An array file cannot be used and has to be rebuilt."""


class OtherArrayFormat(DamagedArrayFile):
    """An array file is intact, but another version of bunko wrote it."""


class ArrayStream(NamedTuple):
    """An array that is never fully in memory: its shape, and a function that yields its rows in blocks."""

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
    mode: int | None = None,
) -> None:
    """Write arrays atomically; with `durable=False` the file is not synced to disk, which suits short-lived files.

    The file gets these permissions: those of the library, whose texts it has parts of.
    """
    layout, offset = {}, 0
    for name, array in arrays.items():
        dtype = np.dtype(array.dtype)
        layout[name] = {"dtype": dtype.str, "shape": array.shape, "at": offset}
        offset += -(-math.prod(array.shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    header = {"format": format_version, "stamp": stamp, "arrays": layout, "bytes": offset}
    # The checksum is only known once everything is written: reserve room for the largest.
    header_size = len(_encode_header(header | {"checksum": 2**32}))
    path.parent.mkdir(exist_ok=True)
    # A name that nobody can foresee, for a file that does not exist yet: a link of that name would be written through.
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb", opener=partial(os.open, mode=0o666 if mode is None else 0o600)) as file:
            if mode is not None and hasattr(os, "fchmod"):
                with suppress(OSError):  # some file systems have no permissions
                    os.fchmod(file.fileno(), mode)
            file.write(bytes(-(-header_size // _ALIGNMENT) * _ALIGNMENT))
            checksum = 0
            for name, array in arrays.items():
                checksum = _write_array(file, name, array, checksum)
            reach_failpoint("derived.arrays")
            file.seek(0)
            file.write(_encode_header(header | {"checksum": checksum}, header_size))
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


def _write_array(file: BinaryIO, name: str, array: npt.NDArray[Any] | ArrayStream, checksum: int) -> int:
    """Write one array and its padding; return the checksum of everything written so far."""
    byte_count = 0
    for block in array.blocks() if isinstance(array, ArrayStream) else (array,):
        data = np.ascontiguousarray(block, np.dtype(array.dtype)).data if block.size else b""
        checksum = zlib.crc32(data, checksum)
        file.write(data)
        byte_count += block.nbytes
    if byte_count != math.prod(array.shape) * np.dtype(array.dtype).itemsize:
        raise ValueError(f"{name} has {byte_count} bytes, which does not fit its shape {array.shape}")
    file.write(bytes(-byte_count % _ALIGNMENT))
    return checksum


def _encode_header(fields: dict[str, Any], length: int = 0) -> bytes:
    header = json.dumps(fields).encode()
    prefix_length = len(_MAGIC) + 16
    header += b" " * (length - prefix_length - len(header))
    return _MAGIC + len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little") + header


def load_arrays(
    path: Path,
    *,
    format_version: int,
    verify_checksum: bool | None = None,
    check_values: Callable[[Mapping[str, npt.NDArray[Any]]], None] | None = None,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Map a file and return its arrays and its stamp; raise `DamagedArrayFile` if it is not valid.

    By default the checksum is only verified for files up to 16 MiB, where that is cheap. `check_values` is called with
    the arrays if the checksum is verified: a checksum proves only that a file is what somebody wrote.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise DamagedArrayFile(f"{path.name} is not a file")
        header, data_start = _read_header(file, path.name)
        try:
            if header["format"] != format_version:
                raise OtherArrayFormat(f"{path.name} has another format than {format_version}, which this bunko writes")
            if status.st_size != data_start + header["bytes"]:
                raise DamagedArrayFile(f"{path.name} is truncated")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            arrays = {name: _map_array(data, data_start, layout) for name, layout in header["arrays"].items()}
            checksum, stamp = int(header["checksum"]), dict(header["stamp"])
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise DamagedArrayFile(f"{path.name} has a damaged header") from error
    if status.st_size <= MAX_VERIFIED_BYTES if verify_checksum is None else verify_checksum:
        actual_checksum = 0
        for array in arrays.values():
            actual_checksum = zlib.crc32(array.data if array.nbytes else b"", actual_checksum)
        if checksum != actual_checksum:
            raise DamagedArrayFile(f"{path.name} does not match its checksum")
        if check_values is not None:
            check_values(arrays)
    return arrays, stamp


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # opening a pipe would wait for a writer


def _read_header(file: BinaryIO, name: str) -> tuple[dict[str, Any], int]:
    """Return the header of a file, and where its data starts."""
    prefix = file.read(len(_MAGIC) + 16)
    if prefix[: len(_MAGIC)] != _MAGIC or len(prefix) < len(_MAGIC) + 16:
        raise DamagedArrayFile(f"{name} is not an index file")
    length = int.from_bytes(prefix[-16:-8], "little")
    if length > 2**20:
        raise DamagedArrayFile(f"{name} has a damaged header")
    encoded = file.read(length)
    if zlib.crc32(encoded) != int.from_bytes(prefix[-8:], "little"):
        raise DamagedArrayFile(f"{name} has a damaged header")
    try:
        header = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise DamagedArrayFile(f"{name} has a damaged header") from error
    return header, -(-(len(prefix) + length) // _ALIGNMENT) * _ALIGNMENT


def _map_array(data: mmap.mmap, data_start: int, layout: dict[str, Any]) -> npt.NDArray[Any]:
    dtype, shape, offset = np.dtype(layout["dtype"]), layout["shape"], layout["at"]
    # A negative number would mean "all the rest" or an earlier part of the file.
    if dtype.kind not in "iuf" or not all(type(size) is int and size >= 0 for size in (*shape, offset)):
        raise ValueError("not an array of numbers")
    return np.frombuffer(data, dtype, math.prod(shape), data_start + offset).reshape(shape)
