"""Files of Chroma that are damaged, half written or on a full disk never end a search, and are made anew."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bunko import indexes, stores
from bunko.indexes.chroma.local import FileGuard
from bunko.indexes.options import ChromaOptions, EngineOptions
from bunko.protocols import Index, Store
from bunko.types import Tool
from tests.conftest import Opener
from tests.contracts.documents import prepared
from tests.scale.engines import require_chroma

pytestmark = pytest.mark.scale

COUNT = 1200  # Chroma saves its graph after a thousand vectors
VECTORS = np.random.default_rng(3).normal(size=(COUNT + 1, 16)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def _chroma() -> None:
    require_chroma()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    built = stores.build("sqlite", tmp_path / "library.db")
    tool = built.tools.put(Tool("documents"))
    keys = [str(number).encode() for number in range(COUNT)]
    documents = [replace(prepared(f"{number}.md", str(number)), vector_keys=[key]) for number, key in enumerate(keys)]
    built.documents.write(tool.id, upsert=documents, vectors=dict(zip(keys, VECTORS, strict=False)))
    yield built
    built.close()


@pytest.fixture
def open_index(store: Store, tmp_path: Path) -> Iterator[Callable[[], Index]]:
    """Open the index as a new process would, without what another has in memory."""
    opened: list[Index] = []

    def open_new() -> Index:
        options = EngineOptions(chroma=ChromaOptions(folder=tmp_path / "chroma"))
        opened.append(indexes.build("chroma", store, tmp_path / "index", options))
        return opened[-1]

    yield open_new
    for index in opened:
        index.close()


@pytest.fixture
def saved(open_index: Callable[[], Index], tmp_path: Path) -> Path:
    """Give the folder of a graph that Chroma has saved."""
    index = open_index()
    index.sync(1)
    index.close()
    [path] = (tmp_path / "chroma").rglob("link_lists.bin")
    return path.parent


def nearest(store: Store, index: Index) -> tuple[list[int], list[str]]:
    """Search for five vectors; return which chunks were found first, and the notices."""
    with store.read_transaction():
        view = index.view([1])
        found = [view.chunk_ids(view.nearest(vector, 3).ranking.rows)[0] for vector in VECTORS[:COUNT:300]]
    return found, list(view.notices)


def damage(path: Path, seed: int) -> None:
    """Cut a file, or write other bytes into it."""
    chance, content = random.Random(seed), bytearray(path.read_bytes())
    if seed % 4 == 3:
        content = content[: chance.randrange(len(content))]
    else:
        for _ in range((1, 20, 2000)[seed % 4]):
            position = chance.randrange(len(content))
            content[position] ^= chance.randrange(1, 256)
    path.write_bytes(content)


NAMES = ("data_level0.bin", "header.bin", "index_metadata.pickle", "length.bin", "link_lists.bin")


@pytest.mark.parametrize(("name", "seed"), [(name, number % 4) for number, name in enumerate(NAMES)])
def test_a_damaged_file_is_not_read_and_the_next_sync_makes_it_anew(
    store: Store, open_index: Callable[[], Index], saved: Path, name: str, seed: int
) -> None:
    expected, notices = nearest(store, open_index())
    assert notices == []
    damage(saved / name, seed)
    index = open_index()
    found, [notice] = nearest(store, index)
    assert found == expected, "the vectors of the segments answer"
    assert "are damaged, or something else changed them, so the library's own vectors were searched" in notice
    assert "bunko index sync" in notice
    assert "are damaged" in index.check(1)
    index.sync(1)
    assert nearest(store, open_index()) == (expected, [])
    assert open_index().check(1) == ""


@pytest.mark.parametrize("is_damaged", [False, True])
def test_files_of_a_process_that_was_stopped_are_tried_by_another_one_first(
    store: Store, open_index: Callable[[], Index], saved: Path, is_damaged: bool
) -> None:
    expected, _ = nearest(store, open_index())
    [note] = saved.parent.glob("bunko-*.json")
    note.write_text(note.read_text().replace('"complete": true', '"complete": false'))
    if is_damaged:
        graph = saved / "data_level0.bin"
        graph.write_bytes(os.urandom(graph.stat().st_size))
    index = open_index()
    found, notices = nearest(store, index)
    assert found == expected
    assert [("a process that wrote them was stopped" in notice) for notice in notices] == [True] * is_damaged
    index.sync(1)
    assert nearest(store, open_index()) == (expected, [])


def test_files_that_another_process_is_writing_are_not_read(
    store: Store, open_index: Callable[[], Index], saved: Path
) -> None:
    expected, _ = nearest(store, open_index())
    [note] = saved.parent.glob("bunko-*.json")
    guard = FileGuard(saved.parent)
    with guard.writing("documents", note.stem.removeprefix("bunko-")):
        found, [notice] = nearest(store, open_index())
        assert found == expected
        assert notice.startswith(f"Another process is writing Chroma's files in {saved.parent}")
    assert nearest(store, open_index()) == (expected, [])


def test_a_full_disk_is_one_sentence_and_mended_later(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    for number in range(6):
        (docs / f"{number}.md").write_text(f"# Note {number}\n京都の寺の庭、その{number}番目の話", encoding="utf-8")
    folder = tmp_path / "chroma"
    with open_docs() as library:
        library.reindex()
        before = list(library.store.documents.fingerprints(library.tools()[0].id).items())
    environ = {"BUNKO_INDEX_KIND": "chroma", "CHROMADB_PERSIST_DIR": str(folder)}

    def limit_files() -> None:
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))

    full = subprocess.run(
        [sys.executable, "-m", "bunko", "index", "sync", "--docs-dir", str(docs)],
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **environ},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
    )
    assert full.returncode == 9, full.stderr
    # Chroma's own libraries may log before.
    assert f"\nError: Chroma cannot use its files in {folder}: " in f"\n{full.stderr}"
    assert "Traceback" not in full.stderr
    with open_docs(**environ) as library:
        assert list(library.store.documents.fingerprints(library.tools()[0].id).items()) == before
        library.index.sync("documents")
        assert library.search("京都の寺", mode="semantic", refresh=False).notices == []
