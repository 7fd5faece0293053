"""What a copy of a tool outside the library lacks, and how it is stamped."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko import stores
from bunko.indexes.replica import Stamp, announce_change, plan_replay
from bunko.protocols import Store
from bunko.types import Tool
from tests.contracts.documents import prepared


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return stores.build("sqlite", tmp_path / "library.db")


@pytest.fixture
def tool(store: Store) -> Tool:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "one"), prepared("b.md", "two")])
    return tool


def test_a_copy_without_a_stamp_or_of_another_history_is_filled_from_scratch(store: Store, tool: Tool) -> None:
    first = plan_replay(store, tool.id, "engine", None)
    assert (first.from_scratch, len(first.written), first.generation) == (True, 2, store.generation())
    nonce = announce_change(store, tool.id, "engine", None)
    for stamp in (Stamp(1, "other"), Stamp(store.generation() + 1, nonce), Stamp(1, "")):
        assert plan_replay(store, tool.id, "engine", stamp).from_scratch
    assert plan_replay(store, tool.id, "another engine", Stamp(1, nonce)).from_scratch


def test_a_crash_leaves_a_copy_with_the_old_or_the_new_stamp_and_both_are_known(store: Store, tool: Tool) -> None:
    old = Stamp(store.generation(), announce_change(store, tool.id, "engine", None))
    store.documents.write(tool.id, upsert=[prepared("a.md", "one more")], remove=["b.md"])
    new = announce_change(store, tool.id, "engine", old)
    replay = plan_replay(store, tool.id, "engine", old)
    assert (replay.from_scratch, len(replay.removed), len(replay.written), replay.pending) == (False, 2, 1, 3)
    done = Stamp(replay.generation, new)
    replay = plan_replay(store, tool.id, "engine", done)
    assert (replay.from_scratch, replay.pending, replay.is_worthwhile(done)) == (False, 0, False)
    announce_change(store, tool.id, "engine", done)
    assert plan_replay(store, tool.id, "engine", old).from_scratch, "two changes later nobody knows it"


def test_forgotten_removals_mean_a_fill_and_an_old_stamp_is_renewed_before(store: Store, tool: Tool) -> None:
    stamp = Stamp(store.generation(), announce_change(store, tool.id, "engine", None))
    other = store.tools.put(Tool("other"))
    for number in range(120):
        store.documents.write(other.id, upsert=[prepared(f"{number}.md", "x")])
    replay = plan_replay(store, tool.id, "engine", stamp)
    assert (replay.pending, replay.is_worthwhile(stamp)) == (0, True)
    store.changes.prune_removals(tool.id, stamp.generation + 50)
    assert plan_replay(store, tool.id, "engine", stamp).from_scratch
