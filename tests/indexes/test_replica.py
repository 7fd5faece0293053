"""What a copy of a tool outside the library lacks, and how it is stamped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bunko import stores
from bunko.errors import IndexFailure
from bunko.indexes.replica import Follower, Replay, Stamp
from bunko.protocols import Store
from bunko.types import SourceEntry, Tool
from tests.contracts.documents import prepared


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(stores.build("sqlite", tmp_path / "library.db")) as store:
        yield store


@pytest.fixture
def tool(store: Store) -> Tool:
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "one"), prepared("b.md", "two")])
    return tool


@pytest.fixture
def follower(store: Store) -> Follower:
    return Follower(store, "engine")


def test_a_copy_without_a_stamp_or_of_another_history_is_filled_from_scratch(
    store: Store, tool: Tool, follower: Follower
) -> None:
    first = follower.plan_replay(tool.id, None)
    assert (first.from_scratch, len(first.written), first.generation) == (True, 2, store.generation())
    known = follower.announce_copy(tool.id)
    assert not follower.plan_replay(tool.id, known).from_scratch
    unknown = (known._replace(nonce="other"), known._replace(copy="other"), known._replace(nonce=""), Stamp(1, "", ""))
    for stamp in (*unknown, known._replace(generation=store.generation() + 1)):
        assert follower.plan_replay(tool.id, stamp).from_scratch
    assert Follower(store, "another engine").plan_replay(tool.id, known).from_scratch
    follower.forget_copy(tool.id, known)
    assert follower.plan_replay(tool.id, known).from_scratch


def test_each_of_several_copies_is_followed_from_its_own_stamp(store: Store, tool: Tool, follower: Follower) -> None:
    first, second = (follower.announce_copy(tool.id)._replace(generation=store.generation()) for _ in range(2))
    store.documents.write(tool.id, upsert=[prepared("c.md", "three")])
    first = follower.announce_change(tool.id, first)._replace(generation=store.generation())
    for stamp, pending in ((first, 0), (second, 1)):
        replay = follower.plan_replay(tool.id, stamp)
        assert (replay.from_scratch, replay.pending) == (False, pending)


def test_a_document_with_another_date_is_a_change_for_copies_with_dates(
    store: Store, tool: Tool, follower: Follower
) -> None:
    dated = Follower(store, "engine", with_dates=True)
    stamp = follower.announce_copy(tool.id)._replace(generation=store.generation())
    store.documents.write(tool.id, touch=[SourceEntry("a.md", 1, 10**18, 2 * 10**18)])
    replay = dated.plan_replay(tool.id, stamp)
    assert (replay.from_scratch, replay.removed, replay.written, len(replay.redated)) == (False, [], [], 1)
    assert follower.plan_replay(tool.id, stamp).pending == 0
    store.documents.write(tool.id, upsert=[prepared("a.md", "one more")])
    assert dated.plan_replay(tool.id, stamp).redated == []


def test_a_crash_leaves_a_copy_with_the_old_or_the_new_stamp_and_both_are_known(
    store: Store, tool: Tool, follower: Follower
) -> None:
    old = follower.announce_copy(tool.id)._replace(generation=store.generation())
    store.documents.write(tool.id, upsert=[prepared("a.md", "one more")], remove=["b.md"])
    begun = follower.announce_change(tool.id, old)
    assert begun == (old.generation, old.copy, begun.nonce)
    for stamp in (old, begun):
        replay = follower.plan_replay(tool.id, stamp)
        assert (replay.from_scratch, len(replay.removed), len(replay.written), replay.pending) == (False, 2, 1, 3)
    done = begun._replace(generation=replay.generation)
    replay = follower.plan_replay(tool.id, done)
    assert (replay.from_scratch, replay.pending, replay.is_worthwhile(done)) == (False, 0, False)
    follower.announce_change(tool.id, done)
    assert follower.plan_replay(tool.id, old).from_scratch, "two changes later nobody knows it"


def test_forgotten_removals_mean_a_fill_and_an_old_stamp_is_renewed_before(
    store: Store, tool: Tool, follower: Follower
) -> None:
    stamp = follower.announce_copy(tool.id)._replace(generation=store.generation())
    other = store.tools.put(Tool("other"))
    for number in range(120):
        store.documents.write(other.id, upsert=[prepared(f"{number}.md", "x")])
    replay = follower.plan_replay(tool.id, stamp)
    assert (replay.pending, replay.is_worthwhile(stamp)) == (0, True)
    store.changes.prune_removals(tool.id, stamp.generation + 50)
    assert follower.plan_replay(tool.id, stamp).from_scratch


def test_what_was_noted_as_copied_is_not_copied_again_but_what_came_later_is(
    store: Store, tool: Tool, follower: Follower
) -> None:
    stamp = follower.announce_change(tool.id, follower.announce_copy(tool.id))
    first, second = follower.plan_replay(tool.id, stamp).written
    follower.note_progress(tool.id, stamp, first)
    store.documents.write(tool.id, upsert=[prepared("a.md", "one more")], remove=["b.md"])
    replay = follower.plan_replay(tool.id, stamp)
    assert (replay.from_scratch, replay.removed, replay.document) == (False, [first, second], first)
    assert [document > second for document in replay.written] == [True], "b.md is gone, and a.md has another id"
    assert replay.has_same_ids() is False


def test_removals_from_before_a_fill_began_do_not_concern_it(store: Store, tool: Tool, follower: Follower) -> None:
    store.documents.write(tool.id, remove=["a.md"])
    store.changes.prune_removals(tool.id, store.generation())
    stamp = follower.announce_copy(tool.id)
    replay = follower.plan_replay(tool.id, stamp)
    assert (replay.from_scratch, replay.removed, len(replay.written)) == (False, [], 1)


def test_documents_that_were_embedded_again_keep_their_ids_and_are_written_again(
    store: Store, tool: Tool, follower: Follower
) -> None:
    stamp = follower.announce_copy(tool.id)
    written = follower.plan_replay(tool.id, stamp).written
    follower.note_progress(tool.id, stamp, written[-1])
    store.vectors.replace(tool.id, {}, tool.built)
    replay = follower.plan_replay(tool.id, stamp)
    assert (replay.written, replay.has_same_ids()) == (written, True)


def test_of_two_that_change_a_copy_only_the_last_goes_on(store: Store, tool: Tool, follower: Follower) -> None:
    stamp = follower.announce_copy(tool.id)
    first, second = (follower.announce_change(tool.id, stamp) for _ in range(2))
    follower.note_progress(tool.id, second, 1)
    with pytest.raises(IndexFailure, match="Another process is copying the same tool to Engine"):
        follower.note_progress(tool.id, first, 1)
    assert follower.plan_replay(tool.id, first).from_scratch


def test_a_copy_with_a_note_of_an_older_bunko_has_all_up_to_its_stamp(
    store: Store, tool: Tool, follower: Follower
) -> None:
    store.documents.write(tool.id, upsert=[prepared("old.md", "text")])
    stamp = follower.announce_copy(tool.id)._replace(generation=store.generation())
    store.changes.set_index_note(tool.id, f"engine {stamp.copy}", f"{stamp.nonce} 0123456789abcdef")
    store.documents.write(tool.id, upsert=[prepared("new.md", "text")])
    replay = follower.plan_replay(tool.id, stamp)
    assert (replay.from_scratch, len(replay.written)) == (False, 1)
    assert follower.announce_change(tool.id, stamp).copy == stamp.copy


def test_a_tool_that_was_rebuilt_beside_imports_is_copied_whole(store: Store, tool: Tool, follower: Follower) -> None:
    """Its documents may have ids below those that were copied meanwhile."""
    shadow = store.tools.put(Tool("shadow"))
    store.documents.write(shadow.id, upsert=[prepared("a.md", "rebuilt")])
    store.documents.write(tool.id, upsert=[prepared("a.md", "imported meanwhile")])
    stamp = follower.announce_copy(tool.id)
    copied = follower.plan_replay(tool.id, stamp).written[-1]
    follower.note_progress(tool.id, stamp, copied)
    stamp = stamp._replace(generation=store.generation())
    store.tools.swap(tool, shadow)
    replay = follower.plan_replay(tool.id, stamp)
    assert replay.written
    assert replay.written[0] < copied
    assert replay.has_same_ids()


def test_parts_are_a_hundredth_of_a_fill_and_ten_documents_of_a_small_one() -> None:
    assert [len(part) for part in Replay(1, True, (), range(25)).parts()] == [10, 10, 5]
    assert {len(part) for part in Replay(1, True, (), range(5000)).parts()} == {50}
