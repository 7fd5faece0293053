"""A fill of Milvus or Chroma that is stopped goes on, and ends with the same index as one that is not."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunko import stores
from bunko.errors import IndexFailure
from bunko.indexes.chroma.local import ChromaFiles
from bunko.indexes.milvus.copies import ToolCopies
from bunko.indexes.milvus.server import MilvusServer
from bunko.indexes.milvus.statistics import unpack_moments
from bunko.indexes.options import MilvusOptions
from bunko.protocols import Store
from bunko.runtime.observer import Observer
from bunko.text import analyzer
from bunko.types import Tool
from bunko.types.records import QueryTerm
from tests.scale import engines, filling

pytestmark = pytest.mark.scale

COUNT = 1000
QUERIES = ("京都の寺", "sorry dog", "予算の会議")
# Ten kills at different places; after rows were written and before they are counted, they have to be written again.
KILLS = (
    "index.created", "index.announced", "index.written:13", "index.counted:12", "index.written:9", "index.counted:14",
    "index.written:11", "index.written:8", "index.counted:10", "index.written:7",
)  # fmt: skip


@pytest.fixture(params=["milvus", "chroma"])
def kind(request: pytest.FixtureRequest) -> str:
    (engines.require_milvus if request.param == "milvus" else engines.require_chroma)()
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a library with documents, and of its index."""
    folder = tmp_path / "stopped"
    folder.mkdir()
    with closing(stores.build("sqlite", folder / "library.db")) as store:
        tool = store.tools.put(Tool("documents"))
        filling.put(store, tool.id, [f"{number}.md" for number in range(COUNT)])
    return folder


@contextmanager
def opened(folder: Path) -> Iterator[tuple[Store, int]]:
    with closing(stores.build("sqlite", folder / "library.db")) as store:
        yield store, store.tools.all()[0].id


def fill(kind: str, store: Store, tool_id: int, folder: Path) -> int:
    """Bring the index in a folder up to date; return how many chunks were written."""
    folder.mkdir(exist_ok=True)
    log = folder / "rows"
    log.write_text("")
    steps: list[tuple[str, int, int]] = []
    observer = Observer(on_step=lambda *step: steps.append(step))
    with filling.counting_rows(log), closing(filling.open_index(kind, store, folder)) as index:
        assert list(index.sync(tool_id, observer).notices) == []
        chunks = store.stats.totals(tool_id).chunks
        assert steps[-1:] in ([], [("Copying chunks", chunks, chunks)])
        assert (index.state(tool_id).is_current, index.check(tool_id)) == (True, "")
    return filling.counted_rows(log)


def contents(kind: str, store: Store, tool_id: int, folder: Path) -> dict[str, Any]:
    """Return the rows of an index, the statistics over them, and what it finds."""
    found: dict[str, Any] = {}
    with closing(filling.open_index(kind, store, folder)) as index, store.read_transaction():
        view = index.view([tool_id])
        for query in QUERIES:
            nearest = view.nearest(filling.vector_of(query), 5).ranking
            found[query] = view.chunk_ids(nearest.rows), np.round(nearest.scores, 5).tolist()
            terms = [QueryTerm(key, 1.0) for key in sorted(set(analyzer.term_keys(query)))]
            ranking = view.rank(terms, 20, k1=1.2, b=0.75)
            found[f"words of {query}"] = view.chunk_ids(ranking.rows), np.round(ranking.scores, 5).tolist()
    if kind == "chroma":
        with closing(ChromaFiles(folder / "chroma")) as client:
            collection = client.find("documents")
            assert collection is not None
            found["rows"] = client.pairs(collection, at_most=10 * COUNT)
        return found
    server = MilvusServer(MilvusOptions(uri=str(folder / "milvus.db")))
    copy = ToolCopies(server, store, "bunko").find(tool_id)
    assert copy is not None
    fields = ["id", "document_id", "path", "date", "tags", "sparse", "dense"]
    found["rows"] = {row["id"]: row for row in server.query(copy.collection, f"tool == {tool_id}", fields)}
    server.close()
    statistics = store.index_statistics.get(tool_id, copy.stamp.copy)
    assert statistics is not None
    keys = sorted({int(key) for row in found["rows"].values() for key in row["sparse"]})
    found["frequencies"] = store.index_statistics.frequencies(tool_id, copy.stamp.copy, keys)
    moments = unpack_moments(statistics.vectors)
    assert moments is not None
    found["statistics"] = statistics.chunks, statistics.terms, moments.count
    found["moments"] = np.concatenate((moments.total, moments.products.ravel())) / moments.count
    return found


