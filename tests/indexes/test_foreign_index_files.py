"""Index files that bunko did not write, with a valid checksum: they are rebuilt, and never lead elsewhere."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bunko.indexes.embedded import segment
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.protocols import DamagedIndex
from bunko.runtime import array_file
from bunko.runtime.array_file import DamagedArrayFile
from bunko.stores import sqlite
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from tests.contracts.documents import prepared
from tests.indexes.test_tool_index import filled, uris

Arrays = dict[str, npt.NDArray[Any]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sqlite]:
    made = sqlite.build(tmp_path / "library.db")
    yield made
    made.close()


def forge(path: Path, **changes: Any) -> None:
    """Write the same file with other arrays, and a valid checksum."""
    arrays, stamp = array_file.load_arrays(path, format_version=segment.FORMAT)
    changed = {name.replace("__", "."): array for name, array in changes.items()}
    array_file.save_arrays(path, arrays | changed, format_version=segment.FORMAT, stamp=stamp)


def forge_header(path: Path, **changes: Any) -> None:
    """Write other facts about the arrays into the header, and a valid checksum of it."""
    data = path.read_bytes()
    length = int.from_bytes(data[16:24], "little")
    header = json.loads(data[32 : 32 + length])
    header["arrays"]["chunk_ids"] |= changes
    encoded = json.dumps(header).encode().ljust(-(-(32 + length + 64) // 64) * 64 - 32)
    prefix = data[:16] + len(encoded).to_bytes(8, "little") + zlib.crc32(encoded).to_bytes(8, "little")
    path.write_bytes(prefix + encoded + data[-(-(32 + length) // 64) * 64 :])


BAD_ARRAYS: dict[str, Any] = {
    "rows out of range": {"words__rows": lambda old: old + 1000},
    "negative rows": {"grams__rows": lambda old: old - 5},
    "starts that go back": {"words__starts": lambda old: np.append(old[1:-1][::-1], old[[-1, -1]])},
    "starts beyond the end": {"words__starts": lambda old: old * 2},
    "unsorted keys": {"words__keys": lambda old: old[::-1]},
    "negative lengths": {"lengths": lambda old: -old - 1},
    "not a number": {"vectors": lambda old: np.full((len(old), 4), np.nan, np.float32)},
    "sentences before the first": {"sentences__starts": lambda old: np.append([-5], old[1:])},
    "sentences that go back": {"sentences__starts": lambda old: np.concatenate([[0, 2**40], old[2:]])},
    "too few vectors": {"vectors": lambda old: np.zeros((3, 4), np.float32)},
    "coarse of another size": {"codes__coarse": lambda old: np.zeros((40, 7), np.int8)},
    "other numbers": {"chunk_ids": lambda old: old.astype(np.float64)},
    "too few documents": {"document_ids": lambda old: old[:-1]},
    "an array too many": {"more": lambda old: np.zeros(3)},
    "a square": {"order": lambda old: old.reshape(-1, 5)},
    "other chunks": {"chunk_ids": lambda old: old + 10**6},
    "one chunk many times": {"chunk_ids": lambda old: np.full_like(old, old[0])},
}


@pytest.mark.parametrize("verified", [True, False], ids=["small", "large"])
@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_forged_index_file_is_found_by_the_check_and_rebuilt(
    store: Sqlite, tmp_path: Path, name: str, verified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, path = filled(store, tmp_path / "index")
    arrays, _ = array_file.load_arrays(path, format_version=segment.FORMAT)
    changes = BAD_ARRAYS[name]
    forge(path, **{key: change(arrays.get(key.replace("__", "."))) for key, change in changes.items()})
    if not verified:
        monkeypatch.setattr(array_file, "MAX_VERIFIED_BYTES", 0)
    index = ToolIndex(store, tool.id, tmp_path / "index")
    assert index.check_file() or index.rebuild_reason
    index.repair()
    assert uris(store, tool, index, "検索") == {f"{number}.md" for number in range(20)}
    assert index.check_file() == ""


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [-1]}, {"shape": [2**62]}, {"shape": [2**62, 0]}, {"shape": "x"}, {"shape": None}, {"shape": [1.5]},
        {"dtype": "O"}, {"dtype": "V8"}, {"dtype": "S0"}, {"dtype": None}, {"dtype": [["a", "<i8"]]}, {"dtype": "x"},
        {"at": -64}, {"at": 2**50}, {"at": "x"}, {"at": None}, {"at": 1.5},
    ],
    ids=str,
)  # fmt: skip
def test_a_forged_header_is_damage(store: Sqlite, tmp_path: Path, change: dict[str, Any]) -> None:
    tool, path = filled(store, tmp_path / "index")
    forge_header(path)
    segment.load(path)
    forge_header(path, **change)
    with pytest.raises(DamagedArrayFile):
        segment.load(path)
    assert len(uris(store, tool, ToolIndex(store, tool.id, tmp_path / "index"), "検索")) == 20


def test_an_index_file_cannot_return_the_documents_of_another_tool(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    other = store.tools.put(Tool("other"))
    store.documents.write(other.id, upsert=[prepared(f"{n}.txt", f"秘密 {n}", "秘密") for n in range(20)])
    forge(path, chunk_ids=np.array(store.changes.chunk_ids(other.id), np.int64))
    index = ToolIndex(store, tool.id, tmp_path / "index")
    with pytest.raises(DamagedIndex):
        uris(store, tool, index, "検索")
    assert index.repair()
    assert uris(store, tool, index, "検索") == {f"{number}.md" for number in range(20)}


def test_an_index_file_that_is_a_pipe_does_not_wait_for_a_writer(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    path.unlink()
    os.mkfifo(path)
    assert len(uris(store, tool, ToolIndex(store, tool.id, tmp_path / "index"), "検索")) == 20


def test_vectors_of_another_size_are_passed_over(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    forge(path, vectors=np.ones((40, 4), np.float32), codes__coarse=np.empty((0, 4), np.int8))
    index = ToolIndex(store, tool.id, tmp_path / "index")
    with store.read_transaction():
        view = index.snapshot()
    assert view.nearest(np.ones(8, np.float32), 5).ranking.rows == []
    assert view.cosines(np.ones(8, np.float32), [0, 1]) == [0.0, 0.0]


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_forged_index_file_does_not_become_part_of_the_next_one(
    store: Sqlite, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_file, "MAX_VERIFIED_BYTES", 0)  # as for a file too large to be checked on opening
    tool, path = filled(store, tmp_path / "index")
    arrays, _ = array_file.load_arrays(path, format_version=segment.FORMAT)
    forge(path, **{key: change(arrays.get(key.replace("__", "."))) for key, change in BAD_ARRAYS[name].items()})
    store.documents.write(tool.id, upsert=[prepared(f"new{number}.md", "奈良の鹿") for number in range(300)])
    index = ToolIndex(store, tool.id, tmp_path / "index")
    with store.read_transaction():
        index.snapshot()
    index.save()
    again = ToolIndex(store, tool.id, tmp_path / "index")
    assert again.check_file() == again.rebuild_reason == ""
    assert uris(store, tool, again, "検索") == {f"{number}.md" for number in range(20)}
