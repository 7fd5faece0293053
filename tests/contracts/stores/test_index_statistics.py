"""What every store promises to keep of statistics for indexes outside the library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bunko.protocols import Store
from bunko.types import Tool
from bunko.types.records import IndexNote, ToolStatistics
from tests.contracts.documents import prepared


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


def test_terms_vectors_and_texts_of_chunks_are_found_by_their_ids(store: Store, tool: Tool) -> None:
    with_vector = replace(prepared("c.md", "five five"), vector_keys=[b"key"])
    documents = [prepared("a.md", "one", "two words", "three"), prepared("b.md", "four"), with_vector]
    store.documents.write(tool.id, upsert=documents, vectors={b"key": np.ones(4, np.float32)})
    chunks = {chunk.chunk_id: chunk for chunk in store.changes.chunks_since(tool.id, 0)}
    wanted = [*chunks][::2]
    asked = [*wanted, 10**9]
    terms = {chunk.chunk_id: chunk for chunk in store.changes.chunk_terms(asked)}
    vectors = {chunk.chunk_id: chunk for chunk in store.changes.chunk_vectors(asked)}
    texts = {chunk.chunk_id: chunk for chunk in store.changes.chunk_texts(asked)}
    assert terms.keys() == vectors.keys() == texts.keys() == set(wanted)
    for chunk_id in wanted:
        whole, vector = chunks[chunk_id], vectors[chunk_id].vector
        place = (whole.document_id, whole.tiebreak_order)
        for part in (terms[chunk_id], vectors[chunk_id], texts[chunk_id]):
            assert (part.document_id, part.tiebreak_order) == place
        assert texts[chunk_id].text == whole.text
        assert terms[chunk_id].term_keys.tolist() == whole.term_keys.tolist()
        assert terms[chunk_id].term_counts.tolist() == whole.term_counts.tolist()
        assert (None if vector is None else vector.tolist()) == ([1.0] * 4 if whole.vector is not None else None)
    assert [vectors[chunk_id].vector is None for chunk_id in wanted] == [True, True, False]


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