def assert_equal(stopped: dict[str, Any], whole: dict[str, Any], *, with_weights: bool = True) -> None:
    """Both indexes are the same, up to the rounding of sums, and without `with_weights` of what orders candidates."""
    if "moments" in whole:
        assert np.allclose(stopped.pop("moments"), whole.pop("moments"), atol=1e-6)
    if not with_weights and "frequencies" in whole:
        for row in (*stopped["rows"].values(), *whole["rows"].values()):
            row["sparse"] = sorted(row["sparse"])
    assert stopped == whole


def test_a_fill_that_is_killed_ten_times_ends_with_the_same_index_and_hardly_more_work(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    log = folder / "killed"
    log.write_text("")
    for failpoint in KILLS:
        killed = subprocess.run(
            [sys.executable, "-m", "tests.scale.filling", kind, str(folder), str(log)],
            env={**os.environ, "BUNKO_FAILPOINT": failpoint},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
    with opened(folder) as (store, tool_id):
        with closing(filling.open_index(kind, store, folder)) as index:
            state = index.state(tool_id)
            assert (state.generation, 0 < state.pending < COUNT // 2) == (0, True), "it has come far"
        written = filling.counted_rows(log) + fill(kind, store, tool_id, folder)
        whole = fill(kind, store, tool_id, tmp_path / "whole")
        print(f"{kind}: {written} chunks instead of {whole}")
        assert whole == store.stats.totals(tool_id).chunks
        assert whole < written <= 1.1 * whole
        store.documents.write(tool_id, remove=["3.md", f"{COUNT - 1}.md"])
        assert fill(kind, store, tool_id, folder) == fill(kind, store, tool_id, tmp_path / "whole") == 0
        assert_equal(contents(kind, store, tool_id, folder), contents(kind, store, tool_id, tmp_path / "whole"))


class Stopped(BaseException):
    """The process was stopped here."""


@contextmanager
def stopping(kind: str, chance: random.Random, last_uris: list[str]) -> Iterator[Observer]:
    """Stop soon: after rows were written, or after they were counted; keep in a list which documents came last."""
    engine = MilvusServer if kind == "milvus" else ChromaFiles
    upsert, rows_left, counts_left = engine.upsert, chance.randrange(2, 30), chance.randrange(1, 20)

    def stop_after_rows(self: Any, collection: Any, rows: Any) -> None:
        nonlocal rows_left
        upsert(self, collection, rows)
        last_uris[:] = [row.metadata["file_path"] if kind == "chroma" else row["path"] for row in rows]
        rows_left -= 1
        if not rows_left:
            raise Stopped

    def stop_after_count(step: str, done: int, total: int) -> None:
        nonlocal counts_left
        assert done <= total
        counts_left -= 1
        if not counts_left:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "upsert", stop_after_rows)
        yield Observer(on_step=stop_after_count)


def change(store: Store, tool_id: int, chance: random.Random, round_number: int, last_uris: Sequence[str]) -> None:
    """Add, replace and remove documents: some of all ages, and some of those that were just copied."""
    uris = [f"{chance.randrange(COUNT)}.md" for _ in range(6)]
    uris = [*last_uris[:1], *uris, *last_uris[1:3]] if last_uris[0] else uris
    filling.put(store, tool_id, sorted({*uris[:4], f"{COUNT + round_number}.md"}), f"version {round_number}")
    store.documents.write(tool_id, remove=uris[4:])


def embed_again(store: Store, tool_id: int) -> None:
    keys: dict[str, list[bytes]] = {}
    vectors: dict[bytes, Any] = {}
    for uri in store.documents.uris(tool_id, limit=10 * COUNT):
        [document] = store.documents.export(tool_id, [uri])
        texts = [chunk.text for chunk in document.chunks]
        keys[uri] = [f"16 {text}".encode() for text in texts]
        vectors |= {key: filling.vector_of(text, 16) for key, text in zip(keys[uri], texts, strict=True)}
    [tool] = store.tools.all()
    store.vectors.pin(tool_id, "other", vectors)
    store.vectors.replace(tool_id, keys, tool.built)


@pytest.mark.parametrize(("kind", "place"), [("milvus", "sqlite"), ("milvus", "postgres"), ("chroma", "sqlite")])
def test_documents_that_change_between_stops_are_counted_once(
    kind: str, place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (engines.require_milvus if kind == "milvus" else engines.require_chroma)()
    chance = random.Random(7)
    server = request.getfixturevalue("server") if place == "postgres" else None
    with closing(stores.build(place, tmp_path / "library.db", *([server] if server else []))) as store:
        tool_id = store.tools.put(Tool("documents")).id
        filling.put(store, tool_id, [f"{number}.md" for number in range(COUNT // 2)])
        folder, stops = tmp_path / "stopped", 0
        with closing(filling.open_index(kind, store, folder)):  # keeps the file open
            for number in range(12):
                uris: list[str] = []
                with (
                    closing(filling.open_index(kind, store, folder)) as index,
                    stopping(kind, chance, uris) as observer,
                ):
                    try:
                        index.sync(tool_id, observer)
                    except Stopped:
                        stops += 1
                change(store, tool_id, chance, number, uris)
            assert stops > 6
            fill(kind, store, tool_id, folder)
        fill(kind, store, tool_id, tmp_path / "whole")
        found = contents(kind, store, tool_id, folder)
        assert_equal(found, contents(kind, store, tool_id, tmp_path / "whole"), with_weights=False)


def test_a_fill_that_is_stopped_before_all_is_embedded_again_starts_anew(kind: str, folder: Path) -> None:
    with opened(folder) as (store, tool_id):
        stop(kind, store, tool_id, folder, after=20)
        embed_again(store, tool_id)
        assert fill(kind, store, tool_id, folder) == store.stats.totals(tool_id).chunks


def stop(
    kind: str, store: Store, tool_id: int, folder: Path, *, after: int, then: Callable[[int], None] = lambda part: None
) -> None:
    """Fill an index until so many parts are counted."""
    parts = 0

    def count(step: str, done: int, total: int) -> None:
        nonlocal parts
        parts += 1
        then(parts)
        if parts == after:
            raise Stopped

    with closing(filling.open_index(kind, store, folder)) as index, pytest.raises(Stopped):
        index.sync(tool_id, Observer(on_step=count))


@pytest.mark.parametrize("backup_after", [10, 20])
def test_a_library_that_is_restored_between_stops_gets_its_own_index(
    kind: str, folder: Path, tmp_path: Path, backup_after: int
) -> None:
    """It goes on from what it knows, but not if documents were copied that it never had."""
    backup = tmp_path / "backup.db"

    def back_up(part: int) -> None:
        if part == backup_after:
            with closing(sqlite3.connect(folder / "library.db")) as source, closing(sqlite3.connect(backup)) as target:
                source.backup(target)

    with opened(folder) as (store, tool_id):
        stop(kind, store, tool_id, folder, after=20, then=back_up)
        if backup_after == 20:
            filling.put(store, tool_id, [f"{COUNT + number}.md" for number in range(50)])
            stop(kind, store, tool_id, folder, after=84)
    for path in folder.glob("library.db*"):
        path.unlink()
    backup.rename(folder / "library.db")
    with opened(folder) as (store, tool_id):
        filling.put(store, tool_id, ["1.md", f"{COUNT + 3}.md"], "of another history")
        store.documents.write(tool_id, remove=["500.md"])
        written = fill(kind, store, tool_id, folder)
        whole = fill(kind, store, tool_id, tmp_path / "whole")
        assert written < whole if backup_after == 10 else written == whole
        assert_equal(
            contents(kind, store, tool_id, folder),
            contents(kind, store, tool_id, tmp_path / "whole"),
            with_weights=False,
        )


def test_a_library_that_is_restored_from_the_middle_of_a_fill_is_copied_anew(folder: Path, tmp_path: Path) -> None:
    """The copy was finished after the backup: it has more rows than the statistics in the library count."""
    engines.require_milvus()
    backup = tmp_path / "backup.db"

    def back_up(_step: str, done: int, total: int) -> None:
        if not backup.exists() and done > total // 3:
            with closing(sqlite3.connect(folder / "library.db")) as source, closing(sqlite3.connect(backup)) as target:
                source.backup(target)

    with opened(folder) as (store, tool_id), closing(filling.open_index("milvus", store, folder)) as index:
        assert list(index.sync(tool_id, Observer(on_step=back_up)).notices) == []
    for path in folder.glob("library.db*"):
        path.unlink()
    backup.rename(folder / "library.db")
    with opened(folder) as (store, tool_id):
        assert fill("milvus", store, tool_id, folder) == fill("milvus", store, tool_id, tmp_path / "whole")
        assert_equal(contents("milvus", store, tool_id, folder), contents("milvus", store, tool_id, tmp_path / "whole"))


def test_of_two_processes_that_fill_at_once_one_does_it_and_the_other_says_so(folder: Path) -> None:
    """As if the lock of the tool were lost, with the connection to a server."""
    engines.require_milvus()
    with opened(folder) as (store, tool_id):
        with (
            closing(filling.open_index("milvus", store, folder)) as first,
            closing(filling.open_index("milvus", store, folder)) as second,
        ):

            def overtake(step: str, done: int, total: int) -> None:
                if done < total // 2:
                    assert list(second.sync(tool_id).notices) == []

            with pytest.raises(IndexFailure, match="Another process is copying the same tool to Milvus"):
                first.sync(tool_id, Observer(on_step=overtake))
        assert fill("milvus", store, tool_id, folder) == 0
