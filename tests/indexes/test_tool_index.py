"""The derived index: survives a restart, is brought up to date, is rebuilt when it is broken, and is never needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.embedders import hashing
from bunko.embedders.embed import vector_keys
from bunko.indexes.embedded import codes, segment
from bunko.indexes.embedded import tool_index as live_module
from bunko.indexes.embedded.tool_index import ToolIndex
from bunko.search.hits import find_hits
from bunko.search.request import RankRequest
from bunko.stores import memory, sqlite
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from tests.contracts.documents import prepared


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sqlite]:
    made = sqlite.build(tmp_path / "library.db")
    yield made
    made.close()


def uris(store: Sqlite, tool: Tool, live: ToolIndex, query: str) -> set[str]:
    with store.read_transaction():
        request = RankRequest(query, row_count=100)
        return {hit.uri for hit in find_hits(store, live.snapshot(), {tool.id: tool.name}, None, request)}


def filled(store: Sqlite, folder: Path) -> tuple[Tool, Path]:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared(f"{n}.md", f"検索の話 第{n}", f"京都 {n}") for n in range(20)])
    live = ToolIndex(store, tool.id, folder)
    live.snapshot()
    live.save()
    return tool, next(folder.glob("*.segment"))


def test_the_index_is_written_and_a_new_process_starts_from_it(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    again = ToolIndex(store, tool.id, tmp_path / "index")
    assert len(uris(store, tool, again, "検索")) == 20
    assert again.rebuild_reason == ""
    assert again.check_file() == ""
    assert path.exists()


def test_what_came_after_the_file_is_replayed_and_what_went_is_gone(store: Sqlite, tmp_path: Path) -> None:
    tool, _ = filled(store, tmp_path / "index")
    store.documents.write(tool.id, upsert=[prepared("new.md", "奈良の鹿")], remove=["3.md", "4.md"])
    store.documents.write(tool.id, upsert=[prepared("5.md", "別の話")])
    again = ToolIndex(store, tool.id, tmp_path / "index")
    assert uris(store, tool, again, "鹿") == {"new.md"}
    assert uris(store, tool, again, "検索") == {f"{n}.md" for n in range(20) if n not in (3, 4, 5)}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"garbage" + data[7:],
        lambda data: data[:100] + b"\xff" * 50 + data[150:],
        lambda data: data[:-2000] + b"\xff" * 1000 + data[-1000:],
        lambda data: data + b"more",
        lambda data: data.replace(f'"format": {segment.FORMAT}'.encode(), b'"format": 9'),
    ],
    ids=["empty", "cut off", "no magic", "header", "content", "too long", "other version"],
)
def test_a_damaged_index_is_rebuilt_with_a_warning(
    store: Sqlite, tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    tool, path = filled(store, tmp_path / "index")
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    again = ToolIndex(store, tool.id, tmp_path / "index")
    with caplog.at_level(logging.WARNING, logger="bunko"):
        assert len(uris(store, tool, again, "検索")) == 20
    assert "rebuilding" in caplog.text
    again.save()
    assert ToolIndex(store, tool.id, tmp_path / "index").check_file() == ""


def test_the_index_of_another_library_is_not_used(store: Sqlite, tmp_path: Path) -> None:
    filled(store, tmp_path / "index")
    other = sqlite.build(tmp_path / "other.db")
    tool = other.tools.put(Tool("docs"))
    other.documents.write(tool.id, upsert=[prepared("mine.md", "検索")])
    assert uris(other, tool, ToolIndex(other, tool.id, tmp_path / "index"), "検索") == {"mine.md"}
    other.close()


def test_an_index_from_the_future_of_a_restored_library_is_not_used(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    path.rename(path.with_name(f"{path.stem.rpartition('-')[0]}-999.segment"))
    assert len(uris(store, tool, ToolIndex(store, tool.id, tmp_path / "index"), "検索")) == 20


def test_an_index_without_a_folder_writes_no_files(tmp_path: Path) -> None:
    store = memory.build()
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索")])
    live = ToolIndex(store, tool.id, None)
    live.snapshot()
    live.save()
    assert list(tmp_path.iterdir()) == []


def test_removals_that_were_forgotten_lead_to_a_fresh_start(store: Sqlite, tmp_path: Path) -> None:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "検索"), prepared("b.md", "検索")])
    behind = ToolIndex(store, tool.id, None)
    assert uris(store, tool, behind, "検索") == {"a.md", "b.md"}
    store.documents.write(tool.id, remove=["a.md"])
    store.changes.prune_removals(tool.id, store.generation())
    assert uris(store, tool, behind, "検索") == {"b.md"}


def test_many_small_changes_do_not_pile_up_into_many_parts(store: Sqlite) -> None:
    tool = store.tools.put(Tool("docs"))
    live = ToolIndex(store, tool.id, None)
    for number in range(30):
        store.documents.write(tool.id, upsert=[prepared(f"{number % 7}.md", f"検索 {number}")])
        assert len(uris(store, tool, live, "検索")) == min(number + 1, 7)
    assert len(live.snapshot().views) <= 5


def test_a_restored_library_does_not_take_an_index_of_the_time_after(tmp_path: Path) -> None:
    path, folder = tmp_path / "library.db", tmp_path / "index"
    store = sqlite.build(path)
    tool, _ = filled(store, folder)
    store.close()
    copy = path.read_bytes()
    store = sqlite.build(path)
    store.documents.write(tool.id, upsert=[prepared(f"zebra{n}.md", f"zebra {n}") for n in range(300)])
    live = ToolIndex(store, tool.id, folder)
    live.snapshot()
    live.save()
    store.close()
    path.write_bytes(copy)
    store = sqlite.build(path)
    for number in range(3):
        store.documents.write(tool.id, upsert=[prepared(f"yak{number}.md", f"yak {number}")])
    assert uris(store, tool, ToolIndex(store, tool.id, folder), "zebra") == set()
    assert len(uris(store, tool, ToolIndex(store, tool.id, folder), "yak")) == 3
    store.close()


def test_files_of_others_in_the_same_folder_are_left_alone(store: Sqlite, tmp_path: Path) -> None:
    tool, path = filled(store, tmp_path / "index")
    strangers = [path.with_name(f"{path.stem} (conflicted copy).segment"), path.with_name("precious.tmp")]
    for stranger in strangers:
        stranger.write_bytes(b"mine")
        os.utime(stranger, (1, 1))
    live = ToolIndex(store, tool.id, tmp_path / "index")
    assert len(uris(store, tool, live, "検索")) == 20
    store.documents.write(tool.id, upsert=[prepared(f"n{n}.md", f"検索 {n}") for n in range(400)])
    assert len(uris(store, tool, live, "検索")) == 100
    live.save()
    assert all(stranger.exists() for stranger in strangers)


@pytest.mark.parametrize("coarse", [1, 1000])
def test_an_index_made_in_several_files_answers_as_one_made_in_memory(
    store: Sqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coarse: int
) -> None:
    tool = store.tools.put(Tool("docs"))
    embedder = hashing.build(64)
    texts = [f"検索の話 第{n} {'京都' * (n % 5)}" for n in range(60)]
    put, vectors = [], {}
    for n, text in enumerate(texts):
        one = prepared(f"{n}.md", text)
        [key] = vector_keys(embedder, [text])
        put.append(replace(one, vector_keys=[key]))
        vectors[key] = embedder.embed([text])[0]
    store.documents.write(tool.id, upsert=put, vectors=vectors)
    store.documents.write(tool.id, remove=["7.md"])

    def answers(live: ToolIndex) -> list[Any]:
        found = []
        with store.read_transaction():
            for mode in ("bm25", "semantic", "hybrid"):
                request = RankRequest("京都の検索 第12", mode=mode, row_count=20)
                hits = find_hits(store, live.snapshot(), {tool.id: "docs"}, embedder, request)
                found.append([(hit.uri, pytest.approx(hit.score, abs=1e-5)) for hit in hits])
        return found

    wanted = answers(ToolIndex(store, tool.id, None))
    monkeypatch.setattr(codes, "BYTE_ROWS", coarse)
    for name, value in (("BATCH_ROWS", 4), ("MAX_ROWS_IN_MEMORY", 12)):
        monkeypatch.setattr(live_module, name, value)
    folder = tmp_path / "index"
    live = ToolIndex(store, tool.id, folder)
    assert answers(live) == wanted
    assert list(folder.iterdir()) == []  # what is put aside for a moment has no name any more
    live.save()
    assert [path.suffix for path in folder.iterdir()] == [".segment"]
    assert answers(live) == wanted
    again = ToolIndex(store, tool.id, folder)
    assert answers(again) == wanted
    assert again.check_file() == ""
    # Further changes beside the file, and where nothing can be written.
    store.documents.write(
        tool.id, upsert=[prepared(f"more{n}.md", f"奈良の鹿 {n}") for n in range(30)], remove=["3.md"]
    )
    (tmp_path / "a file").write_text("")
    for place in (folder, tmp_path / "a file" / "index"):
        assert len(uris(store, tool, ToolIndex(store, tool.id, place), "鹿")) == 30
    assert len(uris(store, tool, again, "鹿")) == 30
