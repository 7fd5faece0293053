"""What every store promises to the indexes that follow it."""

from __future__ import annotations

from bunko.protocols import Store
from bunko.types import SourceEntry, Tool
from tests.contracts.documents import prepared


def test_the_generation_grows_with_what_a_search_could_see(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    first = store.documents.write(tool.id, upsert=[prepared("a.md", "x")])
    assert store.generation() == first
    assert store.documents.write(tool.id, touch=[SourceEntry("a.md", 1, 5, 9)]) == first
    assert store.documents.write(tool.id, remove=["a.md"]) > first


def test_an_index_learns_what_was_written_and_removed_since_a_generation(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    store.documents.write(other.id, upsert=[prepared("z.md", "大阪の城")])
    first = store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺"), prepared("b.md", "奈良の鹿", "大仏")])
    with store.read_transaction():
        before = list(store.changes.chunks_since(tool.id, 0))
    assert [chunk.text.splitlines()[-1] for chunk in before] == ["京都の寺", "奈良の鹿", "大仏"]
    assert store.changes.removed_since(tool.id, first) == []
    store.documents.write(tool.id, upsert=[prepared("a.md", "鎌倉の海")])
    with store.read_transaction():
        after = list(store.changes.chunks_since(tool.id, first))
    assert [chunk.text.splitlines()[-1] for chunk in after] == ["鎌倉の海"]
    assert store.changes.removed_since(tool.id, first) == [before[0].document_id]


def test_the_last_generation_of_a_tool_changes_with_its_own_documents_only(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    assert store.changes.last_generation(tool.id) == 0
    written = store.documents.write(tool.id, upsert=[prepared("a.md", "京都の寺"), prepared("b.md", "奈良の鹿")])
    store.documents.write(other.id, upsert=[prepared("z.md", "大阪の城")])
    assert store.changes.last_generation(tool.id) == written
    removed = store.documents.write(tool.id, remove=["a.md"])
    store.changes.prune_removals(tool.id, removed)
    assert store.changes.last_generation(tool.id) == removed


def test_documents_that_move_into_an_empty_tool_are_a_change(store: Store) -> None:
    tool, shadow = store.tools.put(Tool("docs")), store.tools.put(Tool("~docs"))
    store.documents.write(shadow.id, upsert=[prepared("a.md", "京都の寺")])
    before = store.generation()
    assert store.tools.swap(tool, shadow) > before
    with store.read_transaction():
        assert len(list(store.changes.chunks_since(tool.id, before))) == 1


def test_the_ids_of_all_chunks_are_those_an_index_learns(store: Store) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "one", "two"), prepared("b.md", "three")])
    store.documents.write(other.id, upsert=[prepared("a.md", "four")])
    store.documents.write(tool.id, remove=["b.md"])
    learnt = [chunk.chunk_id for chunk in store.changes.chunks_since(tool.id, 0)]
    assert sorted(store.changes.chunk_ids(tool.id)) == sorted(learnt)
    assert len(learnt) == 2
    assert store.stats.count_incomplete() == 0


def test_changed_documents_are_listed_before_their_chunks_are_read(store: Store) -> None:
    tool, other = store.tools.put(Tool("a")), store.tools.put(Tool("b"))
    first = store.documents.write(tool.id, upsert=[prepared("a.md", "one", "two")])
    store.documents.write(other.id, upsert=[prepared("o.md", "other")])
    store.documents.write(tool.id, upsert=[prepared("b.md", "three"), prepared("c.md", "four")])
    ids = store.changes.documents_since(tool.id, 0)
    assert len(ids) == 3
    assert store.changes.documents_since(tool.id, first) == ids[1:]
    chunks = list(store.changes.chunks_of(ids))
    assert [chunk.text.splitlines()[-1] for chunk in chunks] == ["one", "two", "three", "four"]
    assert [chunk.chunk_id for chunk in chunks] == [chunk.chunk_id for chunk in store.changes.chunks_since(tool.id, 0)]
    store.documents.write(tool.id, remove=["b.md"])
    assert [chunk.document_id for chunk in store.changes.chunks_of(ids[1:])] == ids[2:], "a removed document has none"


def test_what_an_index_notes_about_itself_is_kept_by_tool_and_index(store: Store) -> None:
    assert store.changes.index_note(1, "chroma") == ""
    store.changes.set_index_note(1, "chroma", "first")
    store.changes.set_index_note(1, "chroma", "second")
    store.changes.set_index_note(2, "chroma", "other tool")
    store.changes.set_index_note(1, "milvus", "other index")
    store.changes.set_index_note(1, "dropped", "gone")
    store.changes.set_index_note(1, "dropped", "")
    assert store.changes.index_note(1, "dropped") == ""
    notes = [store.changes.index_note(*place) for place in ((1, "chroma"), (2, "chroma"), (1, "milvus"))]
    assert notes == ["second", "other tool", "other index"]


def test_a_file_time_of_another_day_is_a_change_of_documents_without_a_date(store: Store) -> None:
    tool = store.tools.put(Tool("docs"))
    undated = [prepared(f"{name}.md", "x", modified_ns=10**18) for name in "abc"]
    first = store.documents.write(tool.id, upsert=[*undated, prepared("dated.md", "x", date="2024-01-15")])
    ids = store.changes.documents_since(tool.id, 0)
    day = 86400 * 10**9
    same_day = SourceEntry("a.md", 1, 10**18 + 1, 9)
    assert store.documents.write(tool.id, touch=[same_day, SourceEntry("dated.md", 1, 5 * day, 9)]) == first
    assert store.changes.redated_since(tool.id, 0) == []
    second = store.documents.write(tool.id, touch=[SourceEntry(f"{name}.md", 1, 3 * day, 9) for name in "ab"])
    assert second == first + 1
    assert store.changes.redated_since(tool.id, first) == ids[:2]
    assert store.changes.redated_since(tool.id, second) == []
    third = store.documents.write(tool.id, touch=[SourceEntry("b.md", 1, 9 * day, 9)])
    assert store.changes.redated_since(tool.id, second) == ids[1:2]
    store.documents.write(tool.id, remove=["b.md"])
    assert store.changes.redated_since(tool.id, 0) == ids[:1]
    assert store.changes.removed_since(tool.id, third) == ids[1:2]
