"""Named arrays in one file: as they were, in pieces or at once, or not there at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy import testing  # old versions start a program at its import

from bunko.runtime import array_file
from bunko.runtime.array_file import ArrayStream, DamagedArrayFile


def test_arrays_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "a.segment"
    whole = np.arange(12, dtype=np.float32).reshape(6, 2)
    arrays: dict[str, npt.NDArray[Any]] = {
        "small": np.array([1, 2, 3], np.int64),
        "none": np.empty((0, 4), np.int8),
        "turned": whole.T,
    }
    pieces = ArrayStream(whole.shape, np.float32, lambda: (whole[:1], whole[1:1], whole[1:]))
    array_file.save_arrays(path, {**arrays, "pieces": pieces}, format_version=7, stamp={"名": "前"})
    read, stamp = array_file.load_arrays(path, format_version=7, verify_checksum=True)
    assert stamp == {"名": "前"}
    for name, array in (arrays | {"pieces": whole}).items():
        assert read[name].dtype == array.dtype
        testing.assert_array_equal(read[name], array)


def test_a_file_in_pieces_is_the_file_written_at_once(tmp_path: Path) -> None:
    whole = np.arange(1000, dtype=np.int32).reshape(100, 10)
    array_file.save_arrays(tmp_path / "a", {"x": whole}, format_version=1, stamp={})
    stream = ArrayStream(whole.shape, np.int32, lambda: np.array_split(whole, 7))
    array_file.save_arrays(tmp_path / "b", {"x": stream}, format_version=1, stamp={}, durable=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_pieces_that_are_not_the_whole_leave_no_file(tmp_path: Path) -> None:
    short = ArrayStream((3, 2), np.float32, lambda: (np.zeros((2, 2), np.float32),))
    with pytest.raises(ValueError, match="shape"):
        array_file.save_arrays(tmp_path / "a", {"x": short}, format_version=1, stamp={})
    assert list(tmp_path.iterdir()) == []


def test_one_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    array_file.save_arrays(path, {"x": np.arange(100, dtype=np.int32)}, format_version=1, stamp={})
    data = bytearray(path.read_bytes())
    data[-100] ^= 1  # not in what fills up the last line
    path.write_bytes(data)
    with pytest.raises(DamagedArrayFile):
        array_file.load_arrays(path, format_version=1)
