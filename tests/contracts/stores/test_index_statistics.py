"""What every store promises to keep of statistics for indexes outside the library."""

from __future__ import annotations

import pytest

from bunko.protocols import Store
from bunko.types import Tool
from bunko.types.records import IndexNote, ToolStatistics


@pytest.fixture
def tool(store: Store) -> Tool:
    return store.tools.put(Tool("docs"))


def test_statistics_are_replaced_updated_and_cleared(store: Store, tool: Tool) -> None:
    assert store.index_statistics.get(tool.id, "copy") is None
    assert store.index_statistics.frequencies(tool.id, "copy", [1]) == {}
    first = ToolStatistics(3, 10, 200, b"moments")
    store.index_statistics.replace(tool.id, "copy", first, [(1, 4), (2**32 - 1, 9)])
    assert store.index_statistics.get(tool.id, "copy") == first
    assert store.index_statistics.frequencies(tool.id, "copy", [1, 5, 2**32 - 1]) == {1: 4, 2**32 - 1: 9}
    second = ToolStatistics(5, 11, 190)
    store.changes.set_index_note(tool.id, "milvus copy", "first")
    note = IndexNote("milvus copy", "first", "second")
    assert store.index_statistics.update(tool.id, "copy", second, [(1, -4), (5, 2)], note)
    assert store.changes.index_note(tool.id, "milvus copy") == "second"
    assert store.index_statistics.get(tool.id, "copy") == second
    counts = store.index_statistics.frequencies(tool.id, "copy", [1, 5, 2**32 - 1])
    assert {key: count for key, count in counts.items() if count} == {5: 2, 2**32 - 1: 9}
    store.index_statistics.replace(tool.id, "copy", first, [(7, 1)])
    assert store.index_statistics.frequencies(tool.id, "copy", [5, 7]) == {7: 1}
    store.index_statistics.clear(tool.id, "copy")
    assert (store.index_statistics.get(tool.id, "copy"), store.index_statistics.frequencies(tool.id, "copy", [7])) == (
        None,
        {},
    )


def test_an_update_by_another_note_changes_nothing(store: Store, tool: Tool) -> None:
    note = IndexNote("milvus copy", "old", "new")
    assert not store.index_statistics.update(tool.id, "copy", ToolStatistics(5, 1, 1), [(1, 1)], note)
    store.index_statistics.replace(tool.id, "copy", ToolStatistics(4, 1, 1), [(1, 1)])
    store.changes.set_index_note(tool.id, "milvus copy", "of another process")
    assert not store.index_statistics.update(tool.id, "copy", ToolStatistics(5, 2, 2), [(1, 1)], note)
    assert store.changes.index_note(tool.id, "milvus copy") == "of another process"
    assert store.index_statistics.get(tool.id, "copy") == ToolStatistics(4, 1, 1)
    assert store.index_statistics.frequencies(tool.id, "copy", [1]) == {1: 1}


def test_many_frequencies_are_read_at_once(store: Store, tool: Tool) -> None:
    store.index_statistics.replace(tool.id, "copy", ToolStatistics(1, 1, 1), [(key, key + 1) for key in range(50_000)])
    assert store.index_statistics.frequencies(tool.id, "copy", range(0, 50_000, 5)) == {
        key: key + 1 for key in range(0, 50_000, 5)
    }


def test_each_tool_has_its_own_and_takes_them_along_when_it_is_deleted(store: Store, tool: Tool) -> None:
    other = store.tools.put(Tool("other"))
    for owner in (tool, other):
        store.index_statistics.replace(owner.id, "copy", ToolStatistics(owner.id, 1, 1), [(1, owner.id)])
    store.tools.drop(tool.id)
    assert store.index_statistics.get(tool.id, "copy") is None
    assert store.index_statistics.frequencies(tool.id, "copy", [1]) == {}
    assert store.index_statistics.frequencies(other.id, "copy", [1]) == {1: other.id}


def test_each_copy_has_statistics_of_its_own_and_abandoned_ones_are_deleted(store: Store, tool: Tool) -> None:
    store.index_statistics.replace(tool.id, "old", ToolStatistics(5, 1, 1), [(1, 1)])
    store.index_statistics.replace(tool.id, "other", ToolStatistics(900, 2, 2), [(1, 2)])
    assert store.index_statistics.get(tool.id, "old") == ToolStatistics(5, 1, 1)
    store.index_statistics.replace(tool.id, "new", ToolStatistics(1200, 3, 3), [(1, 3)])
    counts = [store.index_statistics.frequencies(tool.id, copy, [1]) for copy in ("old", "other", "new")]
    assert counts == [{}, {1: 2}, {1: 3}]
    assert store.index_statistics.get(tool.id, "old") is None
    store.index_statistics.clear(tool.id, "new")
    assert store.index_statistics.get(tool.id, "other") == ToolStatistics(900, 2, 2)
